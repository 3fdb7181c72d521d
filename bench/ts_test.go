//go:build linux

package main

import "testing"

// stream makes n TS packets of source 7.
func stream(n int) []byte {
	s := newTSStream(7, 8, 1)
	b := make([]byte, n*tsLen)
	for i := range n {
		s.packet(b[i*tsLen : (i+1)*tsLen])
	}
	return b
}

func TestTSStream_shape(t *testing.T) {
	s := newTSStream(7, 8, 1)
	const secs = 20
	n := int(s.pps) * secs
	var raps, pats, pmts, video int
	cc := map[int]byte{}
	p := make([]byte, tsLen)
	for i := range n {
		s.packet(p)
		src, c, ok := getTag(p)
		if !ok || src != 7 || c != uint64(i) {
			t.Fatalf("packet %d: got tag %d %d %v, want 7 %d true", i, src, c, ok, i)
		}
		pid := pidOf(p)
		if pid != pidNull {
			if last, ok := cc[pid]; ok && (last+1)&15 != p[3]&15 {
				t.Fatalf("packet %d: continuity of pid %#x goes from %d to %d", i, pid, last, p[3]&15)
			}
			cc[pid] = p[3] & 15
		}
		switch {
		case isRAP(p):
			raps++
		case pid == 0:
			pats++
		case pid == pidPMT:
			pmts++
		}
		if pid == pidVideo {
			video++
		}
	}
	if raps < secs/2-1 || raps > secs/2+1 {
		t.Errorf("got %d random-access points in %d s, want one each 2 s", raps, secs)
	}
	if pats < 10*secs-2 || pats > 10*secs+2 || pmts != pats {
		t.Errorf("got %d PATs and %d PMTs in %d s, want ten a second", pats, pmts, secs)
	}
	if share := float64(video) / float64(n); share < 0.5 || share > 0.65 {
		t.Errorf("got video share %.2f, want about %.2f", share, videoShare)
	}
}

func TestTSStream_allocatesNothing(t *testing.T) {
	s := newTSStream(7, 8, 1)
	p := make([]byte, tsLen)
	for range 20000 { // past the first growth of its queue
		s.packet(p)
	}
	if got := testing.AllocsPerRun(20000, func() { s.packet(p) }); got != 0 {
		t.Errorf("got %v allocations a packet, want 0", got)
	}
}

func BenchmarkTSStream(b *testing.B) {
	s := newTSStream(7, 8, 1)
	p := make([]byte, tsLen)
	b.SetBytes(tsLen)
	b.ReportAllocs()
	for b.Loop() {
		s.packet(p)
	}
}
