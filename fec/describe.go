package fec

import "fmt"

// Code is what a decoder knows of the parity that it has seen.
type Code struct {
	K, M       int     // of Reed-Solomon; 0: not seen
	Dialect    Dialect // of it
	Recognised bool    // the dialect has shown itself
	Mismatch   bool    // a whole group has contradicted both dialects

	L, D          int // columns and rows of SMPTE 2022-1; 0: not seen
	Rows, Columns bool
}

// Code returns what is known.
func (d *Decoder) Code() Code {
	c := Code{
		K: d.rs.k, M: d.rs.m, Dialect: d.rs.dialect,
		Recognised: d.rs.known || d.stats.Repaired[ReedSolomon] > 0,
		Rows:       d.rows.count > 0, Columns: d.columns.count > 0,
		L: d.columns.step, D: d.columns.count,
	}
	c.Mismatch = d.rs.mismatch && !c.Recognised
	if c.L == 0 {
		c.L = d.rows.count
	}
	return c
}

// Remember tells the decoder which dialect the stream spoke before.
func (d *Decoder) Remember(dialect Dialect) { d.rs.dialect = dialect }

// String names the code as status does.
func (c Code) String() string {
	switch {
	case c.K > 0 && c.Recognised:
		return fmt.Sprintf("Reed-Solomon %d+%d (%s)", c.K, c.M, c.Dialect)
	case c.K > 0:
		return fmt.Sprintf("Reed-Solomon %d+%d", c.K, c.M)
	case c.Rows && c.Columns:
		return fmt.Sprintf("SMPTE 2022-1 %d×%d, rows and columns", c.L, c.D)
	case c.Columns:
		return fmt.Sprintf("SMPTE 2022-1 %d×%d, columns", c.L, c.D)
	case c.Rows:
		return fmt.Sprintf("SMPTE 2022-1 rows of %d", c.L)
	}
	return ""
}
