package playout

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// memory stands for a socket: it keeps what is sent, and when.
type memory struct {
	start time.Time
	got   []arrival
	stall func(n int) // called after the n-th datagram, to stand still
}

type arrival struct {
	sequence uint16
	ts       []byte
	at       time.Duration
}

func (m *memory) send(datagrams []datagram) error {
	for _, d := range datagrams {
		m.got = append(m.got, arrival{binary.BigEndian.Uint16(d.data[sequenceAt:]), bytes.Clone(d.data[rtpHeaderSize:]), time.Since(m.start)})
	}
	if m.stall != nil {
		m.stall(len(m.got))
	}
	return nil
}

func (m *memory) totals() (int64, int64, error) { return int64(len(m.got)), 0, nil }
func (m *memory) unblock()                      {}
func (m *memory) close() error                  { return nil }

// play runs a player in virtual time for as long as the context lasts.
func play(ctx context.Context, cfg Config, m *memory, files ...File) (Stats, error) {
	m.start = time.Now()
	return newPlayer(cfg, []sender{m}).Run(ctx, files...)
}

func TestPlayer_keepsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		file := steady(7, 0, 500) // 20 s, 10 packets in 40 ms
		stats, err := play(t.Context(), Config{}, &m, file.file())
		if err != nil {
			t.Fatal(err)
		}
		var ts []byte
		for i, a := range m.got {
			want := time.Duration(i) * 28 * time.Millisecond
			if late := a.at - want; late < 0 || late > minSleep {
				t.Fatalf("datagram %d sent at %v, want %v and %v more at most", i, a.at, want, minSleep)
			}
			if a.sequence != m.got[0].sequence+uint16(i) {
				t.Fatalf("datagram %d has sequence number %d after %d", i, a.sequence, m.got[0].sequence)
			}
			ts = append(ts, a.ts...)
		}
		if !bytes.Equal(ts, file.Bytes()) {
			t.Errorf("%d bytes arrived that are not the file's %d", len(ts), file.Len())
		}
		want := Stats{Position: 19992 * time.Millisecond, Datagrams: 715, Bytes: 940_000, Sent: 715}
		if stats != want {
			t.Errorf("stats %+v, want %+v", stats, want)
		}
	})
}

func TestPlayer_doesNotDriftOverHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hours = 30 * time.Hour // PCR and sequence number wrap on the way
		ctx, cancel := context.WithTimeout(t.Context(), hours)
		defer cancel()
		// Ten packets in 2 s make that bearable.
		b := &build{}
		for i := range int64(3) {
			b.packet(7, i*2*ticksPerSecond, i*180_000)
			for range 9 {
				b.packet(7, none, none)
			}
		}
		var m memory
		stats, err := play(ctx, Config{Loop: true}, &m, b.file())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v, want that of the context", err)
		}
		last := m.got[len(m.got)-1]
		want := time.Duration(len(m.got)-1) * 1400 * time.Millisecond
		if late := last.at - want; late < 0 || late > minSleep {
			t.Errorf("after %d datagrams the clock is %v late, want %v at most", len(m.got), late, minSleep)
		}
		if stats.Position < hours-2*time.Second || stats.Skipped != 0 {
			t.Errorf("stats %+v, want a position of %v", stats, hours)
		}
	})
}

func TestPlayer_catchesUpAfterAStallInBoundedBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stall = 300 * time.Millisecond
		m := memory{stall: func(n int) {
			if n == 1000 {
				time.Sleep(stall)
			}
		}}
		// 8 Mbit/s: a datagram in 1.316 ms.
		rate := Rate{BitsPerSecond: 8_000_000}
		if _, err := play(t.Context(), Config{Rate: rate}, &m, steady(7, 0, 2800).file()); err != nil {
			t.Fatal(err)
		}
		due := func(i int) time.Duration { return time.Duration(i) * 1316 * time.Microsecond }
		burst, at := 0, time.Duration(-1)
		caughtUp := time.Duration(0)
		for i, a := range m.got {
			if a.at < due(i) {
				t.Fatalf("datagram %d sent at %v, before its time %v", i, a.at, due(i))
			}
			if a.at != at {
				burst, at = 0, a.at
			}
			if burst++; burst > int(catchUp/due(1))+1 {
				t.Fatalf("%d datagrams sent at once, want no more than %v of the stream", burst, catchUp)
			}
			if i > 1000 && caughtUp == 0 && a.at-due(i) < 2*minSleep {
				caughtUp = a.at - due(1000) - stall
			}
		}
		// Twice as fast, the stall is made up for in as much time again.
		if caughtUp < stall/2 || caughtUp > stall*3/2 {
			t.Errorf("caught up after %v, want about %v", caughtUp, stall)
		}
	})
}

