package fanout

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const lots = 1 << 30

// drive runs a list of operations, two bytes each, against a channel and checks
// every byte that its viewers are sent. The model is the stream's own counter:
// a viewer sees it rise by one, or jump to a random-access point behind a mark.
func drive(t *testing.T, ops []byte, cfg Config) {
	t.Helper()
	r := newRig(cfg)
	defer func() {
		r.loop.shutdown()
		if r.loop.store.bytes != 0 {
			t.Errorf("bytes held after the end: want 0, got %d", r.loop.store.bytes)
		}
	}()
	s := &testStream{gop: 4, size: 30}
	var viewers []*viewer
	for len(ops) >= 2 {
		op, arg := ops[0], int(ops[1])
		ops = ops[2:]
		var v *viewer
		if len(viewers) > 0 {
			v = viewers[arg%len(viewers)]
		}
		switch op % 8 {
		case 0, 1:
			for range 1 + arg%32 {
				r.src.queue = append(r.src.queue, s.packets(7))
			}
			r.turn(time.Duration(arg) * time.Millisecond)
		case 2:
			if len(viewers) < 6 && r.ch.random {
				if arg%3 == 0 {
					viewers = append(viewers, r.frame(&framedViewer{testViewer: testViewer{room: arg * 1000}}, testPayload))
				} else {
					viewers = append(viewers, r.watch(&testViewer{room: arg * 1000}))
				}
			}
		case 3:
			if v != nil {
				r.open(v, arg*arg*3)
			}
		case 4:
			if v != nil {
				r.open(v, 1+arg)
			}
			if v != nil && !v.gone {
				if c, ok := v.conn.(*framedViewer); ok {
					v.control.Receive([]byte{'a'})
					c.said++
					switch arg % 5 {
					case 3:
						c.feed.Pause()
					case 4:
						c.feed.Resume()
					}
				}
			}
		case 5:
			if v != nil {
				r.loop.drop(v, "test")
			}
		case 6:
			r.turn(time.Duration(arg) * 10 * time.Millisecond)
		case 7:
			r.src.queue = append(r.src.queue, s.packets(7*(1+arg%8)))
			r.turn(time.Millisecond)
		}
		if r.ch.closed {
			return
		}
		for i, v := range viewers {
			if c := tested(v); c.err != nil {
				t.Fatalf("viewer %d: %v", i, c.err)
			}
			if b, _ := v.lag(r.now); !v.gone && v.blocked && b > cfg.LagBytes+cfg.ChannelHistory+fileBytes+turnBytes {
				t.Fatalf("viewer %d holds %d bytes, limit %d", i, b, cfg.LagBytes)
			}
		}
		if live := r.ch.chain; live.start() > live.end || r.loop.store.bytes != live.bytes()+viewed(r.ch) {
			t.Fatalf("chain from %d to %d, views of %d bytes, store has %d bytes", live.start(), live.end, viewed(r.ch), r.loop.store.bytes)
		}
	}
	for _, v := range viewers { // all sockets take everything: nobody may lack a byte
		tested(v).room = lots
		if !v.gone {
			r.loop.socket(v, true, false)
		}
	}
	r.settle()
	for i, v := range viewers {
		c := tested(v)
		if c.err != nil {
			t.Fatalf("viewer %d: %v", i, c.err)
		}
		if f, ok := v.conn.(*framedViewer); ok {
			if !v.gone && v.follows() && c.begun && (c.count+7 < s.counter || len(f.rest) > 0) {
				t.Fatalf("viewer %d: want all packets up to %d but for a frame, got up to %d, and %d bytes", i, s.counter, c.count, len(f.rest))
			}
			if got := len(f.answers) - strings.Count(string(f.answers), "B"); !v.gone && got != f.said {
				t.Fatalf("viewer %d: want %d answers, got %d", i, f.said, got)
			}
			continue
		}
		if !v.gone && !v.parked && c.begun && c.count != s.counter {
			t.Fatalf("viewer %d: want all packets up to %d, got up to %d", i, s.counter, c.count)
		}
		if v.gone && !c.ended {
			t.Fatalf("viewer %d is gone, but his socket is open", i)
		}
	}
}

// tested is what checks v's stream.
func tested(v *viewer) *testViewer {
	if f, ok := v.conn.(*framedViewer); ok {
		return &f.testViewer
	}
	return v.conn.(*testViewer)
}

// viewed is what the views of c hold.
func viewed(c *channel) (n int64) {
	for _, w := range c.views {
		n += w.chain.bytes()
	}
	return n
}

func fuzzConfig(plain bool) Config {
	return Config{Plain: plain, History: 600 << 10, ChannelHistory: 400 << 10, LagBytes: 300 << 10, Linger: time.Hour, Silence: time.Hour, StartWait: time.Hour}
}

