package ingest

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pion/rtp"
)

// encode builds an RTP packet with the library that is the oracle here.
func encode(tb testing.TB, packet rtp.Packet) []byte {
	tb.Helper()
	packet.Version = 2
	b, err := packet.Marshal()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func rtpPackets(tb testing.TB) [][]byte {
	payload := bytes.Repeat([]byte{0x47, 1, 2, 3}, 47)
	plain := rtp.Header{PayloadType: 33, SequenceNumber: 65535, Timestamp: 0xfedcba98, SSRC: 0x231d9a5a}
	marked := plain
	marked.Marker = true
	sources := plain
	sources.CSRC = make([]uint32, 15)
	extended := sources
	extended.Extension, extended.ExtensionProfile = true, 0x1234
	if err := extended.SetExtension(0, []byte{1, 2, 3, 4, 5, 6, 7, 8}); err != nil {
		tb.Fatal(err)
	}
	padded := plain
	padded.Padding, padded.PaddingSize = true, 9
	return [][]byte{
		encode(tb, rtp.Packet{Header: plain, Payload: payload}),
		encode(tb, rtp.Packet{Header: marked, Payload: payload}),
		encode(tb, rtp.Packet{Header: sources, Payload: payload}),
		encode(tb, rtp.Packet{Header: extended, Payload: payload}),
		encode(tb, rtp.Packet{Header: padded, Payload: payload}),
		encode(tb, rtp.Packet{Header: plain}),
	}
}

// checkRTP compares PeekRTP with the oracle.
func checkRTP(t *testing.T, b []byte) {
	t.Helper()
	h, payload, ok := PeekRTP(b)
	var want rtp.Packet
	err := want.Unmarshal(b)
	if err != nil || want.Version != 2 {
		// The oracle also looks into extensions of RFC 8285; their content is
		// no reason to drop a packet.
		looksInside := ok && b[0]&rtpExtension != 0
		if ok && (want.Version != 2 || !looksInside) {
			t.Fatalf("% x: accepted, want refused: version %d, %v", b, want.Version, err)
		}
		return
	}
	if !ok {
		t.Fatalf("% x: refused, want accepted", b)
	}
	got := RTPHeader{want.PayloadType, want.SequenceNumber, want.Timestamp, want.SSRC}
	if diff := cmp.Diff(got, h); diff != "" {
		t.Fatalf("% x: (-want +got):\n%s", b, diff)
	}
	if !bytes.Equal(payload, want.Payload) {
		t.Fatalf("% x: got payload % x, want % x", b, payload, want.Payload)
	}
}

func TestPeekRTP_everyTruncation(t *testing.T) {
	for _, b := range rtpPackets(t) {
		for n := range len(b) + 1 {
			checkRTP(t, b[:n])
		}
	}
}

// Lengths that contradict each other.
func TestPeekRTP_contradictions(t *testing.T) {
	f := func(name string, b []byte, want int) {
		t.Helper()
		_, payload, ok := PeekRTP(b)
		if got := len(payload); ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: got %t with %d bytes of payload, want %d (-1: refused)", name, ok, got, want)
		}
		checkRTP(t, b)
	}
	packet := func(first byte, n int, tail ...byte) []byte {
		b := make([]byte, n)
		b[0], b[1] = first, 33
		copy(b[n-len(tail):], tail)
		return b
	}
	f("11 bytes", packet(0x80, 11), -1)
	f("12 bytes", packet(0x80, 12), 0)
	f("version 1", packet(0x40, 20), -1)
	f("version 3", packet(0xc0, 20), -1)
	f("15 CSRC in 20 bytes", packet(0x8f, 20), -1)
	f("15 CSRC in 72 bytes", packet(0x8f, 72), 0)
	f("extension without room for its header", packet(0x90, 15), -1)
	f("extension of no words", packet(0x90, 16), 0)
	f("extension of 65535 words", packet(0x90, 20, 0xff, 0xff, 0, 0, 0, 0), -1)
	f("padding of 0", packet(0xa0, 20, 0), -1)
	f("padding of all", packet(0xa0, 20, 8), 0)
	f("padding of more", packet(0xa0, 20, 9), -1)
	f("padding, but no byte to say so", packet(0xa0, 12), -1)
	f("padding that reaches into the CSRC list", packet(0xa1, 20, 5), -1)
}

func FuzzPeekRTP(f *testing.F) {
	for _, b := range rtpPackets(f) {
		f.Add(b)
	}
	f.Fuzz(checkRTP)
}
