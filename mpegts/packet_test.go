package mpegts

import (
	"bytes"
	"testing"
)

func TestPacket_fields(t *testing.T) {
	var m mux
	m.cc[0x1ABC] = 13
	p := m.packet(0x1ABC, true, []byte{discontinuityBit | randomAccessBit | pcrBit, 0, 0, 0, 0, 0xFE, 7}, []byte{1, 2, 3})
	if p.PID() != 0x1ABC || !p.UnitStart() || p.Scrambled() || p.Error() || !p.HasPayload() || p.Continuity() != 13 {
		t.Errorf("header read wrongly: % x", p[:4])
	}
	if !p.Discontinuity() || !p.RandomAccess() {
		t.Errorf("adaptation flags read wrongly: % x", p[:8])
	}
	if pcr, ok := p.PCR(); pcr != 300+7 || !ok {
		t.Errorf("PCR: got %d, %v, want 307, true", pcr, ok)
	}
	if got, want := p.Payload(), []byte{1, 2, 3}; !bytes.Equal(got, want) {
		t.Errorf("payload: got % x, want % x", got, want)
	}
}

func TestPacket_lyingLengths(t *testing.T) {
	var m mux
	p := m.packet(1, true, nil, make([]byte, PacketSize-headerSize))
	for control := range 4 {
		for length := range 256 {
			p[3], p[4], p[5] = byte(control)<<4, byte(length), 0xFF
			payload := -1
			switch {
			case control == 1:
				payload = 184
			case control == 3 && length < 183:
				payload = 183 - length
			}
			got := len(p.Payload())
			if p.Payload() == nil {
				got = -1
			}
			if got != payload {
				t.Errorf("control %d, length %d: got %d bytes of payload, want %d", control, length, got, payload)
			}
			_, ok := p.PCR()
			if want := control >= 2 && length >= 7 && length <= 183; ok != want {
				t.Errorf("control %d, length %d: PCR %v, want %v", control, length, ok, want)
			}
			if got, want := p.Discontinuity(), control >= 2 && length >= 1 && length <= 183; got != want {
				t.Errorf("control %d, length %d: discontinuity %v, want %v", control, length, got, want)
			}
		}
	}
}

func TestClock_roundTrip(t *testing.T) {
	for _, want := range []int64{0, 1, 299, 300, 511, 27_000_000, 1 << 32 * 300, ClockWrap27M - 301, ClockWrap27M - 1} {
		b := []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
		putClock27M(b, want)
		if got := clock27M(b); got != want {
			t.Errorf("PCR: got %d, want %d", got, want)
		}
		if b[4]&0x7E != 0x7E {
			t.Errorf("PCR %d: reserved bits changed: % x", want, b)
		}
		b = []byte{0xF1, 0xFF, 0xFF, 0xFF, 0xFF}
		putStamp90k(b, want/300)
		if got := stamp90k(b); got != want/300 {
			t.Errorf("PTS: got %d, want %d", got, want/300)
		}
		if b[0]&0xF1 != 0xF1 || b[2]&1 != 1 || b[4]&1 != 1 {
			t.Errorf("PTS %d: prefix or marker bits changed: % x", want/300, b)
		}
	}
}

func TestWhole_lengthsAndSync(t *testing.T) {
	b := make([]byte, 7*PacketSize)
	for i := 0; i < len(b); i += PacketSize {
		b[i] = SyncByte
	}
	for n := range len(b) + 1 {
		if got, want := Whole(b[:n]), n > 0 && n%PacketSize == 0; got != want {
			t.Errorf("%d bytes: got %v, want %v", n, got, want)
		}
	}
	for i := 0; i < len(b); i += PacketSize {
		b[i] = 0x46
		if Whole(b) {
			t.Errorf("no sync at %d: got true", i)
		}
		b[i] = SyncByte
	}
}

func BenchmarkWhole(b *testing.B) {
	ts := make([]byte, 7*PacketSize)
	for i := 0; i < len(ts); i += PacketSize {
		ts[i] = SyncByte
	}
	b.ReportAllocs()
	for b.Loop() {
		if !Whole(ts) {
			b.Fatal("not whole")
		}
	}
}
