package fcc

import (
	"testing"
	"time"

	"zapcast/fcc/wire"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
	"zapcast/mpegts"
)

// A zap is a source that is driven as a loop would.
type zap struct {
	t      *testing.T
	source *Source
	sink   *ingesttest.Sink
	opened time.Time
}

func (s *station) zap(cfg Config, dialect string, book *Book) *zap {
	s.t.Helper()
	z := &zap{t: s.t, opened: time.Now(), sink: &ingesttest.Sink{T: s.t}}
	var err error
	if z.source, err = Open(s.receiver, s.spec, Request{s.address(), dialect}, cfg, book); err != nil {
		s.t.Fatal(err)
	}
	return z
}

// until drives the source until ok or for the whole time.
func (z *zap) until(patience time.Duration, ok func(ingest.FCCStatus) bool) ingest.FCCStatus {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		for z.source.Drain(time.Now(), 256, z.sink) {
		}
		status := *z.source.Status().FCC
		if ok(status) {
			return status
		}
		if time.Now().After(end) {
			z.t.Fatalf("not within %v: %+v; %s", patience, status, z.source.Seen())
		}
	}
}

func handed(s ingest.FCCStatus) bool   { return s.HandOver > 0 }
func finished(s ingest.FCCStatus) bool { return s.State == "" }

// whole checks that nothing is missing, twice there or out of order from the
// first random-access point on.
func (z *zap) whole() (first uint64, n int) {
	z.t.Helper()
	numbers, random := ingesttest.VideoNumbers(z.sink.Bytes)
	if len(numbers) == 0 || !random {
		z.t.Fatalf("got %d video packets, the first a random-access point: %t", len(numbers), random)
	}
	for i, number := range numbers {
		if number != numbers[0]+uint64(i) {
			z.t.Fatalf("packet %d of %d: got number %d, want %d; %+v", i, len(numbers), number, numbers[0]+uint64(i), *z.source.Status().FCC)
		}
	}
	return numbers[0], len(numbers)
}

func TestSource_burstLeadsIntoTheMulticast(t *testing.T) {
	for _, dialect := range Dialects {
		for _, join := range []string{Hedged, OnSync} {
			plain := join == Hedged && dialect == Huawei
			t.Run(dialect+" "+join, func(t *testing.T) {
				s := newStation(t, &station{speaks: dialect, base: 64000, syncAfter: 300 * time.Millisecond})
				z := s.zap(Config{Join: join, Plain: plain}, dialect, NewBook())
				status := z.until(10*time.Second, handed)
				z.until(10*time.Second, finished)
				z.whole()
				if status.Kind != ingest.StartBurst || status.RandomAccess > 100*time.Millisecond || status.Reason != "" {
					t.Errorf("got %+v, want a start with the burst, soon", status)
				}
				if lost := z.source.Status().Lost; lost != 0 {
					t.Errorf("got %d lost", lost)
				}
				if err := z.source.Close(); err != nil {
					t.Error(err)
				}
				said := s.heard()
				if len(said) < 2 {
					t.Fatalf("got %d messages, want request and termination", len(said))
				}
				forced := true
				switch m := said[len(said)-1].(type) {
				case *wire.TelecomTermination:
					forced = m.Forced
				case *wire.HuaweiTermination:
					forced = m.Forced
				case *wire.RAMSTermination:
					forced = m.First == nil
				}
				if forced {
					t.Errorf("last message: got %#v, want a termination with a sequence number", said[len(said)-1])
				}
			})
		}
	}
}