func FuzzFanout(f *testing.F) {
	f.Add([]byte{0, 31, 0, 31, 2, 200, 0, 5, 2, 255, 0, 31, 3, 200, 6, 20, 0, 31}, false)
	f.Add([]byte{0, 31, 2, 0, 0, 31, 0, 31, 0, 31, 0, 31, 0, 31, 4, 1, 0, 31, 3, 255}, true)
	f.Fuzz(func(t *testing.T, ops []byte, plain bool) {
		if len(ops) > 4000 {
			t.Skip("longer than needed")
		}
		drive(t, ops, fuzzConfig(plain))
	})
}

func TestFanout_randomOperations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		ops := make([]byte, 2*rnd.IntN(300))
		for i := range ops {
			ops[i] = byte(rnd.Uint32())
		}
		drive(t, ops, fuzzConfig(rnd.IntN(2) == 0))
	}
}

// live returns a rig whose channel has run for n datagrams.
func live(cfg Config, s *testStream, n int) *testRig {
	r := newRig(cfg)
	for range n {
		r.src.queue = append(r.src.queue, s.packets(7))
	}
	r.turn(10 * time.Millisecond)
	return r
}

func TestJoin_startsAtTheNewestRandomAccessPointWithTablesFirst(t *testing.T) {
	for _, others := range []int{0, 1, 3} {
		s := &testStream{gop: 10, size: 20}
		r := live(Config{}, s, 100)
		for range others {
			r.watch(&testViewer{room: lots})
		}
		for range 100 {
			r.src.queue = append(r.src.queue, s.packets(7))
		}
		r.turn(10 * time.Millisecond)
		c := &recorder{testViewer: testViewer{room: lots}}
		v := &viewer{conn: c, fd: -1, prefix: []byte{}, info: Viewer{Requested: r.now}}
		w := &waiter{ready: make(chan error, 1)}
		r.loop.join("test", w)
		r.loop.attach(r.ch, w, v)
		r.settle()
		if v.start != "history" {
			t.Errorf("start: want history, got %s", v.start)
		}
		if got := [3]int{pidOf(c.got, 0), pidOf(c.got, 1), pidOf(c.got, 2)}; got != [3]int{0, testPMT, testVideo} {
			t.Errorf("with %d others: first PIDs: want PAT, PMT, video, got %#x", others, got)
		}
		if !bytes.Contains(c.got[2*packetBytes:3*packetBytes], []byte{0, 0, 1, 0x65}) {
			t.Errorf("with %d others: third packet is no random-access point", others)
		}
		if c.err != nil || c.count != s.counter {
			t.Errorf("with %d others: got up to %d of %d, %v", others, c.count, s.counter, c.err)
		}
		if v.firstByte <= 0 && v.firstRandomAccess <= 0 {
			t.Errorf("waiting times were not taken: %v, %v", v.firstByte, v.firstRandomAccess)
		}
		r.loop.shutdown()
	}
}

type recorder struct {
	testViewer
	got []byte
}

func (c *recorder) write(b []byte) (int, error) {
	n, err := c.testViewer.write(b)
	c.got = append(c.got, b[:n]...)
	return n, err
}

func (c *recorder) sendFile(f *memfile, off int64, n int) (int, error) {
	b := make([]byte, n)
	f.readAt(b, off)
	return c.write(b)
}

func pidOf(b []byte, i int) int {
	p := b[i*packetBytes:]
	return int(p[1]&0x1f)<<8 | int(p[2])
}

func TestSlowViewer_skipsAndOthersNoticeNothing(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := &testStream{gop: 10, size: 20}
		r := live(Config{Plain: plain, LagBytes: 512 << 10}, s, 100)
		good := r.watch(&testViewer{room: lots})
		slow := r.watch(&testViewer{room: 5000})
		for i := range 2000 {
			r.src.queue = append(r.src.queue, s.packets(7))
			r.turn(4 * time.Millisecond)
			if i%2 == 0 {
				r.open(slow, 7*packetBytes/3)
			}
		}
		r.open(slow, lots)
		for range 200 {
			r.src.queue = append(r.src.queue, s.packets(7))
			r.turn(4 * time.Millisecond)
		}
		r.settle()
		for name, v := range map[string]*viewer{"good": good, "slow": slow} {
			c := v.conn.(*testViewer)
			if c.err != nil || c.count != s.counter {
				t.Errorf("plain=%v, %s viewer: got up to %d of %d, %v", plain, name, c.count, s.counter, c.err)
			}
		}
		if got := slow.conn.(*testViewer).skips; got == 0 || int64(got) > slow.skips { // a skip may be overtaken by the next
			t.Errorf("plain=%v: skips of the slow viewer: counted %d, seen %d", plain, slow.skips, got)
		}
		if good.skips != 0 || r.ch.skips != slow.skips {
			t.Errorf("plain=%v: skips: good %d, channel %d", plain, good.skips, r.ch.skips)
		}
		r.loop.shutdown()
	}
}

