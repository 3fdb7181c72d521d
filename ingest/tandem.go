package ingest

import "hash/maphash"

// tandemMax is how many datagrams one way may be ahead of the other before the
// oldest are forgotten.
const tandemMax = 4096

// A tandem is how a flow changes from one way of receiving to another while
// both bring it the same datagrams: what the way that leads has delivered is
// remembered by its hash, and what the other brings of that is known.
type tandem struct {
	seed  maphash.Seed
	ahead []uint64
	first int // ahead[:first] is done with
}

func newTandem() *tandem { return &tandem{seed: maphash.MakeSeed()} }

// led notes a datagram that the leading way has delivered.
func (t *tandem) led(b []byte) {
	if t.first == len(t.ahead) {
		t.ahead, t.first = t.ahead[:0], 0
	}
	if len(t.ahead) == tandemMax {
		t.ahead = t.ahead[:copy(t.ahead, t.ahead[max(t.first, tandemMax/4):])]
		t.first = 0
	}
	t.ahead = append(t.ahead, maphash.Bytes(t.seed, b))
}

// followed reports whether the leading way has delivered a datagram that the
// other brings now, and how many before it the other has left out.
func (t *tandem) followed(b []byte) (known bool, missed int) {
	if t.first == len(t.ahead) {
		return false, 0
	}
	h := maphash.Bytes(t.seed, b)
	for i, a := range t.ahead[t.first:] {
		if a == h {
			t.first += i + 1
			return true, i
		}
	}
	return false, 0
}

// waiting is how many datagrams the other way has not shown yet.
func (t *tandem) waiting() int { return len(t.ahead) - t.first }
