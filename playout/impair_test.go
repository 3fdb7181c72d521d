package playout

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// passed is what came out of a line: the number of the datagram and its time.
type passed struct {
	N   uint32
	Due time.Duration
}

// through sends count numbered datagrams over a line, one per millisecond.
func through(imp Impairments, seed uint64, count int) (out []passed, l *line) {
	l = newLine(imp, seed)
	emit := func(d datagram) { out = append(out, passed{binary.BigEndian.Uint32(d.data), d.due}) }
	buf := make([]byte, 4)
	for n := range count {
		binary.BigEndian.PutUint32(buf, uint32(n))
		l.send(datagram{data: buf, due: time.Duration(n) * time.Millisecond}, emit)
	}
	l.flush(emit)
	return out, l
}

func TestLine_perfect(t *testing.T) {
	got, _ := through(Impairments{}, 1, 1000)
	var want []passed
	for n := range 1000 {
		want = append(want, passed{uint32(n), time.Duration(n) * time.Millisecond})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a perfect line changed something (-want +got):\n%s", diff)
	}
}

func TestLine_sameSeedSamePattern(t *testing.T) {
	imp := Impairments{Drop: 0.05, Burst: 3, Duplicate: 0.02, Reorder: 0.1, Distance: 5, Jitter: 20 * time.Millisecond}
	a, _ := through(imp, 7, 5000)
	b, _ := through(imp, 7, 5000)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("two runs with one seed differ (-first +second):\n%s", diff)
	}
	if c, _ := through(imp, 8, 5000); cmp.Equal(a, c) {
		t.Error("another seed gave the same pattern")
	}
}

func TestLine_lossesStayTheSameWhenMoreIsAdded(t *testing.T) {
	lost := func(imp Impairments) map[uint32]bool {
		m := map[uint32]bool{}
		for n := range uint32(5000) {
			m[n] = true
		}
		out, _ := through(imp, 3, 5000)
		for _, p := range out {
			delete(m, p.N)
		}
		return m
	}
	want := lost(Impairments{Drop: 0.1, Burst: 2})
	got := lost(Impairments{Drop: 0.1, Burst: 2, Duplicate: 0.5, Reorder: 0.3, Distance: 9, Jitter: time.Second})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other datagrams are lost (-want +got):\n%s", diff)
	}
}

func TestLine_rates(t *testing.T) {
	const count = 200_000
	for _, burst := range []float64{0, 1, 4, 20} {
		for _, share := range []float64{0, 0.001, 0.03, 0.5, 1} {
			t.Run(fmt.Sprintf("%v lost in runs of %v", share, burst), func(t *testing.T) {
				out, l := through(Impairments{Drop: share, Burst: burst}, 11, count)
				if want, got := int64(count-len(out)), l.dropped; want != got {
					t.Errorf("counted %d lost, want %d", got, want)
				}
				runs, last := 0.0, -1
				for _, p := range append(out, passed{N: count}) {
					if int(p.N) > last+1 {
						runs++
					}
					last = int(p.N)
				}
				mean := max(1, burst)
				// The number lost varies about as that of count/mean draws does, twice over.
				tolerance := 6*math.Sqrt(2*mean*count*share) + 0.5
				if got, want := float64(l.dropped), share*count; math.Abs(got-want) > tolerance {
					t.Errorf("lost %v of %d, want %v ± %v", got, count, want, tolerance)
				}
				if burst > 1 && share > 0 && share < 1 && runs > 50 {
					if got := float64(l.dropped) / runs; math.Abs(got-mean) > mean*6/math.Sqrt(runs) {
						t.Errorf("mean run of losses %v, want %v", got, mean)
					}
				}
			})
		}
	}
}

func TestLine_duplicates(t *testing.T) {
	const count = 50_000
	out, l := through(Impairments{Duplicate: 0.1, Reorder: 0.2, Distance: 3}, 5, count)
	copies := map[uint32]int{}
	for _, p := range out {
		copies[p.N]++
	}
	twice := 0
	for n := range uint32(count) {
		switch copies[n] {
		case 1:
		case 2:
			twice++
		default:
			t.Fatalf("datagram %d came out %d times, want 1 or 2", n, copies[n])
		}
	}
	if int64(twice) != l.duplicated {
		t.Errorf("counted %d duplicates, want %d", l.duplicated, twice)
	}
	if want := count / 10; math.Abs(float64(twice-want)) > 6*math.Sqrt(float64(want)) {
		t.Errorf("%d duplicates, want about %d", twice, want)
	}
}

