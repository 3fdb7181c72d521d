package fanout

import (
	"strings"
	"testing"
	"time"
)

// Where the system has no memory for a channel, that channel ends, and nobody
// else notices.
func TestMemory_channelEndsWhereThereIsNone(t *testing.T) {
	for name, viewers := range map[string]int{"one viewer": 1, "two viewers, no memfd": 2} {
		t.Run(name, func(t *testing.T) {
			s := &testStream{gop: 100, size: 20} // more between two points than spare blocks hold
			r := live(Config{Plain: true}, s, 100)
			defer r.loop.shutdown()
			w := &waiter{ready: make(chan error, 1)}
			other, _ := r.loop.join("another", w)
			r.loop.opened(other, &testSource{}, nil)
			for range viewers {
				r.watch(&testViewer{room: lots})
			}
			r.loop.store.alloc = func(int) []byte { return nil }
			for range 200 {
				r.src.queue = append(r.src.queue, s.packets(7))
				r.turn(4 * time.Millisecond)
			}
			if !r.ch.closed || len(r.ch.viewers) > 0 {
				t.Errorf("channel closed %t, %d viewers, want it to have ended", r.ch.closed, len(r.ch.viewers))
			}
			if r.loop.store.bytes != 0 || r.loop.store.used != 0 {
				t.Errorf("still held: %d bytes in %d blocks", r.loop.store.bytes, r.loop.store.used)
			}
			select {
			case err := <-w.ready:
				t.Errorf("another channel's viewer was answered: %v", err)
			default:
			}
			if other.closed {
				t.Error("another channel was closed")
			}
		})
	}
}

// Unix sockets have no time-out of the kernel's, and a source may be silent for
// longer than a viewer may stand still.
func TestStalledViewer_isGoneThoughNothingComes(t *testing.T) {
	for _, others := range []int{0, 1} {
		s := &testStream{gop: 10, size: 20}
		r := live(Config{Silence: 10 * time.Minute, Lag: time.Hour, LagBytes: 1 << 30}, s, 100)
		stalled := r.watch(&testViewer{room: 5000})
		for range others {
			r.watch(&testViewer{room: lots})
		}
		r.src.queue = append(r.src.queue, s.packets(700))
		begun := r.now
		for !stalled.gone && r.now.Sub(begun) < 2*time.Minute {
			r.turn(100 * time.Millisecond)
		}
		if took := r.now.Sub(begun); took > time.Minute {
			t.Errorf("beside %d others: want him gone within a minute, took %v", others, took)
		}
		if len(r.ch.viewers) != others {
			t.Errorf("%d viewers left, want %d", len(r.ch.viewers), others)
		}
		r.loop.shutdown()
	}
}

// A channel that ends does not end between a viewer's answer and his start: he
// would get a connection that closes without a word.
func TestSilence_whoWasToldToStartGetsHisHeader(t *testing.T) {
	s := &testStream{gop: 10, size: 20}
	r := live(Config{Silence: 2 * time.Second}, s, 100)
	defer r.loop.shutdown()
	r.watch(&testViewer{room: lots})
	r.turn(time.Second)
	w := r.wait()
	if err := <-w.ready; err != nil {
		t.Fatal(err)
	}
	for range 30 {
		r.turn(100 * time.Millisecond)
	}
	heard := &headerViewer{testViewer: testViewer{room: lots}}
	r.loop.attach(r.ch, w, &viewer{conn: heard, fd: -1, prefix: []byte("HTTP/1.1 200 OK\r\n\r\n")})
	if !strings.HasPrefix(heard.got, "HTTP/1.1 200 OK") {
		t.Errorf("got %q, want his header", heard.got)
	}
	for range 10 {
		r.turn(100 * time.Millisecond)
	}
	if !r.ch.closed {
		t.Error("the silent channel is still there")
	}
}

// headerViewer keeps the first thing that he is sent.
type headerViewer struct {
	testViewer
	got string
}

func (c *headerViewer) write(b []byte) (int, error) {
	if c.got == "" {
		c.got = string(b)
		return len(b), nil
	}
	return c.testViewer.write(b)
}
