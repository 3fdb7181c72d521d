package fec

import "sync"

// Dialect is a way to choose the points of a Reed-Solomon code. Nothing in the
// headers tells which one a sender speaks.
type Dialect uint8

const (
	// Integer takes the points 0, 1, 2, … It is the default matrix of
	// github.com/klauspost/reedsolomon.
	Integer Dialect = iota
	// Alpha takes the powers of the field's generator: 1, 2, 4, 8, …
	Alpha
	dialects = iota
)

// String returns the word that docs/repair.md has for the dialect.
func (d Dialect) String() string {
	if d == Alpha {
		return "alpha"
	}
	return "integer"
}

// Valid reports whether a code with k media and m parity datagrams exists in
// the dialect: its points are distinct elements of the field.
func (d Dialect) Valid(k, m int) bool {
	limit := 256
	if d == Alpha {
		limit = 255
	}
	return k >= 1 && m >= 1 && k+m <= limit
}

func (d Dialect) point(n int) byte {
	if d == Alpha {
		return powers[n]
	}
	return byte(n)
}

// A code is what makes the parity of k media datagrams.
type code struct {
	k, m    int
	dialect Dialect

	// Parity row i is the sum over all j of rows[i*k+j] times datagram j.
	rows []byte
}

func (c *code) row(i int) []byte { return c.rows[i*c.k : (i+1)*c.k] }

// newCode computes the systematic code over the dialect's points x: parity row
// i is the value at x(k+i) of the polynomial that goes through the data at
// x(0) … x(k-1), so its coefficients are Lagrange's:
//
//	rows[i][j] = Π over q≠j of (x(k+i) - x(q)) / (x(j) - x(q))
func newCode(k, m int, dialect Dialect) *code {
	c := &code{k: k, m: m, dialect: dialect, rows: make([]byte, m*k)}
	below := make([]byte, k) // the product of the divisors, for each j
	for j := range k {
		below[j] = 1
		for q := range k {
			if q != j {
				below[j] = mul(below[j], dialect.point(j)^dialect.point(q))
			}
		}
	}
	for i := range m {
		x, above := dialect.point(k+i), byte(1)
		for q := range k {
			above = mul(above, x^dialect.point(q))
		}
		for j := range k {
			c.rows[i*k+j] = mul(above, inverse(mul(below[j], x^dialect.point(j))))
		}
	}
	return c
}

// codes are those in use anywhere: a few, unless somebody plays tricks.
var codes struct {
	sync.Mutex
	known map[codeKey]*code
}

type codeKey struct {
	k, m    int
	dialect Dialect
}

const maxCodes = 64

// codeFor returns the code that Valid has approved of. It may be called from
// any goroutine.
func codeFor(k, m int, dialect Dialect) *code {
	key := codeKey{k, m, dialect}
	codes.Lock()
	defer codes.Unlock()
	c := codes.known[key]
	if c == nil {
		if codes.known == nil || len(codes.known) >= maxCodes {
			codes.known = make(map[codeKey]*code)
		}
		c = newCode(k, m, dialect)
		codes.known[key] = c
	}
	return c
}
