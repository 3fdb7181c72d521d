//go:build linux

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// feed hands b over in pieces of step bytes.
func (v *verifier) feedBy(step int, b []byte) {
	for ; len(b) > 0; b = b[min(step, len(b)):] {
		v.feed(b[:min(step, len(b))])
	}
}

func TestVerifier_faults(t *testing.T) {
	b := stream(100)
	pkt := func(i int) []byte { i += 10; return b[i*tsLen : (i+1)*tsLen] } // past the first tables
	cut := func(order ...int) (out []byte) {
		for _, i := range order {
			out = append(out, pkt(i)...)
		}
		return out
	}
	s := newTSStream(7, 8, 1)
	damaged := append([]byte(nil), pkt(3)...)
	damaged[100] ^= 1
	for _, c := range []struct {
		name string
		in   []byte
		want counts
	}{
		{"whole", b, counts{Packets: 100}},
		{"loss", cut(1, 2, 5, 6), counts{Packets: 4, Lost: 2}},
		{"double", cut(1, 2, 2, 3), counts{Packets: 4, Dup: 1}},
		{"reordered", cut(1, 3, 2, 4), counts{Packets: 4, Reordered: 1}},
		{"late and double", cut(1, 3, 2, 2, 4), counts{Packets: 5, Dup: 1, Reordered: 1}},
		{"tables first", append(append([]byte(nil), s.pat[:]...), cut(9, 10)...), counts{Packets: 3}},
		{"damaged", append(cut(1, 2), damaged...), counts{Packets: 2, Corrupt: 1}},
	} {
		c.want.Bytes = int64(len(c.in))
		for _, step := range []int{1, 7, 188, 1000, 1 << 20} {
			v := &verifier{source: 7}
			v.feedBy(step, c.in)
			if diff := cmp.Diff(c.want, v.counts); diff != "" {
				t.Errorf("%s, step %d: -want +got:\n%s", c.name, step, diff)
			}
		}
	}
}

func TestVerifier_tornPacket(t *testing.T) {
	b := stream(20)
	in := append(append([]byte(nil), b[10*tsLen:11*tsLen+50]...), b[12*tsLen:]...)
	v := &verifier{source: 7}
	v.feed(in)
	// How many it throws away before it is in step again depends on the bytes.
	if v.Packets < 4 || v.Lost < 1 || v.Corrupt < 1 {
		t.Errorf("got %+v, want it back in step within a few packets", v.counts)
	}
}

func TestVerifier_otherSource(t *testing.T) {
	v := &verifier{source: 8}
	v.feed(stream(100))
	if v.Corrupt != 98 { // all but the tables in front
		t.Errorf("got %d damaged packets of another source, want 98", v.Corrupt)
	}
}

// FuzzVerifier_order compares the counts with those of a plain list.
func FuzzVerifier_order(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3})
	f.Add([]byte{5, 7, 6, 6, 4, 200, 9})
	f.Fuzz(func(t *testing.T, order []byte) {
		v := &verifier{source: 7}
		var want counts
		had := map[uint64]bool{}
		next := uint64(0)
		for i, o := range order {
			n := uint64(o)
			v.count(n)
			switch {
			case i == 0:
				next = n + 1
			case n >= next:
				want.Lost += int64(n - next)
				next = n + 1
			case had[n] || n < uint64(order[0]):
				want.Dup++
			default:
				want.Reordered++
				want.Lost--
			}
			had[n] = true
		}
		if diff := cmp.Diff(want, v.counts); diff != "" {
			t.Errorf("%v: -want +got:\n%s", order, diff)
		}
	})
}

func BenchmarkVerifier(b *testing.B) {
	data := stream(7000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		(&verifier{source: 7}).feed(data)
	}
}
