package fec

import "encoding/binary"

// scratch is memory for one solving.
type scratch struct {
	lost   []uint16
	memory []byte
	found  [][]byte
	matrix []byte
}

// take returns n cleared pieces of size bytes.
func (s *scratch) take(n, size int) [][]byte {
	if len(s.memory) < n*size {
		s.memory = make([]byte, n*size)
	}
	clear(s.memory[:n*size])
	s.found = s.found[:0]
	for i := range n {
		s.found = append(s.found, s.memory[i*size:(i+1)*size:(i+1)*size])
	}
	return s.found
}

// solveRS computes the lost datagrams of a group from as many rows of parity.
// It returns nil if what comes out cannot be of the stream, in any dialect.
func (d *Decoder) solveRS(g *group, lost []uint16) [][]byte {
	for i := range Dialect(dialects) {
		dialect := d.rs.dialect ^ i
		if !dialect.Valid(g.count, g.parity) {
			continue
		}
		found := d.compute(g, lost, d.rs.codeFor(g.count, g.parity, dialect))
		if found != nil && d.accept(lost, found) {
			d.rs.dialect = dialect
			return found
		}
	}
	return nil
}

// compute solves the equations of as many rows as datagrams are lost: what the
// rows are without the media that came is a square matrix times what is lost.
func (d *Decoder) compute(g *group, lost []uint16, c *code) [][]byte {
	n := len(lost)
	pieces := d.scratch.take(2*n, g.size)
	rest, found := pieces[:n], pieces[n:]
	for i := range rest {
		copy(rest[i], g.rows[i].bytes)
	}
	for place := range g.count {
		datagram := d.store.get(g.seq(place))
		if datagram == nil {
			continue
		}
		datagram = datagram[:min(len(datagram), g.size)]
		for i := range rest {
			addMul(c.row(g.rows[i].index)[place], datagram, rest[i])
		}
	}

	if len(d.scratch.matrix) < 2*n*n {
		d.scratch.matrix = make([]byte, 2*n*n)
	}
	matrix, inverted := d.scratch.matrix[:n*n], d.scratch.matrix[n*n:2*n*n]
	for i := range n {
		for j, seq := range lost {
			matrix[i*n+j] = c.row(g.rows[i].index)[g.place(seq)]
		}
	}
	if !invert(matrix, inverted, n) {
		return nil
	}
	for j := range found {
		for i := range rest {
			addMul(inverted[j*n+i], rest[i], found[j])
		}
	}
	return found
}

// accept checks datagrams that were computed, cuts them to their length and
// mends their time stamps.
func (d *Decoder) accept(lost []uint16, found [][]byte) bool {
	for i, b := range found {
		if !d.ours(b) || binary.BigEndian.Uint16(b[rtpSeqOffset:]) != lost[i] {
			return false
		}
		n := d.config.Check(b)
		if n < rtpHeaderBytes || n > len(b) {
			return false
		}
		found[i] = b[:n]
	}
	for i, seq := range lost {
		d.mendStamp(seq, found[i])
	}
	return true
}

// ours compares what all RTP headers of a stream have in common: version,
// payload type and source. The marker is each packet's own.
func (d *Decoder) ours(b []byte) bool {
	return b[0]>>6 == rtpVersion && b[1]&rtpPayloadType == d.model[1]&rtpPayloadType &&
		[4]byte(b[rtpSourceOffset:]) == [4]byte(d.model[rtpSourceOffset:])
}

// mendStamp puts a time stamp between those of the neighbours, if it is not
// there already: some senders write the stamps after the parity was made.
func (d *Decoder) mendStamp(seq uint16, b []byte) {
	const near = 64
	before, distance, hasBefore := d.neighbour(seq, -1, near)
	after, rest, hasAfter := d.neighbour(seq, 1, near)
	stamp := binary.BigEndian.Uint32(b[rtpStampOffset:])
	switch {
	case hasBefore && hasAfter:
		if int32(after-before) >= 0 && (int32(stamp-before) < 0 || int32(after-stamp) < 0) {
			stamp = before + uint32(int64(int32(after-before))*distance/(distance+rest))
		}
	case hasBefore && !closeStamps(stamp, before):
		stamp = before
	case hasAfter && !closeStamps(stamp, after):
		stamp = after
	}
	binary.BigEndian.PutUint32(b[rtpStampOffset:], stamp)
}

// closeStamps reports whether two stamps are a second apart at most.
func closeStamps(a, b uint32) bool {
	d := int32(a - b)
	return d < 90_000 && d > -90_000
}

// neighbour returns the stamp of the next datagram in a direction, and how far
// away it is.
func (d *Decoder) neighbour(seq uint16, direction int64, limit int64) (stamp uint32, distance int64, ok bool) {
	for distance = 1; distance <= limit; distance++ {
		if b := d.store.get(seq + uint16(direction*distance)); b != nil {
			return binary.BigEndian.Uint32(b[rtpStampOffset:]), distance, true
		}
	}
	return 0, 0, false
}

// recognise compares a row of parity with what each dialect makes of a whole
// group. The time stamps are left out, as mendStamp explains.
func (d *Decoder) recognise(g *group, index int, parity []byte) {
	for dialect := range Dialect(dialects) {
		if !dialect.Valid(g.count, g.parity) {
			continue
		}
		row := d.rs.codeFor(g.count, g.parity, dialect).row(index)
		sum := d.scratch.take(1, g.size)[0]
		for place := range g.count {
			datagram := d.store.get(g.seq(place))
			if datagram == nil {
				return // it is from before what is kept
			}
			addMul(row[place], datagram[:min(len(datagram), g.size)], sum)
		}
		if string(sum[:rtpStampOffset]) == string(parity[:rtpStampOffset]) &&
			string(sum[rtpSourceOffset:]) == string(parity[rtpSourceOffset:]) {
			d.rs.dialect, d.rs.known = dialect, true
			return
		}
	}
	d.rs.mismatch = true
}

// solveXOR computes the one lost datagram of a row or column.
func (d *Decoder) solveXOR(g *group, lost []uint16) [][]byte {
	if len(lost) != 1 || len(g.rows) == 0 {
		return nil
	}
	found := d.scratch.take(1, g.size)
	b := found[0]
	h, data := g.xor, b[rtpHeaderBytes:]
	copy(data, g.rows[0].bytes)
	for place := range g.count {
		if datagram := d.store.get(g.seq(place)); datagram != nil {
			if len(datagram) > g.size {
				return nil
			}
			h.add(datagram, data)
		}
	}
	if int(h.length) > len(data) {
		return nil
	}
	b[0], b[1] = rtpVersion<<6|h.bits, h.kind
	binary.BigEndian.PutUint16(b[rtpSeqOffset:], lost[0])
	binary.BigEndian.PutUint32(b[rtpStampOffset:], h.timestamp)
	copy(b[rtpSourceOffset:rtpHeaderBytes], d.model[rtpSourceOffset:])
	found[0] = b[:rtpHeaderBytes+int(h.length)]
	if !d.ours(b) || d.config.Check(found[0]) != len(found[0]) {
		return nil
	}
	return found
}
