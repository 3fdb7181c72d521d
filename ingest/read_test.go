package ingest

import (
	"bytes"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"
)

// The mixture of sizes and the bursts of a sender that a receive block counted
// in TS packets would trip over, with a buffer of the usual
// net.core.rmem_default. The sockets are real, the time is not: a busy machine
// must not fail it.
func TestReceiver_burstsWithASmallBuffer(t *testing.T) {
	lo := loopback(t)
	const (
		rmemDefault = 212992
		bursts      = 200
		perBurst    = 64
		bitRate     = 40e6
		longestTick = 16 * time.Millisecond
	)
	onEach(t, ReceiverConfig{ReadBuffer: rmemDefault / 2}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f := open(t, r, FlowSpec{Group: group, Interface: lo})
		if got := status(f).ReceiveBuffer; got != 0 && got != rmemDefault {
			t.Logf("receive buffer: got %d, wanted %d for this test", got, rmemDefault)
		}
		c := sendFrom(t, "127.0.0.1", lo)
		sizes := []int{188, 376, 940, 1316}
		buf := bytes.Repeat([]byte{0x47}, 1316)
		sent, sentBytes := 0, 0
		burst := func() {
			for range perBurst {
				size := sizes[sent%len(sizes)]
				buf[1], buf[2] = byte(sent>>8), byte(sent)
				if _, err := c.WriteToUDPAddrPort(buf[:size], group); err != nil {
					t.Fatalf("send: %v", err)
				}
				sent++
				sentBytes += size
			}
			if p, ok := f.(*plainFlow); ok { // its goroutine knows no tick
				eventually(t, func() bool { return int(p.tail.Load())+int(p.overflow.Load()) == sent }, "the ring is filled")
			}
		}
		start := time.Unix(1, 0)
		now, nextBurst, next := start, start, 0
		var longest time.Duration
		for sent < bursts*perBurst {
			for ; !nextBurst.After(now); nextBurst = start.Add(time.Duration(float64(sentBytes) * 8 / bitRate * float64(time.Second))) {
				burst()
			}
			r.Begin(now)
			for end := time.Now().Add(patience); next < sent && time.Now().Before(end); {
				datagrams, _ := f.Read(128)
				for _, d := range datagrams {
					if got := int(d[1])<<8 | int(d[2]); got != next&0xffff || len(d) != sizes[next%len(sizes)] {
						t.Fatalf("datagram %d: got number %d and %d bytes (%+v)", next, got, len(d), status(f))
					}
					next++
				}
			}
			r.End()
			pause := min(f.Interval(), longestTick)
			longest = max(longest, pause)
			now = now.Add(pause)
		}
		if s := status(f); next != sent || s.Overflow != 0 || s.Malformed != 0 {
			t.Errorf("got %d datagrams, overflow %d, cut %d; want %d, 0, 0", next, s.Overflow, s.Malformed, sent)
		}
		t.Logf("longest interval %s, at the end %s", longest, f.Interval())
	})
}

func TestReceiver_readDoesNotAllocate(t *testing.T) {
	lo := loopback(t)
	onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f := open(t, r, FlowSpec{Group: group, Interface: lo})
		c := sendFrom(t, "127.0.0.1", lo)
		payload := bytes.Repeat([]byte{0x47}, 1316)
		now := time.Now()
		round := func() {
			for range 32 {
				if _, err := c.WriteToUDPAddrPort(payload, group); err != nil {
					t.Fatal(err)
				}
			}
			now = now.Add(100 * time.Millisecond)
			r.Begin(now)
			for n := 0; n < 32; {
				datagrams, _ := f.Read(128)
				n += len(datagrams)
				if len(datagrams) == 0 {
					runtime.Gosched()
				}
			}
			r.End()
			f.Interval()
		}
		for range 2 * plainSlots / 32 { // every slot of the ring gets its memory
			round()
		}
		if got := testing.AllocsPerRun(50, round); got != 0 {
			t.Errorf("got %v allocations for 32 datagrams, want 0", got)
		}
	})
}

func TestReceiver_openedFromManyGoroutines(t *testing.T) {
	lo := loopback(t)
	for name, cfg := range ways() {
		t.Run(name, func(t *testing.T) {
			cfg.atOnce = false // it reads where the loop alone may
			r, err := NewReceiver(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			flows := make(chan Flow, 64)
			var wg sync.WaitGroup
			for i := range cap(flows) {
				group := newGroup(t)
				wg.Go(func() {
					spec := FlowSpec{Group: group, Interface: lo}
					if i%2 == 1 {
						spec.Source = netip.MustParseAddr("127.0.0.1")
					}
					f, err := r.Open(spec)
					if err != nil {
						t.Error(err)
						return
					}
					flows <- f
				})
			}
			go func() { wg.Wait(); close(flows) }()
			for f := range flows { // the loop: takes what is opened, reads, closes
				r.Begin(time.Now())
				f.Read(128)
				f.Rejoin()
				status(f)
				r.End()
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestReceiver_closeLeavesNothingOpen(t *testing.T) {
	lo := loopback(t)
	for name, cfg := range ways() {
		t.Run(name, func(t *testing.T) {
			cfg.Refresh, cfg.Logger = time.Hour, slog.New(slog.DiscardHandler)
			round := func() {
				r, err := NewReceiver(cfg)
				if err != nil {
					t.Fatal(err)
				}
				for range 8 {
					f, err := r.Open(FlowSpec{Group: newGroup(t), Interface: lo})
					if err != nil {
						t.Fatal(err)
					}
					if err := f.Close(); err != nil {
						t.Error(err)
					}
				}
				for range 8 {
					if _, err := r.Open(FlowSpec{Group: newGroup(t), Interface: "none"}); err == nil {
						t.Error("open on a missing interface: got no error")
					}
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			round() // the runtime's own descriptors come with the first
			goroutines, descriptors := runtime.NumGoroutine(), countDescriptors(t)
			for range 5 {
				round()
			}
			eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines }, "goroutines end")
			if got := countDescriptors(t); got > descriptors {
				t.Errorf("descriptors: got %d, want %d as before", got, descriptors)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	lo := loopback(b)
	for name, cfg := range ways() {
		b.Run(name, func(b *testing.B) {
			r, err := NewReceiver(cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			group := newGroup(b)
			f, err := r.Open(FlowSpec{Group: group, Interface: lo})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			c := sendFrom(b, "127.0.0.1", lo)
			payload := bytes.Repeat([]byte{0x47}, 1328)
			const batch = 64
			var spent time.Duration
			datagrams, calls := 0, 0
			b.ReportAllocs()
			b.SetBytes(batch * int64(len(payload)))
			for b.Loop() {
				for range batch {
					if _, err := c.WriteToUDPAddrPort(payload, group); err != nil {
						b.Fatal(err)
					}
				}
				start := time.Now()
				r.Begin(start)
				for n := 0; n < batch; {
					if n > 0 {
						r.Begin(start)
					}
					got, _ := f.Read(128)
					n += len(got)
					datagrams += len(got)
					if len(got) > 0 {
						calls++
					}
				}
				r.End()
				spent += time.Since(start)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(datagrams), "read-ns/packet")
			b.ReportMetric(float64(datagrams)/float64(calls), "packets/batch")
		})
	}
}
