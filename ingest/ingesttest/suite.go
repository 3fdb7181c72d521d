package ingesttest

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"

	"zapcast/ingest"
	"zapcast/mpegts"
)

const (
	// patience is how long the suite waits for what must come: sources that read
	// real sockets have real delays.
	patience = 10 * time.Second
	pause    = time.Millisecond

	suiteMax = 64 // datagrams a Drain
)

// TestSource runs what every ingest.Source has to pass: the packets come out in
// order and whole, Status and Seen tell what came, Rejoin loses nothing, and
// Close leaves neither goroutine nor descriptor behind.
//
// open makes a source that has just been opened, and send, which hands it TS
// packets (between 1 and 7 whole ones) as its upstream would, each call one
// datagram or frame. It registers with t.Cleanup what else has to be closed.
// The suite drives the source as a loop does, with the time of time.Now, and
// sleeps between ticks while it waits for what was sent.
func TestSource(t *testing.T, open func(t *testing.T) (source ingest.Source, send func(ts []byte))) {
	t.Run("order", func(t *testing.T) { testOrder(t, open) })
	t.Run("sizes", func(t *testing.T) { testSizes(t, open) })
	t.Run("bounded turn", func(t *testing.T) { testTurn(t, open) })
	t.Run("silence", func(t *testing.T) { testSilence(t, open) })
	t.Run("rejoin", func(t *testing.T) { testRejoin(t, open) })
	t.Run("close", func(t *testing.T) { testClose(t, open) })
}

type opener = func(t *testing.T) (ingest.Source, func([]byte))

func testOrder(t *testing.T, open opener) {
	source, send := open(t)
	defer shut(t, source)
	sink := &Sink{T: t}
	var want []byte
	for i := range 500 {
		ts := TS(uint32(i), 7)
		send(ts)
		want = append(want, ts...)
		if i%50 == 49 {
			await(t, source, sink, suiteMax, len(want))
		}
	}
	compare(t, sink.Bytes, want)

	status := source.Status()
	if status.Bytes != int64(len(want)) || status.Packets != 500 || status.Lost != 0 {
		t.Errorf("status: got %d bytes, %d packets, %d lost, want %d, 500, 0", status.Bytes, status.Packets, status.Lost, len(want))
	}
	if status.Source == "" || status.Payload == "" || status.LastData.IsZero() {
		t.Errorf("status: got source %q, payload %q, last data at %v, want all of them", status.Source, status.Payload, status.LastData)
	}
}

func testSizes(t *testing.T, open opener) {
	source, send := open(t)
	defer shut(t, source)
	sink := &Sink{T: t}
	var want []byte
	for i := range 70 {
		ts := TS(uint32(i), 1+i%7)
		send(ts)
		want = append(want, ts...)
	}
	await(t, source, sink, suiteMax, len(want))
	compare(t, sink.Bytes, want)
}

func testTurn(t *testing.T, open opener) {
	source, send := open(t)
	defer shut(t, source)
	sink := &Sink{T: t}
	var want []byte
	for i := range 100 {
		ts := TS(uint32(i), 7)
		send(ts)
		want = append(want, ts...)
	}
	await(t, source, sink, 3, len(want))
	compare(t, sink.Bytes, want)
}

func testSilence(t *testing.T, open opener) {
	source, send := open(t)
	defer shut(t, source)
	sink := &Sink{T: t}
	for range 5 {
		source.Drain(time.Now(), suiteMax, sink)
		time.Sleep(pause)
	}
	status := source.Status()
	if len(sink.Bytes) != 0 || status.Bytes != 0 || !status.LastData.IsZero() {
		t.Errorf("nothing was sent: got %d bytes, status %d bytes, last data at %v", len(sink.Bytes), status.Bytes, status.LastData)
	}
	before := source.Seen()
	if before == "" {
		t.Error("nothing was sent: Seen is empty")
	}
	ts := TS(1, 7)
	send(ts)
	await(t, source, sink, suiteMax, len(ts))
	if after := source.Seen(); after == before {
		t.Errorf("data came: Seen still says %q", after)
	}
	if interval := source.Interval(); interval < 0 {
		t.Errorf("Interval: got %v", interval)
	}
}

func testRejoin(t *testing.T, open opener) {
	source, send := open(t)
	defer shut(t, source)
	sink := &Sink{T: t}
	var want []byte
	for i := range 30 {
		ts := TS(uint32(i), 7)
		send(ts)
		want = append(want, ts...)
		if i%10 == 5 {
			source.Rejoin()
		}
	}
	await(t, source, sink, suiteMax, len(want))
	compare(t, sink.Bytes, want)
}

func testClose(t *testing.T, open opener) {
	goroutines, descriptors := runtime.NumGoroutine(), countDescriptors()
	t.Run("open and shut", func(t *testing.T) { // its clean-up runs before the count
		source, send := open(t)
		sink := &Sink{T: t}
		ts := TS(1, 7)
		send(ts)
		await(t, source, sink, suiteMax, len(ts))
		send(TS(2, 7)) // still waiting
		shut(t, source)
		if err := source.Close(); err != nil {
			t.Errorf("second Close: got %v, want nil", err)
		}
	})
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > goroutines || countDescriptors() > descriptors {
		if time.Now().After(deadline) {
			t.Fatalf("after Close: got %d goroutines and %d descriptors, want %d and %d as before",
				runtime.NumGoroutine(), countDescriptors(), goroutines, descriptors)
		}
		time.Sleep(pause)
	}
}

// await drains source until sink holds n bytes.
func await(t *testing.T, source ingest.Source, sink *Sink, max, n int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for len(sink.Bytes) < n {
		if source.Drain(time.Now(), max, sink) {
			continue
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: got %d bytes, want %d; the source has seen: %s", patience, len(sink.Bytes), n, source.Seen())
		}
		time.Sleep(pause)
	}
}

func compare(t *testing.T, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	t.Errorf("stream: got %d bytes, want %d, first difference at byte %d (TS packet %d)", len(got), len(want), at, at/mpegts.PacketSize)
}

func shut(t *testing.T, source ingest.Source) {
	t.Helper()
	if err := source.Close(); err != nil {
		t.Errorf("Close: got %v, want nil", err)
	}
}

// countDescriptors returns how many descriptors the process has open, or zero
// where the system does not tell.
func countDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// Sink is an ingest.Sink that keeps a copy of everything, and holds a source to
// what it owes to Append.
type Sink struct {
	T       testing.TB
	Bytes   []byte
	Appends int // calls so far
}

// Append implements ingest.Sink. It reports an error for an empty call, an
// empty slice, and anything that is not whole TS packets.
func (s *Sink) Append(ts [][]byte) {
	s.T.Helper()
	s.Appends++
	if len(ts) == 0 {
		s.T.Error("Append without packets")
	}
	for i, b := range ts {
		if !mpegts.Whole(b) {
			s.T.Errorf("Append: slice %d of %d (%d bytes) is not whole TS packets", i, len(ts), len(b))
		}
		s.Bytes = append(s.Bytes, b...)
	}
}
