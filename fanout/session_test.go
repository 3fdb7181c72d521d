package fanout

import (
	"errors"
	"io"
	"testing"
	"time"

	"zapcast/ingest"
)

// testSession is a source that brings what it is allowed to, waits, and ends.
type testSession struct {
	testSource
	private, waits bool
	end            error
	drains         int // with room
	idles          int // without
}

var _ ingest.Session = (*testSession)(nil)

func (s *testSession) Drain(_ time.Time, most int, sink ingest.Sink) bool {
	if most == 0 {
		s.idles++
		return false
	}
	s.drains++
	if n := min(len(s.queue), 32); n > 0 {
		sink.Append(s.queue[:n])
		s.queue = s.queue[n:]
	}
	return false
}
func (s *testSession) Private() bool { return s.private }
func (s *testSession) Waits() bool   { return s.waits }
func (s *testSession) Ended() error {
	if len(s.queue) > 0 {
		return nil
	}
	return s.end
}

// sessionRig is a rig whose channel has a session as its source, and a viewer
// who waits for it.
func sessionRig(cfg Config, s *testSession) (r *testRig, w *waiter) {
	r = newRig(cfg)
	r.ch.close(nil)
	w = &waiter{ready: make(chan error, 1)}
	r.ch, _ = r.loop.join("test", w)
	r.loop.opened(r.ch, s, nil)
	return r, w
}

// attach lets the viewer who waits start.
func (r *testRig) attach(t *testing.T, w *waiter, c *testViewer) *viewer {
	t.Helper()
	select {
	case err := <-w.ready:
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatal("the viewer cannot start")
	}
	v := &viewer{conn: c, fd: -1, info: Viewer{Requested: r.now}}
	r.loop.attach(r.ch, w, v)
	return v
}

func recording(packets int) *testSession {
	s := &testSession{private: true, waits: true}
	stream := &testStream{gop: 50, size: 30}
	for range packets {
		s.queue = append(s.queue, stream.packets(7))
	}
	return s
}

// A viewer who waits for nobody else gets every byte from the first on, however
// slow he is, and the source is not read far ahead of him.
func TestSession_waitsForItsViewer(t *testing.T) {
	const packets = 4000
	s := recording(packets)
	r, w := sessionRig(Config{Lag: time.Second, LagBytes: 1 << 20, ChannelHistory: 1 << 20, Silence: 5 * time.Second}, s)
	r.turn(time.Millisecond)
	c := &testViewer{}
	v := r.attach(t, w, c)
	for range 200 { // he takes nothing, for longer than the lag and the silence
		r.turn(100 * time.Millisecond)
	}
	if held := r.ch.chain.bytes(); held > pacedBytes+64*1316+blockBytes {
		t.Errorf("read ahead: got %d bytes, want about %d", held, pacedBytes)
	}
	if s.idles == 0 || v.gone || v.skips > 0 {
		t.Fatalf("got %d idle turns, gone %t, %d skips, want him to be waited for", s.idles, v.gone, v.skips)
	}
	s.end = io.EOF
	for n := 0; !v.gone && n < 1_000_000; n++ {
		r.open(v, 20_000)
		r.turn(10 * time.Millisecond)
	}
	if c.err != nil {
		t.Error(c.err)
	}
	if want := int64(packets * 7 * packetBytes); v.bytes != want || !c.ended || v.skips > 0 {
		t.Errorf("got %d bytes, ended %t, %d skips, want %d, and the end", v.bytes, c.ended, v.skips, want)
	}
	r.turn(time.Millisecond)
	if !r.ch.closed || r.loop.store.bytes != 0 {
		t.Errorf("channel closed %t, %d bytes held, want the end of both", r.ch.closed, r.loop.store.bytes)
	}
}

// Where memory is short, less is read ahead; nobody is moved on for it.
func TestSession_memoryIsShort(t *testing.T) {
	s := recording(4000)
	r, w := sessionRig(Config{History: 256 << 10, ChannelHistory: 256 << 10}, s)
	r.turn(time.Millisecond)
	v := r.attach(t, w, &testViewer{})
	for range 100 {
		r.turn(100 * time.Millisecond)
	}
	if held := r.ch.chain.bytes(); held > 512<<10 || v.gone || v.skips > 0 {
		t.Errorf("got %d bytes held, gone %t, %d skips", held, v.gone, v.skips)
	}
}

// A channel of one viewer's own goes with him, without a linger.
func TestSession_goesWithItsViewer(t *testing.T) {
	s := recording(4000)
	r, w := sessionRig(Config{Linger: time.Hour}, s)
	r.turn(time.Millisecond)
	v := r.attach(t, w, &testViewer{room: lots})
	r.turn(time.Millisecond)
	r.loop.drop(v, "test")
	r.turn(time.Millisecond)
	if !r.ch.closed {
		t.Error("the channel is still there")
	}
}

// The end of a live session: who is behind gets what is left, who waits for a
// start hears why there is none, and who comes later gets another session.
func TestSession_liveEnds(t *testing.T) {
	s := &testSession{}
	stream := &testStream{gop: 50, size: 30}
	for range 64 {
		s.queue = append(s.queue, stream.packets(7))
	}
	r, w := sessionRig(Config{}, s)
	r.turn(time.Millisecond)
	slow, fast := &testViewer{room: 5000}, &testViewer{room: lots}
	v := r.attach(t, w, slow)
	u := r.watch(fast)
	r.turn(time.Millisecond)
	r.turn(time.Millisecond)
	s.end = errors.New("the server hung up")
	r.turn(time.Millisecond)
	if !u.gone || v.gone {
		t.Fatalf("at the end: fast gone %t, slow gone %t, want true, false", u.gone, v.gone)
	}
	if r.loop.byKey["test"] != nil {
		t.Error("a new viewer would get the session that has ended")
	}
	r.turn(30 * time.Second) // the last bytes are not subject to the lag
	r.open(v, lots)
	r.turn(time.Millisecond)
	if !v.gone || slow.err != nil || v.bytes < (64*7-2)*packetBytes { // the tables before the first picture are sent ahead
		t.Errorf("slow viewer: gone %t, %d bytes, %v, want all of it and the end", v.gone, v.bytes, slow.err)
	}
	if !r.ch.closed {
		t.Error("the channel is still there")
	}
}

func TestSession_endsBeforeAnything(t *testing.T) {
	s := &testSession{end: errors.New("404 from the server")}
	r, w := sessionRig(Config{}, s)
	r.turn(time.Millisecond)
	select {
	case err := <-w.ready:
		if err == nil || err.Error() != "404 from the server" {
			t.Errorf("got %v, want the server's reason", err)
		}
	default:
		t.Error("the viewer still waits")
	}
	if !r.ch.closed {
		t.Error("the channel is still there")
	}
}
