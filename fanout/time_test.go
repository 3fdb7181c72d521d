package fanout

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The tests here pass hours in virtual time.

// play lets the stream run for d, n packets each step.
func (r *testRig) play(s *testStream, d, step time.Duration, n int) {
	for end := r.now.Add(d); r.now.Before(end); {
		r.src.queue = append(r.src.queue, s.packets(n))
		r.turn(step)
	}
}

// complete checks that viewers have every packet so far.
func complete(t *testing.T, s *testStream, viewers ...*viewer) {
	t.Helper()
	for i, v := range viewers {
		if c := v.conn.(*testViewer); v.gone || c.err != nil || c.count != s.counter {
			t.Errorf("viewer %d: gone %v, got up to %d of %d, %v", i, v.gone, c.count, s.counter, c.err)
		}
	}
}

// With the settings as they are delivered, a source may pause for 1.5 s and
// longer, again and again; only after 5 s its viewers' answers end.
func TestSource_thatPausesKeepsItsViewers(t *testing.T) {
	for _, viewers := range []int{1, 2} {
		s := &testStream{gop: 10, size: 20}
		r := live(Config{}, s, 100)
		var all []*viewer
		for range viewers {
			all = append(all, r.watch(&testViewer{room: lots}))
		}
		for _, pause := range []time.Duration{1500 * time.Millisecond, 1500 * time.Millisecond, 4700 * time.Millisecond, 4700 * time.Millisecond} {
			for end := r.now.Add(pause); r.now.Before(end); {
				r.turn(50 * time.Millisecond)
			}
			r.play(s, time.Second, 10*time.Millisecond, 7)
			r.settle()
			complete(t, s, all...)
		}
		for end := r.now.Add(5100 * time.Millisecond); r.now.Before(end); {
			r.turn(50 * time.Millisecond)
		}
		for _, v := range all {
			if c := v.conn.(*testViewer); !v.gone || !c.ended || c.count != s.counter {
				t.Errorf("after 5.1 s without data: gone %v, ended %v, got up to %d of %d", v.gone, c.ended, c.count, s.counter)
			}
		}
		r.loop.engine.wg.Wait()
		if !r.src.closed {
			t.Error("after 5.1 s without data: the source is still open")
		}
	}
}

// One membership serves all viewers until the last has left, and the linger
// after him: who stays for five minutes notices nothing of who left.
func TestSource_staysUntilTheLastViewerHasLeft(t *testing.T) {
	s := &testStream{gop: 10, size: 20}
	r := live(Config{}, s, 100)
	first := r.watch(&testViewer{room: lots})
	second := r.watch(&testViewer{room: lots})
	r.play(s, time.Second, 20*time.Millisecond, 7)
	r.loop.socket(first, false, true)
	r.play(s, 300*time.Second, 20*time.Millisecond, 7)
	r.settle()
	complete(t, s, second)
	if !first.gone || len(r.ch.viewers) != 1 {
		t.Errorf("the viewer who left: gone %v, viewers counted %d", first.gone, len(r.ch.viewers))
	}
	r.loop.socket(second, false, true)
	r.play(s, defaultLinger-200*time.Millisecond, 20*time.Millisecond, 7)
	r.loop.engine.wg.Wait()
	if r.ch.closed || r.src.closed {
		t.Error("left before the linger was over")
	}
	r.play(s, 400*time.Millisecond, 20*time.Millisecond, 7)
	r.loop.engine.wg.Wait()
	if !r.ch.closed || !r.src.closed {
		t.Error("not left although the linger is over")
	}
}

// A viewer who gets 95 % of what he needs for ten minutes stays within the
// bounds of his lag, in bytes and in time: he is moved on to a random-access
// point, tables before it (testViewer checks that), and loses no more than he
// must.
func TestSlowViewer_atNineteenTwentiethsOfTheRate(t *testing.T) {
	const (
		step    = 20 * time.Millisecond
		packets = 14 // about 1 Mbit/s
		minutes = 10
	)
	for _, plain := range []bool{false, true} {
		for _, others := range []int{0, 1} {
			s := &testStream{gop: 25, size: 28} // a picture each two steps, a random-access point each second
			r := live(Config{Plain: plain}, s, 100)
			slow := r.watch(&testViewer{room: 50_000})
			var good []*viewer
			for range others {
				good = append(good, r.watch(&testViewer{room: lots}))
			}
			var worst time.Duration
			begun := s.counter
			for i := range minutes * int(time.Minute/step) {
				r.src.queue = append(r.src.queue, s.packets(packets))
				r.turn(step)
				r.open(slow, packets*packetBytes*95/100)
				if c := slow.conn.(*testViewer); i > 100 && !slow.parked {
					worst = max(worst, time.Duration(s.counter-c.count)*step/packets)
				}
				if slow.gone {
					t.Fatalf("gone after %v", time.Duration(i)*step)
				}
				if held := r.loop.store.bytes; held > defaultLagBytes+fileBytes {
					t.Fatalf("holds %d bytes for one slow viewer", held)
				}
			}
			name := fmt.Sprintf("plain=%v, %d others", plain, others)
			if limit := defaultLag + time.Second; worst > limit {
				t.Errorf("%s: lag up to %v, want at most %v", name, worst, limit)
			}
			c := slow.conn.(*testViewer)
			if c.err != nil || c.skips == 0 || int64(c.skips) > slow.skips {
				t.Errorf("%s: skips: seen %d, counted %d, %v", name, c.skips, slow.skips, c.err)
			}
			if share := float64(c.total) / float64(s.counter-begun); share < 0.93 {
				t.Errorf("%s: got %.1f %% of the stream through a connection for 95 %%", name, 100*share)
			}
			complete(t, s, good...)
			t.Logf("%s: lag up to %v, %d skips", name, worst, c.skips)
			r.loop.shutdown()
		}
	}
}

