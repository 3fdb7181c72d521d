package fanout

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"
)

// testFraming marks a frame with 'F', its size, its number and its time.
type testFraming struct{ payload int }

const testHeader = 1 + 2 + 8 + 8

var _ Framing = testFraming{}

func (f testFraming) Sizes() (header, payload int) { return testHeader, f.payload }

func (f testFraming) Header(dst []byte, n int64, size int, at time.Time) {
	dst[0] = 'F'
	binary.BigEndian.PutUint16(dst[1:], uint16(size))
	binary.BigEndian.PutUint64(dst[3:], uint64(n))
	binary.BigEndian.PutUint64(dst[11:], uint64(at.UnixMicro()))
}

// framedViewer takes frames apart and checks their numbers and times, and what
// is in them. Between frames he may be sent 'R' and a byte, an answer.
type framedViewer struct {
	testViewer
	rest    []byte
	next    int64
	at      uint64
	frames  int64
	jumps   int
	answers []byte
	begun   []int64 // what Begin was told
	feed    *Feed
	ticks   int
	same    bool // a pause costs him nothing
	said    int  // answers that are due
}

var _ Control = (*framedViewer)(nil)

func (c *framedViewer) Begin(feed *Feed, first int64, at time.Time) []byte {
	c.feed = feed
	c.begun = append(c.begun, first)
	return []byte{'R', 'B'}
}

func (c *framedViewer) Receive(b []byte)                        { c.feed.Send([]byte{'R', b[0]}) }
func (c *framedViewer) Tick(_ time.Time, frames, carried int64) { c.ticks++ }

func (c *framedViewer) write(b []byte) (int, error) {
	n := min(len(b), c.room)
	c.room -= n
	c.deframe(b[:n])
	if n < len(b) {
		return n, errAgain
	}
	return n, nil
}

