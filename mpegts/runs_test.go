package mpegts

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// numbered returns n packets whose bytes all hold the packet's number, so that
// no sync byte occurs inside.
func numbered(n int) []byte {
	var b []byte
	for i := range n {
		b = append(b, SyncByte)
		b = append(b, bytes.Repeat([]byte{byte(i)}, PacketSize-1)...)
	}
	return b
}

func packets(b []byte, from, to int) []byte { return b[from*PacketSize : to*PacketSize] }

func TestRuns_situations(t *testing.T) {
	seven := numbered(7)
	junk := bytes.Repeat([]byte{0xEE}, 50)
	spread := func(before, after int) []byte {
		var b []byte
		for i := range 3 {
			b = append(b, junk[:before]...)
			b = append(b, packets(seven, i, i+1)...)
			b = append(b, junk[:after]...)
		}
		return b
	}
	each := [][]byte{packets(seven, 0, 1), packets(seven, 1, 2), packets(seven, 2, 3)}
	for _, c := range []struct {
		name string
		in   []byte
		want [][]byte
		bad  int
	}{
		{"empty", nil, nil, 0},
		{"whole", seven, [][]byte{seven}, 0},
		{"one whole packet", packets(seven, 0, 1), [][]byte{packets(seven, 0, 1)}, 0},
		{"no TS at all", bytes.Repeat([]byte("ZXV10STB"), 10), nil, 80},
		{
			"junk inside a packet", slices.Concat(packets(seven, 0, 3), seven[564:600], junk, seven[600:]),
			[][]byte{packets(seven, 0, 3), packets(seven, 4, 7)},
			PacketSize + 50,
		},
		{
			// The third packet could as well be a damaged one.
			"junk between packets", slices.Concat(packets(seven, 0, 3), junk, packets(seven, 3, 7)),
			[][]byte{packets(seven, 0, 2), packets(seven, 3, 7)},
			PacketSize + 50,
		},
		{"junk before", slices.Concat(junk, packets(seven, 0, 3)), [][]byte{packets(seven, 0, 3)}, 50},
		{"cut at the end", seven[:6*PacketSize+100], [][]byte{packets(seven, 0, 6)}, 100},
		{"cut at the start", seven[88:], [][]byte{packets(seven, 1, 7)}, 100},
		{"a packet missing its tail", slices.Concat(seven[:500], packets(seven, 3, 7)), [][]byte{packets(seven, 0, 2), packets(seven, 3, 7)}, 124},
		{"single packet behind junk", slices.Concat(junk, packets(seven, 0, 1)), nil, 238},
		{"204 bytes apart", spread(0, 16), each, 0},
		{"192 bytes apart", spread(4, 0), each, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, bad := Runs(nil, c.in)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
			if bad != c.bad {
				t.Errorf("bad: got %d, want %d", bad, c.bad)
			}
		})
	}
}

func TestRuns_appends(t *testing.T) {
	first, b := []byte("first"), numbered(2)
	got, _ := Runs([][]byte{first}, b[:len(b)-1])
	if len(got) != 2 || !bytes.Equal(got[0], first) || len(got[1]) != PacketSize {
		t.Errorf("got %d runs, want the one given and one more", len(got))
	}
}

func FuzzRuns(f *testing.F) {
	seven := numbered(7)
	f.Add(seven)
	f.Add(seven[:1000])
	f.Add(slices.Concat(seven[:500], []byte("junk"), seven[500:]))
	f.Add(slices.Concat(packets(seven, 0, 1), make([]byte, 16), packets(seven, 1, 2), make([]byte, 16)))
	f.Add(slices.Concat(make([]byte, 4), packets(seven, 0, 1), make([]byte, 4), packets(seven, 1, 2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		runs, bad := Runs(nil, b)
		kept, from := 0, 0
		for _, run := range runs {
			if !Whole(run) {
				t.Fatalf("a run of %d bytes is not whole packets", len(run))
			}
			at := from + bytes.Index(b[from:], run)
			if at < from {
				t.Fatalf("a run is not part of the rest of the input")
			}
			if cap(run) != len(run) && !Whole(b) {
				t.Fatalf("a run can be appended to: len %d, cap %d", len(run), cap(run))
			}
			from = at + len(run)
			kept += len(run)
		}
		switch rest := len(b) - kept - bad; {
		case rest == 0:
		case bad == 0 && len(b)%parityStride == 0 && rest == len(b)/parityStride*16:
		case bad == 0 && len(b)%stampStride == 0 && rest == len(b)/stampStride*4:
		default:
			t.Fatalf("%d bytes in, %d kept, %d bad", len(b), kept, bad)
		}
	})
}
