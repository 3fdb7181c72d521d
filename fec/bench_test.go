package fec

import "testing"

// BenchmarkSolve brings five lost datagrams of a group of 100+5 back.
func BenchmarkSolve(b *testing.B) {
	e := mustRS(b, 100, 5, Integer)
	list := transmit(e, 0, 100, false)
	d := NewDecoder(Config{Check: tsLength})
	for _, s := range list[:100] {
		if s.seq%20 != 7 {
			d.Media(s.seq, s.bytes)
		}
	}
	for _, s := range list[100:104] {
		give(b, d, s.bytes)
	}
	g := d.groups[0]
	h, parity, err := ParseRS(list[104].bytes[rtpHeaderBytes:])
	if err != nil {
		b.Fatal(err)
	}
	d.keep(g, h.Index, parity)
	lost := []uint16{7, 27, 47, 67, 87}
	b.SetBytes(5 * 1328)
	b.ReportAllocs()
	for b.Loop() {
		if d.solveRS(g, lost) == nil {
			b.Fatal("not solved")
		}
	}
}

// BenchmarkDecoder_withoutLoss is what a datagram costs while nothing is lost.
func BenchmarkDecoder_withoutLoss(b *testing.B) {
	d := NewDecoder(Config{Check: tsLength})
	datagram := testDatagram(0, false)
	seq := uint16(0)
	b.ReportAllocs()
	for b.Loop() {
		d.Media(seq, datagram)
		seq++
	}
}