func TestSlowViewer_isDisconnectedWhenAsked(t *testing.T) {
	s := &testStream{gop: 10, size: 20}
	r := live(Config{LagBytes: 512 << 10, Slow: Disconnect}, s, 100)
	good, slow := r.watch(&testViewer{room: lots}), r.watch(&testViewer{room: 5000})
	for range 2000 {
		r.src.queue = append(r.src.queue, s.packets(7))
		r.turn(4 * time.Millisecond)
	}
	if !slow.gone || good.gone {
		t.Errorf("gone: want the slow viewer only, got slow %v, good %v", slow.gone, good.gone)
	}
	r.loop.shutdown()
}

func TestStalledViewer_isGoneWithinAMinute(t *testing.T) {
	s := &testStream{gop: 10, size: 20}
	r := live(Config{}, s, 100)
	v := r.watch(&testViewer{room: 5000})
	begun := r.now
	for !v.gone && r.now.Sub(begun) < 2*time.Minute {
		r.src.queue = append(r.src.queue, s.packets(7))
		r.turn(100 * time.Millisecond)
	}
	if took := r.now.Sub(begun); took > time.Minute {
		t.Errorf("stalled viewer: want him gone within a minute, took %v", took)
	}
}

func TestHistory_staysWithinItsBudgets(t *testing.T) {
	s := &testStream{gop: 10, size: 20}
	r := live(Config{ChannelHistory: 30 << 10}, s, 100) // a tenth of what is between two points
	v := r.watch(&testViewer{room: lots})
	for range 1000 {
		r.src.queue = append(r.src.queue, s.packets(7))
		r.turn(4 * time.Millisecond)
	}
	if got := r.loop.store.bytes; got != 0 {
		t.Errorf("history too large for the channel: want 0 bytes held, got %d", got)
	}
	if c := v.conn.(*testViewer); c.err != nil || c.count != s.counter {
		t.Errorf("viewer got up to %d of %d, %v", c.count, s.counter, c.err)
	}
	r.loop.shutdown()
}

func TestColdStart_findsThePointBeforeTheFirstTables(t *testing.T) {
	s := &testStream{gop: 50, size: 20}
	s.packets(2) // the tables that stand before the first random-access point
	r := newRig(Config{})
	w := &waiter{ready: make(chan error, 1)}
	r.loop.join("test", w)
	for range 30 {
		r.src.queue = append(r.src.queue, s.packets(7))
		r.turn(2 * time.Millisecond)
	}
	if len(w.ready) != 0 {
		t.Fatal("a viewer could start before there were tables")
	}
	s.tables, s.cc[testPMT] = false, s.cc[0] // tables come again, between two points
	first := s.counter
	var pat, pmt [packetBytes]byte
	tables := &testStream{gop: 50, size: 20, counter: s.counter}
	tables.packet(pat[:])
	tables.packet(pmt[:])
	s.counter = tables.counter
	r.src.queue = append(r.src.queue, append(pat[:], pmt[:]...))
	r.turn(2 * time.Millisecond)
	if len(w.ready) != 1 {
		t.Fatalf("no start at the point before the tables of packet %d; rule %v, random %v", first, r.ch.scan.Rule(), r.ch.random)
	}
	if !r.ch.chain.holds(r.ch.randomPos) || r.ch.randomPos != 0 {
		t.Errorf("random-access point: want position 0, held, got %d", r.ch.randomPos)
	}
	r.loop.shutdown()
}

func TestRadio_startsAtOnceAndKeepsNothing(t *testing.T) {
	s := &testStream{size: 20}
	r := live(Config{}, s, 100)
	if !r.ch.startable(r.now) {
		t.Fatal("radio: want a start at once")
	}
	r.watch(&testViewer{room: lots})
	for range 100 {
		r.src.queue = append(r.src.queue, s.packets(7))
		r.turn(4 * time.Millisecond)
	}
	if got := r.loop.store.bytes; got != 0 {
		t.Errorf("radio: want nothing kept, got %d bytes", got)
	}
	r.loop.shutdown()
}

func TestAppend_allocatesNothing(t *testing.T) {
	for _, viewers := range []int{0, 1, 2, 64} {
		s := &testStream{gop: 10, size: 20}
		r := live(Config{}, s, 200)
		for range viewers {
			r.watch(&testViewer{room: lots})
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
		// A batch every few turns is a new batch; a datagram is nothing.
		if got := testing.AllocsPerRun(500, step) / 64; got > 0.05 {
			t.Errorf("%d viewers: allocations per datagram: want 0, got %.3f", viewers, got)
		}
		r.loop.shutdown()
	}
}

// nullConn takes everything.
type nullConn struct{}

func (nullConn) writev(p [][]byte) (n int, err error) {
	for _, b := range p {
		n += len(b)
	}
	return n, nil
}
func (nullConn) write(b []byte) (int, error)                      { return len(b), nil }
func (nullConn) sendFile(_ *memfile, _ int64, n int) (int, error) { return n, nil }
func (nullConn) close()                                           {}
