package fanout

import (
	"testing"
	"time"
)

// wait adds a waiter to the channel, as Open does.
func (r *testRig) wait() *waiter {
	w := &waiter{ready: make(chan error, 1)}
	r.loop.join(r.ch.key, w)
	return w
}

// A source may stop after it has brought something, but no place to start.
func TestWaiter_isAnsweredWhenTheSourceFallsSilentAgain(t *testing.T) {
	r := newRig(Config{Silence: 2 * time.Second, StartWait: time.Minute})
	defer r.loop.shutdown()
	s := &testStream{gop: 1 << 30, size: 20, picture: 1}
	w := r.wait()
	r.turn(500 * time.Millisecond)
	r.src.queue = append(r.src.queue, s.packets(700))
	for range 100 {
		r.turn(100 * time.Millisecond)
	}
	select {
	case err := <-w.ready:
		if err == nil {
			t.Error("a source silent for 9 s: want an error, got a start")
		}
	default:
		t.Error("a source silent for 9 s with a limit of 2 s: the viewer still waits")
	}
}

// Another channel's need of room must not end a channel that somebody is about
// to watch, although it has lingered until this turn.
func TestWaiter_keepsALingeringChannel(t *testing.T) {
	for _, stage := range []string{"about to start", "watching"} {
		r := newRig(Config{History: 1 << 20})
		s := &testStream{gop: 10, size: 20}
		for range 20 { // nobody watches: it lingers
			r.src.queue = append(r.src.queue, s.packets(70))
			r.turn(50 * time.Millisecond)
		}
		if r.ch.closed || r.ch.idleSince.IsZero() {
			t.Fatal("want the channel lingering")
		}
		w := r.wait()
		if stage == "watching" {
			r.loop.attach(r.ch, w, &viewer{conn: &testViewer{room: lots}, fd: -1})
		}
		r.loop.store.bytes += 2 << 20 // another channel's
		r.loop.makeRoom()
		r.loop.store.bytes -= 2 << 20
		if r.ch.closed {
			t.Errorf("%s: the channel was closed", stage)
		}
		r.loop.shutdown()
	}
}

// A viewer who is moved on must not wait for ever where a stream that had
// random-access points has no more of them.
func TestSlowViewer_goesOnWhereRandomAccessPointsEnd(t *testing.T) {
	for name, radio := range map[string]bool{"radio": true, "no more points": false} {
		s := &testStream{gop: 10, size: 20}
		r := live(Config{LagBytes: 512 << 10, StartWait: 4 * time.Second, ChannelHistory: 256 << 10}, s, 100)
		v := r.watch(&testViewer{room: 5000})
		if radio {
			s.gop = 0
		} else {
			s.gop, s.picture = 1<<30, 1
		}
		feed := func(n int) {
			for range n {
				r.src.queue = append(r.src.queue, s.packets(7))
				r.turn(4 * time.Millisecond)
			}
		}
		feed(1000)
		if v.skips == 0 {
			t.Fatalf("%s: want the viewer moved on", name)
		}
		r.open(v, lots)
		before := v.bytes
		feed(2000)
		if v.bytes == before {
			t.Errorf("%s: nothing was sent to a viewer for 8 s after he was moved on", name)
		}
		r.loop.shutdown()
	}
}

// What counts is what a viewer has missed, not how old the batch is in which he
// stopped: a slow stream fills one for a minute.
func TestSlowViewer_ofASlowStreamIsGivenHisTime(t *testing.T) {
	for others := range 2 {
		s := &testStream{size: 20}
		r := live(Config{Lag: 10 * time.Second}, s, 10)
		for range others {
			r.watch(&testViewer{room: lots})
		}
		v := r.watch(&testViewer{room: lots})
		feed := func(d time.Duration) {
			for range d / (100 * time.Millisecond) {
				r.src.queue = append(r.src.queue, s.packets(1)) // 15 kbit/s
				r.turn(100 * time.Millisecond)
			}
		}
		feed(30 * time.Second)
		v.conn.(*testViewer).room = 100
		feed(7 * time.Second)
		if v.skips != 0 {
			t.Errorf("%d others: moved on after 7 s, limit 10 s", others)
		}
		feed(6 * time.Second)
		if v.skips == 0 {
			t.Errorf("%d others: not moved on after 13 s, limit 10 s", others)
		}
		r.loop.shutdown()
	}
}

// A viewer begins as far back as the last random-access point: that is no lag.
func TestSlowViewer_mayTakeHisTimeOverTheHistory(t *testing.T) {
	for others := range 2 {
		s := &testStream{gop: 1 << 30, size: 20}
		r := live(Config{LagBytes: 1 << 20}, s, 10)
		for range others {
			r.watch(&testViewer{room: lots})
		}
		for range 200 {
			r.src.queue = append(r.src.queue, s.packets(70)) // 2.6 MB of history
			r.turn(10 * time.Millisecond)
		}
		v := r.watch(&testViewer{room: 100_000})
		for range 100 {
			r.src.queue = append(r.src.queue, s.packets(7))
			r.turn(10 * time.Millisecond)
			r.open(v, 30_000)
		}
		r.settle()
		if v.skips != 0 || v.conn.(*testViewer).err != nil {
			t.Errorf("%d others: a viewer who takes history at 24 Mbit/s was moved on %d times, %v", others, v.skips, v.conn.(*testViewer).err)
		}
		r.loop.shutdown()
	}
}