// A server that is no use never makes a start later than the group alone, and
// one that may be sending is told to stop.
func TestSource_badServersCostNothing(t *testing.T) {
	const tolerance = 20 * time.Millisecond
	for name, s := range map[string]*station{
		"dead":                    {},
		"answers after 300 ms":    {speaks: Telecom, delay: 300 * time.Millisecond},
		"sends nothing":           {speaks: Telecom, nothing: true},
		"stops halfway":           {speaks: Telecom, most: 500},
		"refuses":                 {speaks: Telecom, refuse: true},
		"is deaf to terminations": {speaks: Telecom, deaf: true, factor: 1.3},
	} {
		t.Run(name, func(t *testing.T) {
			s.silent.Store(true) // until both listen
			newStation(t, s)
			z := s.zap(Config{}, Telecom, NewBook())
			// The same group without a server: its next random-access point is 0.8 s away.
			plain, err := ingest.OpenMulticast(s.receiver, s.spec)
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			s.silent.Store(false)

			// A machine that is busy has rounds that last: what the group alone
			// brings is looked at first, at the same time.
			took := [2]time.Duration{}
			sinks := [2]*ingesttest.Sink{{T: t}, z.sink}
			for end := time.Now().Add(10 * time.Second); took[0] == 0 || took[1] == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("no start within 10 s: got %v; %+v", took, *z.source.Status().FCC)
				}
				now := time.Now() // of one round of a loop
				for i, source := range []ingest.Source{plain, z.source} {
					for source.Drain(now, 256, sinks[i]) {
					}
					if took[i] == 0 && hasPoint(sinks[i].Bytes) {
						took[i] = now.Sub(z.opened)
					}
				}
			}
			if took[1] > took[0]+tolerance {
				t.Errorf("start after %v, without a burst %v; %+v", took[1], took[0], *z.source.Status().FCC)
			}
			if err := z.source.Close(); err != nil {
				t.Error(err)
			}
			if z.source.machine != nil {
				t.Error("the conversation is open after Close")
			}
			if s.speaks == "" {
				return
			}
			said := s.heard()
			if _, ok := said[len(said)-1].(*wire.TelecomTermination); !ok {
				t.Errorf("last message: got %#v, want a termination", said[len(said)-1])
			}
		})
	}
}

// hasPoint reports whether a random-access point is in it.
func hasPoint(ts []byte) bool {
	for ; len(ts) >= mpegts.PacketSize; ts = ts[mpegts.PacketSize:] {
		if _, random := ingesttest.VideoNumbers(ts[:mpegts.PacketSize]); random {
			return true
		}
	}
	return false
}

// A loop that is late reads more of a burst at once than the window spans. The
// holes of the burst that the multicast has filled stay filled.
func TestSource_lateLoop(t *testing.T) {
	s := &station{base: 65000, every: 4000}
	s.silent.Store(true)
	newStation(t, s)
	z := s.zap(Config{}, Telecom, NewBook())
	const first, last = 500, 1800 // of the multicast
	for n := uint32(first); n <= last; n++ {
		s.receiver.Send(s.spec.String(), s.datagram(n, 7))
	}
	for z.source.Drain(time.Now(), 256, z.sink) {
	}
	if len(z.sink.Bytes) > 0 {
		t.Fatalf("got %d bytes before the burst, want the multicast to wait", len(z.sink.Bytes))
	}
	now := time.Now()
	for n := range uint32(last) {
		if n < first || n%100 != 5 {
			z.source.seam.burst(s.datagram(n, 9), s.address(), now)
		}
	}
	z.until(10*time.Second, handed)
	want := int(ingesttest.VideoFirst(last+1, s.every))
	if begin, n := z.whole(); begin != 0 || n != want {
		t.Errorf("got %d video packets from %d on, want %d from 0 on", n, begin, want)
	}
	if status := z.source.Status(); status.Lost != 0 || status.FCC.Kind != ingest.StartBurst {
		t.Errorf("got %d lost, %+v", status.Lost, status.FCC)
	}
	if err := z.source.Close(); err != nil {
		t.Error(err)
	}
}

// A burst that begins as the multicast's own random-access point comes leaves
// nothing of itself before it.
func TestSource_multicastWinsOverTheFirstOfTheBurst(t *testing.T) {
	s := &station{base: 65000, every: 1000}
	s.silent.Store(true)
	newStation(t, s)
	z := s.zap(Config{}, Telecom, NewBook())
	const first, last = 2000, 2100 // of the multicast, which begins with a random-access point
	for n := uint32(first); n <= last; n++ {
		s.receiver.Send(s.spec.String(), s.datagram(n, 7))
	}
	now := time.Now() // of both: what has come of the burst still waits for its order
	z.source.seam.burst(s.datagram(1000, 9), s.address(), now)
	z.source.Drain(now, 256, z.sink)
	z.until(10*time.Second, func(status ingest.FCCStatus) bool { return status.RandomAccess > 0 })
	want := int(ingesttest.VideoFirst(last+1, s.every) - ingesttest.VideoFirst(first, s.every))
	if begin, n := z.whole(); begin != ingesttest.VideoFirst(first, s.every) || n != want {
		t.Errorf("got %d video packets from %d on, want %d from payload %d on", n, begin, want, first)
	}
	if status := z.source.Status(); status.Lost != 0 || status.FCC.Kind != ingest.StartMulticast || status.FCC.Reason != reasonMulticast {
		t.Errorf("got %d lost, %+v", status.Lost, status.FCC)
	}
	if err := z.source.Close(); err != nil {
		t.Error(err)
	}
}
