package fec

// rsState is what the parity so far has shown of a Reed-Solomon code.
type rsState struct {
	dialect  Dialect
	known    bool // a row of a whole group came out right
	mismatch bool // one came out wrong in every dialect

	k, m   int // of the group that began last; k 0: none has been seen
	newest uint16
	lag    int // numbers that were seen to pass between a group's end and its last parity
	code   *code
}

// codeFor keeps the code in use, so that only a change asks the others' lock.
func (s *rsState) codeFor(k, m int, dialect Dialect) *code {
	if c := s.code; c == nil || c.k != k || c.m != m || c.dialect != dialect {
		s.code = codeFor(k, m, dialect)
	}
	return s.code
}

func (s *rsState) note(g *group, top uint16) {
	if s.k == 0 || int16(g.base-s.newest) > 0 {
		s.newest = g.base
		s.k, s.m = g.count, g.parity
	}
	if lag := int(int16(top - g.end())); lag > s.lag && lag <= 2*g.count {
		s.lag = lag
	}
}

// xorState is what the parity so far has shown of rows, or of columns.
type xorState struct {
	step, count int // count 0: none has been seen
	newest      uint16
	seen        int // rows or columns, up to matrixRows
}

// matrixRows is how many rows may come before the first column: columns have 20
// numbers at most (ST 2022-1 §8.1), and are sent while the next matrix is.
const matrixRows = 2 * 20

func (s *xorState) note(g *group) {
	if s.count == 0 || int16(g.base-s.newest) > 0 {
		s.newest = g.base
		s.seen = min(s.seen+1, matrixRows)
	}
	s.step, s.count = g.step, g.count
}

// Hope reports whether parity may still bring back a number that is missing,
// judged by how the parity so far followed its media. Before the first parity
// that is true of the numbers of the last moments.
func (d *Decoder) Hope(seq uint16) bool {
	age := int(d.store.top - seq)
	if age > len(d.store.entries) {
		return false
	}
	if d.rs.k == 0 && d.columns.count == 0 && d.rows.count == 0 {
		return true
	}
	return d.hopeRS(seq) || d.hopeXOR(seq, age)
}

// hopeRS waits for the rows of the number's group until all have come, those of
// a later group come, or twice as many media have passed as ever did.
func (d *Decoder) hopeRS(seq uint16) bool {
	const slack = 16
	if d.rs.k == 0 {
		return false
	}
	for _, g := range d.groups {
		if g.method == ReedSolomon && g.covers(seq) {
			late := int(int16(d.store.top - g.end()))
			return g.open() && len(g.rows) < g.parity && late <= 2*d.rs.lag+slack
		}
	}
	late := int(d.store.top-seq) - d.rs.k // as if seq were its group's first
	return int16(d.rs.newest-seq) <= 0 && late <= 2*d.rs.lag+slack
}

// hopeXOR waits for the number's own row and column, and for those columns that
// would complete its row: parity comes in order of the first number. Where rows
// have begun, the first column may still come.
func (d *Decoder) hopeXOR(seq uint16, age int) bool {
	if d.columns.count == 0 && d.rows.count > 0 && d.rows.seen < matrixRows {
		return age <= matrixRows*d.rows.count
	}
	matrix := d.columns.step * d.columns.count
	if d.rows.count > 0 {
		if matrix == 0 {
			matrix = d.rows.count
		}
		if passed := int(int16(d.rows.newest - seq)); passed <= 0 || d.columns.count > 0 && passed < matrix {
			return age <= 3*matrix
		}
	}
	if d.columns.count > 0 && int(int16(d.columns.newest-seq)) < d.columns.step {
		return age <= 3*matrix
	}
	return false
}
