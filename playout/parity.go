package playout

import (
	"fmt"
	"strconv"
	"strings"

	"zapcast/fec"
)

// Parity is forward error correction that goes with a stream: docs/repair.md.
// The zero value is none. It needs sequence numbers, so it goes to destinations
// of RTP only.
type Parity struct {
	// Media and Count are the k and m of Reed-Solomon as operators send it; it
	// goes to the media's port + 2.
	Media, Count int
	Dialect      fec.Dialect

	// Columns and Rows are the matrix of SMPTE 2022-1, whose parity goes to the
	// media's port + 2 (columns) and + 4 (rows).
	Columns, Rows int
}

// parityShift is how far above the media's port parity goes.
var parityShift = [...]uint16{fec.ReedSolomon: 2, fec.Column: 2, fec.Row: 4}

// maxShift is the farthest of them.
const maxShift = 4

// ParseParity reads rs:K,M or rs:K,M,alpha or 2022-1:L,D.
func ParseParity(s string) (Parity, error) {
	kind, rest, _ := strings.Cut(s, ":")
	fields := strings.Split(rest, ",")
	number := func(i int) int {
		n, _ := strconv.Atoi(fields[i]) // 0 is refused
		return n
	}
	var p Parity
	switch {
	case kind == "rs" && len(fields) == 2:
		p = Parity{Media: number(0), Count: number(1)}
	case kind == "rs" && len(fields) == 3 && fields[2] == fec.Alpha.String():
		p = Parity{Media: number(0), Count: number(1), Dialect: fec.Alpha}
	case kind == "2022-1" && len(fields) == 2:
		p = Parity{Columns: number(0), Rows: number(1)}
	default:
		return Parity{}, fmt.Errorf("playout: parity %q: want rs:K,M or rs:K,M,alpha or 2022-1:L,D", s)
	}
	_, err := p.encoder()
	return p, err
}

// encoder returns what makes the parity, nil for none.
func (p Parity) encoder() (encoder, error) {
	switch {
	case p == Parity{}:
		return nil, nil
	case p.Columns == 0 && p.Rows == 0:
		return fec.NewRSEncoder(p.Media, p.Count, p.Dialect)
	}
	return fec.NewXOREncoder(p.Columns, p.Rows, true)
}

type encoder interface {
	Add(datagram []byte) []fec.Parity
}

// protection makes the parity of a stream and spreads it between the media that
// follow, so that a burst of losses does not take all of it.
type protection struct {
	encoder encoder // nil: none
	waiting queue
	sent    int64
}

// add takes the next of the media and hands out the parity that goes behind it,
// valid until out returns.
func (p *protection) add(d datagram, out func(datagram)) {
	if p.encoder == nil {
		return
	}
	if parity := p.encoder.Add(d.data); len(parity) > 0 {
		p.flush(d, out) // what still waits would wait ever longer
		for _, made := range parity {
			p.waiting.push(datagram{data: made.Datagram, shift: parityShift[made.Method]})
		}
		return
	}
	p.give(min(1, p.waiting.len), d, out)
}

// flush hands out all that waits, behind d.
func (p *protection) flush(d datagram, out func(datagram)) { p.give(p.waiting.len, d, out) }

func (p *protection) give(n int, d datagram, out func(datagram)) {
	for range n {
		parity := p.waiting.peek(0)
		parity.due = d.due
		p.sent++
		out(parity)
		p.waiting.drop(1)
	}
}