func TestPlayer_goesOnAfterALongStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory{stall: func(n int) {
			if n == 10 {
				time.Sleep(time.Hour)
			}
		}}
		stats, err := play(t.Context(), Config{}, &m, steady(7, 0, 100).file())
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Hour - stats.Skipped; d < 0 || d > 50*time.Millisecond {
			t.Errorf("skipped %v, want about an hour", stats.Skipped)
		}
		for i := 11; i < len(m.got); i++ {
			if gap := m.got[i].at - m.got[i-1].at; gap < 27*time.Millisecond || gap > 29*time.Millisecond {
				t.Fatalf("datagram %d sent %v after the one before, want 28ms", i, gap)
			}
		}
	})
}

func TestPlayer_impairments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		imp := Impairments{Drop: 0.1, Duplicate: 0.05, Reorder: 0.1, Distance: 4, Jitter: 50 * time.Millisecond}
		run := func() (Stats, []arrival) {
			var m memory
			stats, err := play(t.Context(), Config{Impairments: imp, Seed: 5}, &m, steady(7, 0, 1000).file())
			if err != nil {
				t.Fatal(err)
			}
			return stats, m.got
		}
		stats, got := run()
		if want := stats.Datagrams - stats.Dropped + stats.Duplicated; stats.Sent != want || len(got) != int(want) {
			t.Errorf("%d sent, want %d: %+v", len(got), want, stats)
		}
		if stats.Dropped == 0 || stats.Duplicated == 0 || stats.Reordered == 0 {
			t.Errorf("nothing happened: %+v", stats)
		}
		again, second := run()
		if again != stats {
			t.Errorf("second run with the same seed: %+v, want %+v", again, stats)
		}
		for i := range got {
			if got[i].sequence != second[i].sequence || got[i].at != second[i].at {
				t.Fatalf("datagram %d: %d at %v, want %d at %v as in the first run",
					i, second[i].sequence, second[i].at, got[i].sequence, got[i].at)
			}
		}
	})
}

func TestPlayer_reports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			m     memory
			times []time.Duration
			last  Stats
			start = time.Now()
		)
		cfg := Config{Report: func(s Stats) {
			times, last = append(times, time.Since(start)), s
		}}
		if _, err := play(t.Context(), cfg, &m, steady(7, 0, 250).file()); err != nil { // 10 s
			t.Fatal(err)
		}
		if len(times) != 4 {
			t.Fatalf("reports at %v, want one every 2 s", times)
		}
		if d := times[3] - last.Position; d < 0 || d > 50*time.Millisecond {
			t.Errorf("report at %v says %+v", times[3], last)
		}
	})
}

func TestPlayer_stopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		var m memory
		start := time.Now()
		if _, err := play(ctx, Config{Loop: true}, &m, steady(7, 0, 3).file()); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("ended after %v, want 3s", took)
		}
	})
}

func TestOpen_refuses(t *testing.T) {
	to := []Destination{{Addr: netip.MustParseAddrPort("239.255.77.9:5001")}}
	for want, cfg := range map[string]Config{
		"playout: no destination":                                 {},
		"playout: time to live 256: want 0 to 255":                {Destinations: to, TTL: 256},
		"playout: rate factor 1000: want 0.01 to 100":             {Destinations: to, Rate: Rate{Factor: 1000}},
		"playout: drop 2: want a share from 0% to 100%":           {Destinations: to, Impairments: Impairments{Drop: 2}},
		"playout: interface \"nope0\": no such network interface": {Destinations: to, Interface: "nope0"},
	} {
		p, err := Open(cfg)
		if err == nil || err.Error() != want {
			t.Errorf("Open(%+v) = %v, want %s", cfg, err, want)
		}
		if err == nil {
			p.Close()
		}
	}
	p := newPlayer(Config{}, nil)
	if _, err := p.Run(t.Context()); err == nil || err.Error() != "playout: no file" {
		t.Errorf("error %v, want: playout: no file", err)
	}
}
