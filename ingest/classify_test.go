package ingest

import (
	"bytes"
	"testing"
)

func TestClassify(t *testing.T) {
	sized := func(n int, head ...byte) []byte {
		b := make([]byte, n)
		copy(b, head)
		return b
	}
	ts := func(n int, extra ...byte) []byte {
		packet := sized(188, 0x47, 0x1f, 0xff, 0x10)
		return append(bytes.Repeat(packet, n), extra...)
	}
	offGrid := func(n, at int) []byte {
		b := ts(n)
		b[at*188] = 0x48
		return b
	}
	f := func(name string, b []byte, want Kind) {
		t.Helper()
		if got := Classify(b); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	f("nothing", nil, KindEmpty)

	f("RTCP sender report", sized(28, 0x80, 200, 0, 6), KindRTCP)
	f("RTCP feedback with more behind it", sized(40, 0x84, 205, 0, 2), KindRTCP)
	f("RTCP of the highest type", sized(8, 0x80, 211, 0, 1), KindRTCP)
	f("RTCP that claims too much, 12 bytes", sized(12, 0x80, 205, 0, 3), KindRTP)
	f("RTCP that claims too much, 8 bytes", sized(8, 0x80, 205, 0, 2), KindForeign)
	f("RTP of payload type 84, marked", sized(28, 0x80, 212, 0, 1), KindRTP)
	f("RTP of payload type 71, marked", sized(28, 0x80, 199, 0, 1), KindRTP)

	f("FEC", sized(1340, 0x80, 127), KindFEC)
	f("FEC, marked", sized(1340, 0x80, 0xff), KindFEC)
	f("FEC of the other type", sized(1340, 0x80, 97), KindFEC)
	f("FEC cut short", sized(11, 0x80, 127), KindForeign)

	f("RTP", sized(1328, 0x80, 33), KindRTP)
	f("RTP, marked", sized(1328, 0x80, 0xa1), KindRTP)
	f("RTP without payload", sized(12, 0x80, 33), KindRTP)
	f("RTP cut short", sized(11, 0x80, 33), KindForeign)
	f("version 1", sized(1328, 0x47, 33), KindForeign)
	f("version 3", sized(1328, 0xc0, 33), KindForeign)

	f("one TS packet", ts(1), KindTS)
	f("seven TS packets", ts(7), KindTS)
	f("TS packet cut short", ts(1)[:187], KindForeign)
	f("TS with a tail", ts(3, 1, 2, 3), KindForeign)
	f("TS with a long tail", ts(4, 1, 2, 3), KindTS)
	f("TS, second sync byte wrong", offGrid(7, 1), KindForeign)
	f("TS, fourth sync byte wrong", offGrid(7, 3), KindForeign)
	f("TS, fifth sync byte wrong", offGrid(7, 4), KindTS)

	f("a set-top box's greeting", sized(84, []byte("ZXV10STB")...), KindForeign)
	f("one byte", sized(1, 0x80), KindForeign)
}

func TestKind_String(t *testing.T) {
	want := []string{"empty", "RTCP", "FEC", "RTP", "MPEG-TS", "foreign"}
	for k := range Kind(kinds) {
		if got := k.String(); got != want[k] {
			t.Errorf("kind %d: got %q, want %q", k, got, want[k])
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, b := range rtpPackets(f) {
		f.Add(b)
	}
	f.Add(bytes.Repeat(append([]byte{0x47}, make([]byte, 187)...), 7))
	f.Fuzz(func(t *testing.T, b []byte) {
		kind := Classify(b)
		if _, _, ok := PeekRTP(b); ok && kind != KindRTP && kind != KindFEC && kind != KindRTCP {
			t.Errorf("% x is %v, and yet RTP", b, kind)
		}
	})
}