// One viewer stops reading for a minute. Three others get every packet, and
// what is kept for him is bounded.
func TestStalledViewer_doesNotHurtOthers(t *testing.T) {
	for _, policy := range []SlowPolicy{Skip, Disconnect} {
		for _, plain := range []bool{false, true} {
			const lag = 1 << 20
			s := &testStream{gop: 25, size: 28}
			r := live(Config{Plain: plain, Slow: policy, LagBytes: lag, ChannelHistory: lag}, s, 100)
			var good []*viewer
			for range 3 {
				good = append(good, r.watch(&testViewer{room: lots}))
			}
			stalled := r.watch(&testViewer{room: 100_000})
			for range 60 * 50 {
				r.src.queue = append(r.src.queue, s.packets(28))
				r.turn(20 * time.Millisecond)
				if held := r.loop.store.bytes; held > 2*lag+2*fileBytes {
					t.Fatalf("holds %d bytes", held)
				}
			}
			r.settle()
			complete(t, s, good...)
			if !stalled.gone {
				t.Error("who took nothing for a minute is still there")
			}
			r.loop.shutdown()
		}
	}
}

// A viewer who is too slow for minutes makes a line in the log each half
// minute, and the last one has the totals.
func TestSlowViewer_logsALineAnInterval(t *testing.T) {
	var log bytes.Buffer
	s := &testStream{gop: 5, size: 28}
	r := live(Config{LagBytes: 256 << 10, Logger: slog.New(slog.NewTextHandler(&log, nil))}, s, 100)
	slow := r.watch(&testViewer{room: 5000})
	r.watch(&testViewer{room: lots})
	log.Reset()
	const minutes = 5
	for range minutes * 60 * 50 {
		r.src.queue = append(r.src.queue, s.packets(28))
		r.turn(20 * time.Millisecond)
		r.open(slow, 28*packetBytes/4)
	}
	lines := strings.Count(log.String(), "\n")
	if slow.skips < 10*int64(lines) {
		t.Fatalf("skips: got %d for %d lines, want many more", slow.skips, lines)
	}
	if want := minutes * 60 / int(warnInterval/time.Second); lines < want-1 || lines > want+1 {
		t.Errorf("lines: got %d, want about %d:\n%s", lines, want, log.String())
	}
	totals := regexp.MustCompile(`skips=(\d+) skipped_bytes=(\d+)`).FindAllStringSubmatch(log.String(), -1)
	if len(totals) != lines {
		t.Errorf("lines with totals: got %d of %d:\n%s", len(totals), lines, log.String())
	}
	log.Reset()
	r.loop.drop(slow, "test")
	if got := log.String(); !strings.Contains(got, fmt.Sprintf("skips=%d", slow.skips)) {
		t.Errorf("the line at the end: got %q, want all %d skips", got, slow.skips)
	}
	r.loop.shutdown()
}

// Stream positions pass the limits of 32 bits, as they do after an hour at
// 8 Mbit/s: joins, shared batches, skips and history go on as before.
func TestPositions_passTheLimitsOf32Bits(t *testing.T) {
	for _, limit := range []int64{1 << 31, 1 << 32, 1 << 33} {
		for _, plain := range []bool{false, true} {
			s := &testStream{gop: 10, size: 20}
			r := newRig(Config{Plain: plain, LagBytes: 512 << 10})
			r.ch.chain.end = (limit - 1_000_000) / packetBytes * packetBytes
			feed := func(n int) {
				for range n {
					r.src.queue = append(r.src.queue, s.packets(7))
					r.turn(4 * time.Millisecond)
				}
			}
			feed(200)
			first := r.watch(&testViewer{room: lots})
			feed(200)
			second := r.watch(&testViewer{room: lots})
			slow := r.watch(&testViewer{room: 5000})
			var late []*viewer
			for range 10 { // 200 kB each, the limit in the middle
				for range 150 {
					feed(1)
					r.open(slow, 7*packetBytes/3)
				}
				late = append(late, r.watch(&testViewer{room: lots}))
				if v := late[len(late)-1]; v.start != "history" {
					t.Errorf("limit %d: a viewer at %d started %s, want from history", limit, r.ch.chain.end, v.start)
				}
			}
			r.open(slow, lots)
			feed(200)
			r.settle()
			if end := r.ch.chain.end; end < limit+500_000 || end%packetBytes != 0 {
				t.Fatalf("limit %d: the stream ends at %d", limit, end)
			}
			complete(t, s, append(late, first, second, slow)...)
			if slow.skips == 0 {
				t.Errorf("limit %d: the slow viewer was never moved on", limit)
			}
			r.loop.shutdown()
		}
	}
}
