package ingest_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

var epoch = time.Date(2025, 10, 8, 19, 0, 0, 0, time.UTC)

// endless is a receiver with one flow on which a batch is always waiting. It
// does no more for it than to write the next sequence numbers.
type endless struct {
	batch [][]byte
	seq   uint16
	step  func(seq uint16) uint16
}

func newEndless(n int, step func(uint16) uint16) *endless {
	e := &endless{step: step}
	for range n {
		e.batch = append(e.batch, ingesttest.Datagram(0, 1, ingesttest.TS(1, 7)))
	}
	return e
}

func (e *endless) Read(int) (datagrams [][]byte, more bool) {
	for _, b := range e.batch {
		binary.BigEndian.PutUint16(b[2:], e.step(e.seq))
		e.seq++
	}
	return e.batch, false
}

func (e *endless) Open(ingest.FlowSpec) (ingest.Flow, error) { return e, nil }
func (*endless) Begin(time.Time)                             {}
func (*endless) End()                                        {}
func (*endless) Report() (r ingest.ReceiverStatus)           { return r }
func (*endless) Status(*ingest.Status)                       {}
func (*endless) Interval() time.Duration                     { return 0 }
func (*endless) Rejoin()                                     {}
func (*endless) Close() error                                { return nil }

// counter is a sink that only counts.
type counter struct{ appends, slices int }

func (c *counter) Append(ts [][]byte) {
	c.appends++
	c.slices += len(ts)
}

const batch = 64

func openEndless(tb testing.TB, step func(uint16) uint16) *ingest.Multicast {
	spec := ingest.FlowSpec{Group: netip.MustParseAddrPort("239.1.1.1:5000")}
	m, err := ingest.OpenMulticast(newEndless(batch, step), spec)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func inOrder(seq uint16) uint16   { return seq }
func reordered(seq uint16) uint16 { return seq ^ 1 }

func TestMulticast_allocatesNothing(t *testing.T) {
	for name, step := range map[string]func(uint16) uint16{"in order": inOrder, "reordered": reordered} {
		m := openEndless(t, step)
		sink := &counter{}
		now := epoch
		drain := func() {
			now = now.Add(16 * time.Millisecond)
			m.Drain(now, batch, sink)
		}
		for range 100 {
			drain()
		}
		before := *sink
		if got := testing.AllocsPerRun(1000, drain); got != 0 {
			t.Errorf("%s: got %v allocations a batch, want 0", name, got)
		}
		appends, slices := sink.appends-before.appends, sink.slices-before.slices
		if appends != 1001 || slices != 1001*batch {
			t.Errorf("%s: got %d calls of Append with %d slices for 1001 batches of %d", name, appends, slices, batch)
		}
	}
}

func BenchmarkMulticast_inOrder(b *testing.B)   { benchmarkMulticast(b, inOrder) }
func BenchmarkMulticast_reordered(b *testing.B) { benchmarkMulticast(b, reordered) }

func benchmarkMulticast(b *testing.B, step func(uint16) uint16) {
	m := openEndless(b, step)
	sink := &counter{}
	b.ReportAllocs()
	b.SetBytes(batch * 1316)
	drains := 0
	for b.Loop() {
		m.Drain(epoch, batch, sink)
		drains++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(drains*batch), "ns/packet")
}