func (c *framedViewer) writev(parts [][]byte) (int, error) {
	sent := 0
	for _, p := range parts {
		n, err := c.write(p)
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func (c *framedViewer) sendFile(f *memfile, off int64, n int) (int, error) {
	b := make([]byte, min(n, c.room))
	if m := f.readAt(b, off); m != len(b) {
		return 0, fmt.Errorf("memfd gave %d of %d bytes", m, len(b))
	}
	sent, err := c.write(b)
	if err == nil && sent < n {
		err = errAgain
	}
	return sent, err
}

func (c *framedViewer) deframe(b []byte) {
	c.rest = append(c.rest, b...)
	for len(c.rest) > 0 && c.err == nil {
		switch {
		case c.rest[0] == 'R':
			if len(c.rest) < 2 {
				return
			}
			c.answers = append(c.answers, c.rest[1])
			if c.rest[1] == 'B' && len(c.begun) > 1 && !c.same {
				c.testViewer.begun = false // he starts anew
				c.next = c.begun[len(c.begun)-1]
			}
			c.rest = c.rest[2:]
		case c.rest[0] != 'F':
			c.fail("no frame where one should begin: % x", c.rest[:min(len(c.rest), 8)])
		default:
			if len(c.rest) < testHeader {
				return
			}
			size := int(binary.BigEndian.Uint16(c.rest[1:]))
			if len(c.rest) < testHeader+size {
				return
			}
			n, at := int64(binary.BigEndian.Uint64(c.rest[3:])), binary.BigEndian.Uint64(c.rest[11:])
			switch {
			case c.frames == 0 && n != c.begun[0]:
				c.fail("first frame %d, announced was %d", n, c.begun[0])
			case c.frames > 0 && n < c.next:
				c.fail("frame %d after %d", n, c.next-1)
			case c.frames > 0 && n > c.next:
				c.jumps++
			}
			if at < c.at || at == 0 {
				c.fail("frame %d of the time %d after one of %d", n, at, c.at)
			}
			c.frames, c.next, c.at = c.frames+1, n+1, at
			ts := c.rest[testHeader : testHeader+size]
			c.rest = c.rest[testHeader+size:]
			c.take(ts)
		}
	}
}

// frame attaches a viewer who takes frames.
func (r *testRig) frame(c *framedViewer, payload int) *viewer {
	v := &viewer{id: int64(len(r.ch.viewers)), conn: c, fd: -1, control: c, announce: true, info: Viewer{Requested: r.now, Framing: testFraming{payload}}}
	w := &waiter{ready: make(chan error, 1)}
	r.loop.join("test", w)
	r.loop.attach(r.ch, w, v)
	return v
}

const testPayload = 7 * packetBytes

// reached fails unless c got everything up to the frame that is not whole yet.
func reached(t *testing.T, what string, s *testStream, c *framedViewer) {
	t.Helper()
	if c.err != nil || len(c.rest) > 0 || c.count+7 < s.counter || c.count > s.counter {
		t.Errorf("%s: got up to %d of %d, %d bytes of a frame left, %v", what, c.count, s.counter, len(c.rest), c.err)
	}
}

func TestFrames_areTheSameStreamForOneAndForMany(t *testing.T) {
	for _, viewers := range []int{1, 2, 5} {
		for _, plain := range []bool{false, true} {
			for _, bare := range []int{0, 1, 3} {
				s := &testStream{gop: 10, size: 21}
				r := live(Config{Plain: plain}, s, 103)
				for range bare {
					r.watch(&testViewer{room: lots})
				}
				var all []*framedViewer
				for i := range viewers {
					c := &framedViewer{testViewer: testViewer{room: lots}}
					all = append(all, c)
					if v := r.frame(c, testPayload); v.start != "history" {
						t.Errorf("start: want history, got %s", v.start)
					}
					for range 50 {
						r.src.queue = append(r.src.queue, s.packets(5+i))
						r.turn(13 * time.Millisecond)
					}
				}
				for range 500 {
					r.src.queue = append(r.src.queue, s.packets(11))
					r.turn(13 * time.Millisecond)
				}
				r.settle()
				for i, c := range all {
					what := fmt.Sprintf("viewer %d of %d, plain=%v, bare=%d", i, viewers, plain, bare)
					reached(t, what, s, c)
					if c.jumps != 0 || c.skips != 0 || string(c.answers) != "B" || c.ticks == 0 {
						t.Errorf("%s: jumps %d, skips %d, answers %q, ticks %d", what, c.jumps, c.skips, c.answers, c.ticks)
					}
				}
				if w := r.ch.views[0]; (w.chain.files > 0) != (viewers > 1 && !plain) {
					t.Errorf("%d viewers, plain=%v: memfds of frames: %d", viewers, plain, w.chain.files)
				}
				if held := r.ch.chain.bytes() + r.ch.views[0].chain.bytes(); held != r.loop.store.bytes {
					t.Errorf("bytes held: chains %d, store %d", held, r.loop.store.bytes)
				}
				r.loop.shutdown()
				if r.loop.store.bytes != 0 {
					t.Errorf("bytes held after the end: want 0, got %d", r.loop.store.bytes)
				}
			}
		}
	}
}

func TestFrames_answersStandBetweenThem(t *testing.T) {
	s := &testStream{gop: 10, size: 20}
	r := live(Config{}, s, 100)
	c := &framedViewer{testViewer: testViewer{room: lots}}
	slow := &framedViewer{testViewer: testViewer{room: 3000}}
	r.frame(c, testPayload)
	v := r.frame(slow, testPayload)
	for i := range 400 {
		r.src.queue = append(r.src.queue, s.packets(7))
		r.turn(10 * time.Millisecond)
		slow.room += 1500
		r.loop.socket(v, true, false)
		if i%10 == 0 && c.feed != nil && slow.feed != nil {
			c.Receive([]byte{'c'})
			slow.Receive([]byte{'s'})
		}
	}
	slow.room = lots
	r.loop.socket(v, true, false)
	r.settle()
	reached(t, "fast", s, c)
	reached(t, "slow", s, slow)
	if len(c.answers) < 40 || len(c.answers) != len(slow.answers) {
		t.Errorf("answers: fast %d, slow %d", len(c.answers), len(slow.answers))
	}
	r.loop.shutdown()
}

func TestFrames_whoAsksAndDoesNotReadIsDropped(t *testing.T) {
	s := &testStream{gop: 10, size: 20}
	r := live(Config{}, s, 100)
	c := &framedViewer{testViewer: testViewer{room: 3000}}
	v := r.frame(c, testPayload)
	for range maxSay {
		c.feed.Send([]byte("R."))
	}
	r.turn(time.Millisecond)
	if !v.gone {
		t.Error("he is still there")
	}
	r.loop.shutdown()
}

func TestPause_holdsNothingAndGoesOnAtARandomAccessPoint(t *testing.T) {
	s := &testStream{gop: 10, size: 20}
	r := live(Config{ChannelHistory: 100 << 10}, s, 100)
	c := &framedViewer{testViewer: testViewer{room: lots}}
	v := r.frame(c, testPayload)
	play := func(n int) {
		for range n {
			r.src.queue = append(r.src.queue, s.packets(7))
			r.turn(10 * time.Millisecond)
		}
		r.settle()
	}
	play(100)
	for i := range 5 {
		c.feed.Pause()
		play(1)
		frames := c.frames
		play(1000 * i)
		c.feed.Send([]byte("Rx"))
		play(1)
		if c.frames != frames || r.ch.chain.bytes() > 200<<10 {
			t.Fatalf("while paused: %d frames, %d bytes held", c.frames-frames, r.ch.chain.bytes())
		}
		c.feed.Resume()
		play(100)
		reached(t, "after the pause", s, c)
	}
	if string(c.answers) != "BxBxBxBxBxB" {
		t.Errorf("answers: %q", c.answers)
	}
	c.feed.Send([]byte("Rz"))
	c.feed.Close("asked for")
	r.turn(time.Millisecond)
	r.turn(time.Millisecond)
	if !v.gone || c.answers[len(c.answers)-1] != 'z' || len(c.rest) != 0 {
		t.Errorf("closed: gone %v, answers %q, rest %d", v.gone, c.answers, len(c.rest))
	}
	r.loop.shutdown()
}

func TestFrames_radioAndLiveStarts(t *testing.T) {
	s := &testStream{size: 20}
	r := live(Config{}, s, 101)
	var all []*framedViewer
	for i := range 3 {
		c := &framedViewer{testViewer: testViewer{room: lots}}
		all = append(all, c)
		r.frame(c, testPayload)
		c.testViewer.begun, c.count = true, uint64(c.begun[0]+1)*7 // behind a frame of tables
		for range 20 {
			r.src.queue = append(r.src.queue, s.packets(4+i))
			r.turn(11 * time.Millisecond)
		}
	}
	r.settle()
	for i, c := range all {
		reached(t, fmt.Sprint("viewer ", i), s, c)
		if c.jumps != 0 || c.frames == 0 {
			t.Errorf("viewer %d: jumps %d, frames %d", i, c.jumps, c.frames)
		}
	}
	if got := r.loop.store.bytes; got > 2*blockBytes {
		t.Errorf("radio: want next to nothing kept, got %d bytes", got)
	}
	r.loop.shutdown()
}

func TestFrames_slowViewerSkipsOnFrameBoundaries(t *testing.T) {
	s := &testStream{gop: 10, size: 20}
	r := live(Config{LagBytes: 512 << 10}, s, 100)
	good, slow := &framedViewer{testViewer: testViewer{room: lots}}, &framedViewer{testViewer: testViewer{room: 5000}}
	r.frame(good, testPayload)
	v := r.frame(slow, testPayload)
	for i := range 3000 {
		r.src.queue = append(r.src.queue, s.packets(7))
		r.turn(4 * time.Millisecond)
		if i%2 == 0 {
			slow.room += 7 * packetBytes / 3
			r.loop.socket(v, true, false)
		}
	}
	slow.room = lots
	r.loop.socket(v, true, false)
	for range 300 {
		r.src.queue = append(r.src.queue, s.packets(7))
		r.turn(4 * time.Millisecond)
	}
	r.settle()
	reached(t, "good", s, good)
	reached(t, "slow", s, slow)
	if v.skips == 0 || slow.jumps == 0 || good.jumps != 0 {
		t.Errorf("skips %d, jumps of the slow one %d, of the good one %d", v.skips, slow.jumps, good.jumps)
	}
	r.loop.shutdown()
}

func TestFrames_allocateNothing(t *testing.T) {
	for _, viewers := range []int{1, 2, 64} {
		s := &testStream{gop: 10, size: 20}
		r := live(Config{}, s, 200)
		for range viewers {
			r.frame(&framedViewer{testViewer: testViewer{room: lots}}, testPayload)
		}
		var packets [][]byte
		for range 64 {
			packets = append(packets, s.packets(7))
		}
		for _, v := range r.ch.viewers {
			v.conn = nullConn{}
		}
		step := func() {
			r.src.queue = append(r.src.queue, packets...)
			r.turn(5 * time.Millisecond)
		}
		for range 500 {
			step()
		}
		if got := testing.AllocsPerRun(500, step) / 64; got > 0.05 {
			t.Errorf("%d viewers: allocations per datagram: want 0, got %.3f", viewers, got)
		}
		r.loop.shutdown()
	}
}

// The last packets of a stream that ends go out, in a frame that is not full.
func TestFrames_endOfAStream(t *testing.T) {
	for _, private := range []bool{false, true} {
		for rest := range 7 {
			s := &testStream{gop: 10, size: 20}
			r := live(Config{}, s, 0)
			r.ch.private = private
			w := &waiter{ready: make(chan error, 1)}
			r.loop.join("test", w) // so that it is kept
			r.src.queue = append(r.src.queue, s.packets(700+rest))
			r.turn(10 * time.Millisecond)
			c := &framedViewer{testViewer: testViewer{room: lots}, same: private}
			v := r.frame(c, testPayload)
			r.loop.leave(r.ch, w)
			if private { // a pause loses nothing of his own stream
				c.feed.Pause()
				r.turn(time.Millisecond)
				r.src.queue = append(r.src.queue, s.packets(1400))
				r.turn(time.Second)
				c.feed.Resume()
				r.turn(time.Millisecond)
			}
			r.ch.over = errEnded
			r.turn(time.Second)
			r.turn(time.Second)
			if c.err != nil || c.count != s.counter || !v.gone || c.jumps != 0 {
				t.Errorf("private=%v, %d packets behind the last frame: got up to %d of %d, gone %v, %v", private, rest, c.count, s.counter, v.gone, c.err)
			}
			r.loop.shutdown()
		}
	}
}
