package fec

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/pion/rtp"
)

// testDatagram is datagram number n of a stream whose lengths, stamps, markers
// and CSRC lists vary as far as the scheme allows.
func testDatagram(n uint16, varied bool) []byte {
	random := rand.New(rand.NewPCG(uint64(n), 3))
	h := rtp.Header{Version: 2, PayloadType: 33, SequenceNumber: n, Timestamp: uint32(3000 * int32(int16(n))), SSRC: 0x231d9a5a}
	size := 188 * 7
	if varied {
		size = 188 * (1 + random.IntN(7))
		h.Marker = random.IntN(2) == 0
		if random.IntN(4) == 0 {
			h.CSRC = []uint32{random.Uint32(), random.Uint32()}
		}
	}
	payload := make([]byte, size)
	for i := range payload {
		payload[i] = byte(random.Uint32())
	}
	for i := 0; i < size; i += 188 {
		payload[i] = 0x47
	}
	b, err := (&rtp.Packet{Header: h, Payload: payload}).Marshal()
	if err != nil {
		panic(err)
	}
	return b
}

// anyLength is a Check for what testDatagram makes.
func anyLength(datagram []byte) int {
	n := rtpHeaderBytes + 4*int(datagram[0]&0x0f)
	if n > len(datagram) {
		return 0
	}
	payload := datagram[n:]
	return n + tsLength(append(make([]byte, rtpHeaderBytes), payload...)) - rtpHeaderBytes
}

// give hands a parity datagram to a decoder as the receiving side does.
func give(tb testing.TB, d *Decoder, p []byte) {
	tb.Helper()
	if p[1]&rtpPayloadType == RSPayloadType {
		h, parity, err := ParseRS(p[rtpHeaderBytes:])
		if err != nil {
			tb.Fatal(err)
		}
		d.RS(h, parity)
		return
	}
	h, data, err := ParseXOR(p)
	if err != nil {
		tb.Fatal(err)
	}
	d.XOR(h, data)
}

// encoder is what RSEncoder and XOREncoder have in common.
type encoder interface {
	Add(datagram []byte) []Parity
}

// A sent datagram is media if its number counts, else parity.
type sent struct {
	media bool
	seq   uint16
	bytes []byte
}

// transmit makes n media datagrams from a number on, and their parity.
func transmit(e encoder, from uint16, n int, varied bool) (list []sent) {
	for i := range n {
		b := testDatagram(from+uint16(i), varied)
		list = append(list, sent{true, from + uint16(i), b})
		for _, p := range e.Add(b) {
			list = append(list, sent{false, 0, append([]byte(nil), p.Datagram...)})
		}
	}
	return list
}

