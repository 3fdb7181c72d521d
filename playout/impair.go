package playout

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Limits of the impairments: against typing errors, and so that what is held
// or queued stays small.
const (
	maxDistance = 1000 // datagrams that may overtake a late one: 1.3 MiB held
	maxBurst    = 100_000
	maxJitter   = 10 * time.Second
)

// Impairments says how a bad line treats datagrams. The zero value is a
// perfect line.
type Impairments struct {
	Drop  float64 // share of datagrams lost, 0 to 1
	Burst float64 // mean length of a run of losses, 1 to 100 000; 0: each falls on its own

	Duplicate float64 // share of datagrams that arrive twice, 0 to 1

	Reorder  float64 // share of datagrams that come late, 0 to 1
	Distance int     // how many later datagrams overtake a late one, 1 to 1000; 0 means 1

	// Jitter is the longest extra delay, up to 10 s. Each datagram gets a
	// random one, but none overtakes another by it: a queue that fills and
	// drains.
	Jitter time.Duration
}

// validate says which value is out of range, in the words of the flags.
func (imp Impairments) validate() error {
	share := func(name string, v float64) error {
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("playout: %s %v: want a share from 0%% to 100%%", name, v)
		}
		return nil
	}
	if err := share("drop", imp.Drop); err != nil {
		return err
	}
	if err := share("duplicate", imp.Duplicate); err != nil {
		return err
	}
	if err := share("reorder", imp.Reorder); err != nil {
		return err
	}
	switch {
	case imp.Burst != 0 && !(imp.Burst >= 1 && imp.Burst <= maxBurst):
		return fmt.Errorf("playout: drop burst %v: want a mean length from 1 to %d", imp.Burst, maxBurst)
	case imp.Burst > 1 && imp.Drop < 1 && imp.Drop > imp.Burst/(imp.Burst+1):
		// At least one datagram stands between two runs.
		return fmt.Errorf("playout: drop %v: runs of %v lose %.3v of all at most", imp.Drop, imp.Burst, imp.Burst/(imp.Burst+1))
	case imp.Distance < 0 || imp.Distance > maxDistance:
		return fmt.Errorf("playout: reorder distance %d: want 1 to %d", imp.Distance, maxDistance)
	case imp.Jitter < 0 || imp.Jitter > maxJitter:
		return fmt.Errorf("playout: jitter %v: want 0s to %v", imp.Jitter, maxJitter)
	}
	return nil
}

// datagram is one UDP payload and the time of its sending, counted from the
// beginning of the playout.
type datagram struct {
	data  []byte
	due   time.Duration
	shift uint16 // how far above the destination's port it goes; 0: media
}

// line treats datagrams as its impairments say. It is a machine: datagrams go
// in by send and come out through a function, at once or after later ones.
//
// Each kind of impairment draws from a random source of its own. So the
// datagrams lost with a given seed stay the same ones, whether or not jitter
// or anything else is added.
type line struct {
	imp Impairments

	drop, duplicate, reorder, jitter *rand.Rand

	bad    bool          // inside a run of losses
	taken  int           // datagrams that went in
	held   []late        // late datagrams, in order of release
	free   [][]byte      // buffers for those to come
	latest time.Duration // of the datagrams that came out

	dropped, duplicated, reordered int64
}

// late is a datagram that comes out behind the release-th one that goes in.
type late struct {
	data    []byte
	shift   uint16
	copies  int
	release int
}

// newLine returns a line whose pattern depends on imp and seed alone.
func newLine(imp Impairments, seed uint64) *line {
	imp.Distance = max(1, imp.Distance)
	random := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
	return &line{imp: imp, drop: random(1), duplicate: random(2), reorder: random(3), jitter: random(4)}
}

// send takes a datagram, which stays the caller's, and hands out what leaves
// the line because of it, in order of sending. What out gets is valid only
// until it returns. Due times must not go back.
func (l *line) send(d datagram, out func(datagram)) {
	l.taken++
	lost := l.loses()
	copies := 1
	if l.duplicate.Float64() < l.imp.Duplicate {
		copies = 2
	}
	holds := l.reorder.Float64() < l.imp.Reorder

	switch {
	case lost:
		l.dropped++
	case holds:
		l.reordered++
		l.hold(d, copies)
	default:
		l.emit(d, copies, out)
	}

	for len(l.held) > 0 && l.held[0].release <= l.taken {
		first := l.held[0]
		l.emit(datagram{first.data, d.due, first.shift}, first.copies, out)
		l.free = append(l.free, first.data)
		l.held = append(l.held[:0], l.held[1:]...)
	}
}

// flush hands out what is still held, when nothing more is to come.
func (l *line) flush(out func(datagram)) {
	for _, h := range l.held {
		l.emit(datagram{h.data, l.latest, h.shift}, h.copies, out)
	}
	l.held = nil
}

// loses decides on the next datagram, by the model of Gilbert: a line that is
// good or bad, and that loses everything while it is bad. The chances of the
// two changes follow from the share lost and the mean length of a run.
func (l *line) loses() bool {
	share, burst, draw := l.imp.Drop, l.imp.Burst, l.drop.Float64()
	switch {
	case burst <= 1 || share == 1:
		return draw < share
	case l.bad:
		l.bad = draw >= 1/burst
	default:
		l.bad = draw < share/(burst*(1-share))
	}
	return l.bad
}

func (l *line) hold(d datagram, copies int) {
	var buf []byte
	if n := len(l.free); n > 0 {
		buf, l.free = l.free[n-1][:0], l.free[:n-1]
	}
	l.held = append(l.held, late{append(buf, d.data...), d.shift, copies, l.taken + l.imp.Distance})
}

func (l *line) emit(d datagram, copies int, out func(datagram)) {
	l.duplicated += int64(copies - 1)
	for range copies {
		due := d.due
		if l.imp.Jitter > 0 {
			due += time.Duration(l.jitter.Int64N(int64(l.imp.Jitter)))
		}
		l.latest = max(l.latest, due)
		out(datagram{d.data, l.latest, d.shift})
	}
}
