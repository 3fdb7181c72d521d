package rtsp

import (
	"bytes"
	"testing"

	"zapcast/ingest/ingesttest"
	"zapcast/mpegts"
)

// join feeds pieces to a joiner, some at a time, and returns what comes out.
func join(pieces [][]byte) (out []byte) {
	var j joiner
	for _, p := range pieces {
		j.begin()
		j.add(p)
		for _, run := range j.packets(nil) {
			out = append(out, run...)
		}
	}
	return out
}

// A packet that nothing stands behind yet waits: it may be a sync byte by chance.
func TestJoiner_firstPacketWaitsForTheSecond(t *testing.T) {
	ts := ingesttest.TS(1, 2)
	if got := join([][]byte{ts[:188]}); len(got) > 0 {
		t.Errorf("one packet: got %d bytes, want to wait", len(got))
	}
	if got := join([][]byte{ts[:188], ts[188:]}); !bytes.Equal(got, ts) {
		t.Errorf("two packets: got %d bytes, want both", len(got))
	}
}

func FuzzJoiner(f *testing.F) {
	f.Add([]byte{100, 88, 1, 187, 255}, []byte("junk"), 3)
	f.Fuzz(func(t *testing.T, cuts, junk []byte, at int) {
		ts := ingesttest.TS(1, 12)
		at = max(0, min(at, len(ts)/188)) * 188
		stream := append(append(append([]byte{}, ts[:at]...), junk...), ts[at:]...)
		var pieces [][]byte
		for _, n := range cuts {
			n := min(int(n), len(stream))
			pieces = append(pieces, stream[:n])
			stream = stream[n:]
		}
		got := join(append(pieces, stream))
		if len(got) > 0 && !mpegts.Whole(got) {
			t.Fatalf("got %d bytes that are not whole packets", len(got))
		}
		if len(junk) == 0 && (!bytes.HasPrefix(ts, got) || len(got) < len(ts)-188) {
			t.Errorf("without junk: got %d bytes, want %d", len(got), len(ts))
		}
	})
}