func mustRS(tb testing.TB, k, m int, dialect Dialect) *RSEncoder {
	tb.Helper()
	e, err := NewRSEncoder(k, m, dialect)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func mustXOR(tb testing.TB, l, d int, rows bool) *XOREncoder {
	tb.Helper()
	e, err := NewXOREncoder(l, d, rows)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// play gives list to a decoder and checks that what comes back is what was
// sent, once each. It returns which numbers came back.
func play(t *testing.T, d *Decoder, list []sent, original func(uint16) []byte) map[uint16]Method {
	t.Helper()
	back := map[uint16]Method{}
	for _, s := range list {
		if s.media {
			d.Media(s.seq, s.bytes)
		} else {
			give(t, d, s.bytes)
		}
		for _, r := range d.Take() {
			if _, twice := back[r.Sequence]; twice {
				t.Fatalf("%d came back twice", r.Sequence)
			}
			back[r.Sequence] = r.Method
			if want := original(r.Sequence); string(r.Datagram) != string(want) {
				t.Fatalf("%d: got %d bytes % x …, want %d bytes % x …", r.Sequence, len(r.Datagram), r.Datagram[:16], len(want), want[:16])
			}
		}
	}
	return back
}

// Random geometry, losses within the code's power, reordering and duplicates:
// everything comes back.
func TestDecoder_randomReedSolomon(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for round := range 60 {
		k, dialect := 1+random.IntN(120), Dialect(round%2)
		m := 1 + random.IntN(min(20, 255-k))
		from := uint16(65000 + random.IntN(2000))
		varied := round%3 == 0
		list := transmit(mustRS(t, k, m, dialect), from, 3*k, varied)
		lost := map[uint16]bool{}
		for g := range 3 {
			for _, place := range random.Perm(k)[:random.IntN(min(k, m)+1)] {
				lost[from+uint16(g*k+place)] = true
			}
		}
		var arriving []sent
		for _, s := range list {
			if !s.media || !lost[s.seq] {
				arriving = append(arriving, s)
			}
			if random.IntN(20) == 0 && len(arriving) > 0 {
				arriving = append(arriving, arriving[random.IntN(len(arriving))])
			}
		}
		for i := range arriving {
			if j := min(i+random.IntN(4), len(arriving)-1); random.IntN(10) == 0 {
				arriving[i], arriving[j] = arriving[j], arriving[i]
			}
		}
		// The code is known before the first loss, as it is after 100 ms of a stream.
		d := NewDecoder(Config{Check: anyLength})
		d.Remember(dialect)
		d.Media(from-1, testDatagram(from-1, varied))
		back := play(t, d, arriving, func(seq uint16) []byte { return testDatagram(seq, varied) })
		for seq := range lost {
			if _, ok := back[seq]; !ok {
				t.Fatalf("round %d: %d+%d %v: %d did not come back: %+v", round, k, m, dialect, seq-from, d.Stats())
			}
		}
	}
}

// Parity of the dialect that is not tried first repairs the first loss as well.
func TestDecoder_firstLossTellsTheDialect(t *testing.T) {
	for _, dialect := range []Dialect{Integer, Alpha} {
		list := transmit(mustRS(t, 48, 3, dialect), 30161, 48, false)
		d := NewDecoder(Config{Check: anyLength})
		d.Media(30160, testDatagram(30160, false))
		back := play(t, d, list[3:], func(seq uint16) []byte { return testDatagram(seq, false) })
		if len(back) != 3 || d.Code().Dialect != dialect || !d.Code().Recognised {
			t.Errorf("%v: %d came back, code %v", dialect, len(back), d.Code())
		}
	}
}

// A sender that stamps after it has encoded: all bytes come back, and stamps
// that lie between those of the neighbours.
func TestDecoder_stampsWrittenLater(t *testing.T) {
	const shift = 0x12345678
	restamp := func(b []byte) {
		stamp := binary.BigEndian.Uint32(b[rtpStampOffset:])
		// Not linear, so that it does not come out of the code by itself.
		binary.BigEndian.PutUint32(b[rtpStampOffset:], stamp+shift)
	}
	list := transmit(mustRS(t, 20, 3, Alpha), 65530, 60, false)
	var arriving []sent
	for i, s := range list {
		if s.media {
			restamp(s.bytes)
		}
		if i != 5 && i != 6 && i != 30 {
			arriving = append(arriving, s)
		}
	}
	d := NewDecoder(Config{Check: anyLength})
	back := play(t, d, arriving, func(seq uint16) []byte {
		b := testDatagram(seq, false)
		restamp(b) // 3000 a datagram: interpolation is exact
		return b
	})
	if len(back) != 3 {
		t.Errorf("%d came back, want 3", len(back))
	}
}

// Rows and columns help each other: this pattern has no row and no column with
// one loss at first but for the corner.
func TestDecoder_rowsAndColumnsTogether(t *testing.T) {
	const l, d = 5, 6
	list := transmit(mustXOR(t, l, d, true), 65500, 3*l*d, true)
	lost := map[uint16]bool{}
	for _, place := range []uint16{0, 1, l, l + 1, 2*l + 1, 2*l + 2, 3*l + 2} {
		lost[65500+l*d+place] = true
	}
	var arriving []sent
	for _, s := range list {
		if !s.media || !lost[s.seq] {
			arriving = append(arriving, s)
		}
	}
	decoder := NewDecoder(Config{Check: anyLength})
	back := play(t, decoder, arriving, func(seq uint16) []byte { return testDatagram(seq, true) })
	// 0, 1, l, l+1 form a square; the chain 3l+2, 2l+2, 2l+1 opens column 1.
	if len(back) != 3 {
		t.Errorf("%v came back, want the 3 of the chain", back)
	}
	for _, seq := range []uint16{2*l + 1, 2*l + 2, 3*l + 2} {
		if _, ok := back[65500+l*d+seq]; !ok {
			t.Errorf("%d did not come back", seq)
		}
	}
	if got := decoder.Code().String(); got != "SMPTE 2022-1 5×6, rows and columns" {
		t.Errorf("code %q", got)
	}
}

func TestDecoder_burstOfOneRow(t *testing.T) {
	for _, rows := range []bool{true, false} {
		list := transmit(mustXOR(t, 10, 10, rows), 100, 300, false)
		var arriving []sent
		for _, s := range list {
			if !s.media || s.seq < 215 || s.seq >= 225 {
				arriving = append(arriving, s)
			}
		}
		back := play(t, NewDecoder(Config{Check: anyLength}), arriving, func(seq uint16) []byte { return testDatagram(seq, false) })
		if len(back) != 10 {
			t.Errorf("rows %t: %d of a burst of 10 came back", rows, len(back))
		}
	}
}

// While nothing is missing nothing is allocated, and no parity is kept.
func TestDecoder_withoutLossItOnlyCopies(t *testing.T) {
	list := transmit(mustRS(t, 100, 5, Integer), 0, 200, false)
	d := NewDecoder(Config{Check: anyLength})
	seq := uint16(0)
	b := make([]byte, len(list[0].bytes))
	step := func() {
		copy(b, list[0].bytes)
		binary.BigEndian.PutUint16(b[2:], seq)
		d.Media(seq, b)
		if seq++; seq%100 == 0 {
			for i := range 5 {
				d.RS(RSHeader{Begin: seq - 100, End: seq - 1, M: 5, Index: i, Protected: len(b)}, b)
			}
		}
	}
	for range 1000 {
		step()
	}
	if got := testing.AllocsPerRun(1000, step); got != 0 {
		t.Errorf("%v allocations a datagram, want 0", got)
	}
	if d.rowsKept != 0 || len(d.Take()) != 0 {
		t.Errorf("%d rows kept", d.rowsKept)
	}
}
