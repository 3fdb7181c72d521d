package fec

import (
	"fmt"

	"github.com/pion/rtp"
)

// Parity is a datagram that an encoder has made.
type Parity struct {
	Method   Method
	Datagram []byte // whole; valid until the next call of the encoder
}

// An RSEncoder makes the parity of the operators: m datagrams after each k.
type RSEncoder struct {
	code  *code
	count int // media of the group so far
	size  int // of the longest of them
	begin uint16
	sums  [][]byte

	seq uint16
	out parityBuffer
}

// NewRSEncoder returns an encoder for groups of k media and m parity datagrams;
// k and m are 1 at least, and 256 together at most (255 in the dialect Alpha).
func NewRSEncoder(k, m int, dialect Dialect) (*RSEncoder, error) {
	if !dialect.Valid(k, m) {
		return nil, fmt.Errorf("fec: Reed-Solomon with %d media and %d parity datagrams (%s): want at least 1 of each and %d in all at most",
			k, m, dialect, 256-int(dialect))
	}
	e := &RSEncoder{code: codeFor(k, m, dialect)}
	for range m {
		e.sums = append(e.sums, make([]byte, maxProtected))
	}
	return e, nil
}

// Add takes the next datagram of the stream, 12 to 1536 bytes, and returns the
// parity that is to be sent after it. Sequence numbers go up by one.
func (e *RSEncoder) Add(datagram []byte) []Parity {
	e.out.reset()
	var h rtp.Header
	if _, err := h.Unmarshal(datagram); err != nil || len(datagram) > maxProtected {
		return nil
	}
	if e.count == 0 {
		e.begin, e.size = h.SequenceNumber, 0
		for _, sum := range e.sums {
			clear(sum)
		}
	}
	for i, sum := range e.sums {
		addMul(e.code.row(i)[e.count], datagram, sum)
	}
	e.size = max(e.size, len(datagram))
	if e.count++; e.count < e.code.k {
		return nil
	}
	e.count = 0
	for i, sum := range e.sums {
		head := RSHeader{Begin: e.begin, End: h.SequenceNumber, M: e.code.m, Index: i, Protected: e.size}
		b := e.out.header(rtp.Header{Version: rtpVersion, PayloadType: RSPayloadType, SequenceNumber: e.seq, Timestamp: h.Timestamp, SSRC: h.SSRC})
		e.seq++
		e.out.add(ReedSolomon, head.append(b, sum[:e.size]))
	}
	return e.out.list
}

// An XOREncoder makes the parity of SMPTE 2022-1 for a matrix of l columns and
// d rows: one datagram after each row, and one for each column of a matrix,
// spread over the next one so that a burst of losses does not take both.
type XOREncoder struct {
	l, d  int
	count int // media of the matrix so far

	row      xorSum
	columns  []xorSum // of the matrix that is being sent
	finished []xorSum // of the one before; empty: it has been sent
	rows     bool

	seq [methods]uint16
	out parityBuffer
}

type xorSum struct {
	header XORHeader
	data   [maxProtected]byte
	size   int
}

// NewXOREncoder returns an encoder for l columns, 1 to 255, and d rows, 1 to 255
// and l·d 1024 at most. Without rows it makes columns alone.
func NewXOREncoder(l, d int, rows bool) (*XOREncoder, error) {
	if l < 1 || d < 1 || l > 255 || d > 255 || l*d > maxSpan {
		return nil, fmt.Errorf("fec: matrix of %d columns and %d rows: want 1 to 255 of each and %d datagrams at most", l, d, maxSpan)
	}
	return &XOREncoder{l: l, d: d, rows: rows, columns: make([]xorSum, l)}, nil
}

// Add is as RSEncoder's.
func (e *XOREncoder) Add(datagram []byte) []Parity {
	e.out.reset()
	var h rtp.Header
	if _, err := h.Unmarshal(datagram); err != nil || len(datagram) > maxProtected {
		return nil
	}
	if len(e.finished) > 0 && e.count%e.d == 0 {
		if i := e.count / e.d; i < len(e.finished) {
			e.emit(Column, &e.finished[i], h)
		}
	}
	column, place := e.count%e.l, e.count/e.l
	if place == 0 {
		e.columns[column].begin(XORHeader{Base: h.SequenceNumber, Step: e.l, Count: e.d})
	}
	e.columns[column].add(datagram)
	if column == 0 {
		e.row.begin(XORHeader{Base: h.SequenceNumber, Step: 1, Count: e.l, Row: true})
	}
	e.row.add(datagram)
	if e.rows && column == e.l-1 {
		e.emit(Row, &e.row, h)
	}
	if e.count++; e.count == e.l*e.d {
		e.count = 0
		if e.finished == nil {
			e.finished = make([]xorSum, e.l)
		}
		e.columns, e.finished = e.finished, e.columns
	}
	return e.out.list
}

func (e *XOREncoder) emit(method Method, s *xorSum, last rtp.Header) {
	b := e.out.header(rtp.Header{Version: rtpVersion, PayloadType: XORPayloadType, SequenceNumber: e.seq[method], Timestamp: last.Timestamp})
	e.seq[method]++
	b[0] |= s.header.bits
	b[1] |= s.header.kind & rtpMarker
	e.out.add(method, s.header.append(b, s.data[:s.size]))
}

func (s *xorSum) begin(h XORHeader) {
	s.header, s.size = h, 0
	clear(s.data[:])
}

func (s *xorSum) add(datagram []byte) {
	s.header.add(datagram, s.data[:])
	s.size = max(s.size, len(datagram)-rtpHeaderBytes)
}

// parityBuffer keeps what an encoder returns.
type parityBuffer struct {
	list    []Parity
	buffers [][]byte
}

func (p *parityBuffer) reset() { p.list = p.list[:0] }

// header begins the next datagram.
func (p *parityBuffer) header(h rtp.Header) []byte {
	if len(p.buffers) == len(p.list) {
		p.buffers = append(p.buffers, make([]byte, rtpHeaderBytes, rtpHeaderBytes+xorHeaderBytes+maxProtected))
	}
	b := p.buffers[len(p.list)][:rtpHeaderBytes]
	if _, err := h.MarshalTo(b); err != nil {
		panic("fec: marshal an RTP header: " + err.Error())
	}
	return b
}

func (p *parityBuffer) add(method Method, datagram []byte) {
	p.list = append(p.list, Parity{method, datagram})
}