func TestLine_reorderDistance(t *testing.T) {
	for _, distance := range []int{1, 2, 8, 16, maxDistance} {
		t.Run(fmt.Sprint(distance), func(t *testing.T) {
			const count = 20_000
			out, l := through(Impairments{Reorder: 0.05, Distance: distance}, 9, count)
			if len(out) != count {
				t.Fatalf("%d came out, want %d", len(out), count)
			}
			at := make([]int, count)
			for i, p := range out {
				at[p.N] = i
			}
			moved := int64(0)
			for n := range count {
				overtakers := 0
				for later := n + 1; later < min(count, n+1+2*distance); later++ {
					if at[later] < at[n] {
						overtakers++
					}
				}
				if overtakers > distance {
					t.Fatalf("datagram %d was overtaken by %d later ones, want %d at most", n, overtakers, distance)
				}
				if overtakers > 0 {
					moved++
				}
			}
			// With distance 1, two late ones in a row keep their order.
			if moved < l.reordered*9/10 || moved > l.reordered {
				t.Errorf("%d were overtaken, %d counted as reordered", moved, l.reordered)
			}
		})
	}
}

func TestLine_jitterDelaysButKeepsOrder(t *testing.T) {
	const jitter = 30 * time.Millisecond
	out, _ := through(Impairments{Jitter: jitter}, 2, 10_000)
	var last, spread time.Duration
	for i, p := range out {
		if int(p.N) != i {
			t.Fatalf("datagram %d came out as number %d: jitter must not reorder", p.N, i)
		}
		delay := p.Due - time.Duration(i)*time.Millisecond
		if delay < 0 || delay >= jitter || p.Due < last {
			t.Fatalf("datagram %d is due at %v after %v, delayed by %v; want within [0, %v) and in order", i, p.Due, last, delay, jitter)
		}
		last, spread = p.Due, max(spread, delay)
	}
	if spread < jitter*9/10 {
		t.Errorf("longest delay %v, want nearly %v", spread, jitter)
	}
}

func TestLine_doesNotAllocateInTheLongRun(t *testing.T) {
	l := newLine(Impairments{Drop: 0.01, Duplicate: 0.1, Reorder: 0.2, Distance: 10, Jitter: time.Millisecond}, 1)
	d := datagram{data: make([]byte, maxDatagram)}
	out := func(datagram) {}
	for range 10_000 {
		l.send(d, out)
	}
	if n := testing.AllocsPerRun(1000, func() { l.send(d, out) }); n != 0 {
		t.Errorf("%v allocations per datagram, want none", n)
	}
}

func TestImpairments_validate(t *testing.T) {
	for _, tt := range []struct {
		imp  Impairments
		want string // part of the error; empty: none
	}{
		{Impairments{}, ""},
		{Impairments{Drop: 1, Duplicate: 1, Reorder: 1, Distance: maxDistance, Jitter: maxJitter, Burst: maxBurst}, ""},
		{Impairments{Drop: 0.8, Burst: 4}, ""},
		{Impairments{Drop: 1.01}, "drop"},
		{Impairments{Drop: math.NaN()}, "drop"},
		{Impairments{Duplicate: -0.1}, "duplicate"},
		{Impairments{Reorder: 2}, "reorder"},
		{Impairments{Drop: 0.1, Burst: 0.5}, "drop burst"},
		{Impairments{Drop: 0.9, Burst: 2}, "lose 0.667 of all at most"},
		{Impairments{Reorder: 0.1, Distance: 1001}, "reorder distance 1001: want 1 to 1000"},
		{Impairments{Jitter: -1}, "jitter"},
		{Impairments{Jitter: time.Minute}, "jitter 1m0s: want 0s to 10s"},
	} {
		err := tt.imp.validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: error %v, want %q in it", tt.imp, err, tt.want)
		}
	}
}

// FuzzLine checks with any impairments that nothing is invented, that the only
// ones missing are those counted as lost, and that times never go back.
func FuzzLine(f *testing.F) {
	f.Add(uint64(1), 0.1, 2.0, 0.1, 0.1, 3, int64(time.Millisecond), uint16(500))
	f.Add(uint64(2), 0.0, 0.0, 1.0, 1.0, 1000, int64(0), uint16(1500))
	f.Fuzz(func(t *testing.T, seed uint64, drop, burst, duplicate, reorder float64, distance int, jitter int64, count uint16) {
		imp := Impairments{drop, burst, duplicate, reorder, distance, time.Duration(jitter)}
		if imp.validate() != nil {
			return
		}
		out, l := through(imp, seed, int(count))
		seen, last := map[uint32]bool{}, time.Duration(0)
		for _, p := range out {
			if p.Due < last {
				t.Fatalf("due %v after %v", p.Due, last)
			}
			last, seen[p.N] = p.Due, true
		}
		if got, want := len(seen), int(count)-int(l.dropped); got != want {
			t.Errorf("%d different datagrams came out, want %d", got, want)
		}
		if got, want := len(out), len(seen)+int(l.duplicated); got != want {
			t.Errorf("%d datagrams came out, want %d", got, want)
		}
	})
}
