package fec

// Method says what brought a datagram back.
type Method uint8

// The methods of this package.
const (
	ReedSolomon Method = iota
	Row                // XOR of a row, SMPTE 2022-1
	Column             // XOR of a column, SMPTE 2022-1
	methods     = iota
)

const (
	// maxGroups and maxRows bound what a Decoder holds: twice as many groups as
	// a matrix of 1024 has rows and columns in use, and 1.5 MiB of parity.
	maxGroups = 256
	maxRows   = 1024
)

// A group is numbers that share parity: base, base+step, … count of them.
type group struct {
	method Method
	base   uint16
	step   int
	count  int
	parity int // parity datagrams that the sender makes of it
	size   int // bytes that are protected
	xor    XORHeader

	missing int   // of count
	rows    []row // parity at hand; none is kept while nothing is missing
	spoilt  bool  // its parity contradicts the media
}

type row struct {
	index int
	bytes []byte
}

// end is one past the last number.
func (g *group) end() uint16 { return g.base + uint16(g.step*(g.count-1)) + 1 }

func (g *group) covers(seq uint16) bool {
	d := int(seq - g.base)
	return d%g.step == 0 && d/g.step < g.count
}

// place is where a number that is covered stands.
func (g *group) place(seq uint16) int { return int(seq-g.base) / g.step }

func (g *group) seq(place int) uint16 { return g.base + uint16(g.step*place) }

// open reports whether the group waits for media or parity.
func (g *group) open() bool { return g.missing > 0 && !g.spoilt }

func (g *group) solvable() bool { return g.open() && len(g.rows) >= g.missing }

func (g *group) hasRow(index int) bool {
	for i := range g.rows {
		if g.rows[i].index == index {
			return true
		}
	}
	return false
}

// find returns the group that a Reed-Solomon header belongs to.
func (d *Decoder) find(h RSHeader) *group {
	for _, g := range d.groups {
		if g.method == ReedSolomon && g.base == h.Begin && g.count == h.K() {
			return g
		}
	}
	return nil
}

// enter adds a group, in the place of the oldest if there are too many, and
// finds out what is missing of it.
func (d *Decoder) enter(g group) *group {
	d.expire()
	if len(d.groups) >= maxGroups {
		d.drop(0)
	}
	d.store.reserve(d.reach(&g))
	fresh := new(group)
	if last := len(d.spare) - 1; last >= 0 {
		fresh, d.spare = d.spare[last], d.spare[:last]
	}
	g.rows = fresh.rows[:0]
	*fresh = g
	for place := range fresh.count {
		if !d.store.has(fresh.seq(place)) {
			fresh.missing++
		}
	}
	if fresh.open() {
		d.open++
	}
	d.groups = append(d.groups, fresh)
	return fresh
}

// reach is how many numbers the store must keep for groups like g: those of the
// group, and those that pass until the last of its parity has come. Columns are
// sent while the next matrix is.
func (d *Decoder) reach(g *group) int {
	span := g.step * g.count
	if g.method == Column {
		span += g.step * g.count
	}
	return min(2*span+32, 2*maxSpan)
}

// keep copies a row of parity for g.
func (d *Decoder) keep(g *group, index int, bytes []byte) {
	for d.rowsKept >= maxRows && d.groups[0] != g {
		d.drop(0)
	}
	if d.rowsKept >= maxRows {
		return
	}
	var buf []byte
	if last := len(d.free) - 1; last >= 0 {
		buf, d.free = d.free[last], d.free[:last]
	}
	g.rows = append(g.rows, row{index, append(buf[:0], bytes...)})
	d.rowsKept++
}

// settle ends the waiting of a group whose missing datagrams have come, or
// never will.
func (d *Decoder) settle(g *group) {
	d.open--
	d.release(g)
}

func (d *Decoder) release(g *group) {
	for i := range g.rows {
		d.free = append(d.free, g.rows[i].bytes)
		g.rows[i].bytes = nil
	}
	d.rowsKept -= len(g.rows)
	g.rows = g.rows[:0]
}

// drop removes the i-th group.
func (d *Decoder) drop(i int) {
	g := d.groups[i]
	if g.open() {
		d.settle(g)
	}
	d.groups = append(d.groups[:i], d.groups[i+1:]...)
	d.spare = append(d.spare, g)
}

// expire removes the groups that begin before what is kept: what they lack can
// no longer be computed, and what they have is nobody's need.
func (d *Decoder) expire() {
	for i := 0; i < len(d.groups); {
		if d.store.past(d.groups[i].base) {
			d.drop(i)
		} else {
			i++
		}
	}
}
