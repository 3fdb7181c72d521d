package fec

// Config says what a Decoder cannot know of the stream.
type Config struct {
	// Check tells how long a datagram is that was computed and whose fixed RTP
	// header is right: its end may be padding. 0: it cannot be one of the stream.
	Check func(datagram []byte) int
}

// Repaired is a datagram that has come back.
type Repaired struct {
	Sequence uint16
	Method   Method
	Datagram []byte // whole; valid until the next call of the decoder but Take
}

// Stats counts what a decoder has done since it was made.
type Stats struct {
	Repaired [methods]int64 // by Method
	Useless  int64          // parity of groups that nothing was missing of, or before the first media
	Foreign  int64          // parity of numbers far from the media
	Failed   int64          // groups whose parity contradicted the media
}

// A Decoder brings back what a stream has lost. Media and parity go in as they
// come, in any order, and Take returns what has come back. It keeps copies.
// The media are those of one numbering; Forget begins another.
//
// It is not safe for concurrent use.
type Decoder struct {
	config Config
	store  store
	model  [rtpHeaderBytes]byte // header of the last datagram that came

	groups   []*group // in order of coming
	open     int      // groups that wait for something
	spare    []*group
	free     [][]byte
	rowsKept int

	rs      rsState
	columns xorState
	rows    xorState

	out     []Repaired
	queue   []uint16 // numbers that have come back, for the groups that wait for them
	scratch scratch
	stats   Stats
}

// NewDecoder returns a decoder that has seen nothing.
func NewDecoder(config Config) *Decoder {
	d := &Decoder{config: config}
	d.store.reserve(initialReach)
	return d
}

// initialReach is what is kept before the first parity has told more.
const initialReach = 256

// Media takes a datagram of the stream under its sequence number. One that is
// kept already, and one of more than 1536 bytes, changes nothing.
func (d *Decoder) Media(seq uint16, datagram []byte) {
	if len(datagram) < rtpHeaderBytes || len(datagram) > maxProtected || !d.store.put(seq, datagram) {
		return
	}
	copy(d.model[:], datagram)
	if d.open > 0 {
		d.arrived(seq)
	}
}

// RS takes a row of parity.
func (d *Decoder) RS(h RSHeader, parity []byte) {
	if d.strange(h.Begin) {
		return
	}
	g := d.find(h)
	if g == nil {
		g = d.enter(group{method: ReedSolomon, base: h.Begin, step: 1, count: h.K(), parity: h.M, size: h.Protected})
	}
	d.rs.note(g, d.store.top)
	if !g.open() {
		d.stats.Useless++
		if g.missing == 0 && !d.rs.known {
			d.recognise(g, h.Index, parity)
		}
		return
	}
	if g.parity != h.M || g.size != h.Protected || g.hasRow(h.Index) {
		return
	}
	d.keep(g, h.Index, parity)
	d.advance(g)
}

// XOR takes the parity of a row or column.
func (d *Decoder) XOR(h XORHeader, data []byte) {
	if d.strange(h.Base) {
		return
	}
	g := group{method: Column, base: h.Base, step: h.Step, count: h.Count, parity: 1, size: rtpHeaderBytes + len(data), xor: h}
	state := &d.columns
	if h.Row {
		g.method, state = Row, &d.rows
	}
	state.note(&g)
	whole := true
	for place := range g.count {
		whole = whole && d.store.has(g.seq(place))
	}
	if whole {
		d.stats.Useless++
		return
	}
	for _, other := range d.groups {
		if other.method == g.method && other.base == g.base && other.count == g.count && other.step == g.step {
			return // sent twice
		}
	}
	entered := d.enter(g)
	d.keep(entered, 0, data)
	d.advance(entered)
}

// strange reports whether parity is for numbers that the media are nowhere near
// to. Before the first of them, it is of no use and nobody's fault.
func (d *Decoder) strange(base uint16) bool {
	if !d.store.begun {
		d.stats.Useless++
		return true
	}
	if far := int(int16(base - d.store.top)); far > -2*maxSpan && far < 2*maxSpan {
		return false
	}
	d.stats.Foreign++
	return true
}

// Take returns what has come back since the last call.
func (d *Decoder) Take() []Repaired {
	out := d.out
	d.out = d.out[:0]
	return out
}

// Forget drops all media and parity, for a stream that has begun to number
// anew. What is known of the code stays.
func (d *Decoder) Forget() {
	for len(d.groups) > 0 {
		d.drop(len(d.groups) - 1)
	}
	d.store.forget()
	d.out = d.out[:0]
}

// Stats returns the counters.
func (d *Decoder) Stats() Stats { return d.stats }

// arrived tells the groups that wait for it that a number is here, and goes on
// with what comes back by that: a row may complete a column, and the reverse.
func (d *Decoder) arrived(seq uint16) {
	d.queue = append(d.queue[:0], seq)
	d.work()
}

// advance solves a group if that can be done, and goes on as arrived does.
func (d *Decoder) advance(g *group) {
	d.queue = d.queue[:0]
	if g.solvable() {
		d.solve(g)
	}
	d.work()
}

func (d *Decoder) work() {
	for i := 0; i < len(d.queue); i++ {
		seq := d.queue[i]
		for _, g := range d.groups {
			if !g.open() || !g.covers(seq) {
				continue
			}
			if g.missing--; g.missing == 0 {
				d.settle(g)
			} else if g.solvable() {
				d.solve(g)
			}
		}
	}
}

// solve computes what a group lacks, and queues it.
func (d *Decoder) solve(g *group) {
	lost := d.scratch.lost[:0]
	for place := range g.count {
		if seq := g.seq(place); !d.store.has(seq) {
			lost = append(lost, seq)
		}
	}
	d.scratch.lost = lost
	found, failed := [][]byte(nil), false
	switch {
	case len(lost) > g.missing || d.store.past(g.base): // no longer kept
		failed = true
	case len(lost) == 0: // all have come back by other groups, and are in the queue
	case g.method == ReedSolomon:
		found = d.solveRS(g, lost)
	default:
		found = d.solveXOR(g, lost)
	}
	if failed || found == nil && len(lost) > 0 {
		if !failed {
			d.stats.Failed++
		}
		d.settle(g)
		g.spoilt = true
		return
	}
	for i, seq := range lost {
		d.store.put(seq, found[i])
		d.stats.Repaired[g.method]++
		d.queue = append(d.queue, seq)
		d.out = append(d.out, Repaired{Sequence: seq, Method: g.method, Datagram: d.store.get(seq)})
	}
	g.missing = 0
	d.settle(g)
}
