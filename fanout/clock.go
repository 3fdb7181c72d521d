package fanout

import "time"

// A clock knows when each byte of a stream came, as far back as its marks reach.
// What it says of a position does not change once a later one is marked, so it
// tells everybody the same.
type clock struct {
	marks [256]mark // a ring
	n     int       // marks made
}

type mark struct {
	pos int64
	at  int64 // µs since 1970
}

// Marks are made each markInterval where nobody asks for more of them, and never
// closer than markShortest: then they reach back 5 s.
const (
	markInterval = 100 * time.Millisecond
	markShortest = 20 * time.Millisecond
)

// mark notes that the stream ended at pos at the time now, unless that is too
// soon after the last mark.
func (k *clock) mark(pos int64, now time.Time) {
	if k.n > 0 && (pos <= k.last().pos || now.UnixMicro()-k.last().at < markShortest.Microseconds()) {
		return
	}
	k.marks[k.n%len(k.marks)] = mark{pos, now.UnixMicro()}
	k.n++
}

// due reports whether a mark is to be made at now.
func (k *clock) due(now time.Time) bool {
	return k.n == 0 || now.UnixMicro()-k.last().at >= markInterval.Microseconds()
}

func (k *clock) last() mark { return k.marks[(k.n-1)%len(k.marks)] }

// at says when the byte at pos came.
func (k *clock) at(pos int64) time.Time {
	if k.n == 0 {
		return time.Time{}
	}
	later := k.last()
	for i := k.n - 2; i >= max(k.n-len(k.marks), 0) && later.pos > pos; i-- {
		m := k.marks[i%len(k.marks)]
		if m.pos <= pos {
			return time.UnixMicro(m.at + (pos-m.pos)*(later.at-m.at)/(later.pos-m.pos))
		}
		later = m
	}
	return time.UnixMicro(later.at)
}
