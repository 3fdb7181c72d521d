package fec

import (
	"encoding/binary"
	"errors"
)

// A parity datagram of SMPTE ST 2022-1 §8 (the header of RFC 2733 with an
// extension). It follows the fixed RTP header, whose bits P, X, CC and M are
// not its own: they are the XOR of those of the datagrams protected.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        SNBase low bits        |        length recovery        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|E| PT recovery |                   mask (0)                    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                          TS recovery                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|X|D|type |index|    offset     |      NA       |  SNBase ext   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          XOR of all that follows the fixed RTP headers …      |
const (
	xorLengthOffset = 2
	xorTypeOffset   = 4
	xorStampOffset  = 8
	xorKindOffset   = 12
	xorStepOffset   = 13
	xorCountOffset  = 14
	xorExtOffset    = 15
	xorHeaderBytes  = 16

	xorExtended = 0x80 // E: the extension is there
	xorRow      = 0x40 // D: 0 column, 1 row
	xorPlainXOR = 0xbf // all but D must be 0: no further extension, XOR, index 0

	// XORPayloadType is what encoders usually mark this parity with.
	XORPayloadType = 96

	// maxSpan bounds from the first to the last number that a group protects:
	// about half a second of a 20 Mbit/s stream.
	maxSpan = 1024

	rtpVersion      = 2
	rtpBits         = 0x3f // of the first byte: P, X and CC
	rtpMarker       = 0x80 // of the second
	rtpPayloadType  = 0x7f
	rtpSeqOffset    = 2
	rtpStampOffset  = 4
	rtpSourceOffset = 8
)

// ErrNotXOR is what ParseXOR says of a datagram that is something else.
var ErrNotXOR = errors.New("fec: not parity as in SMPTE 2022-1")

// XORHeader says what a parity datagram protects, and holds what the fixed
// headers of these datagrams sum up to.
type XORHeader struct {
	Base  uint16 // first sequence number
	Step  int    // to the next, 1 to 255: the columns of the matrix, or 1 for a row
	Count int    // datagrams protected, 1 to 255: rows for a column, columns for a row
	Row   bool

	bits      byte // P, X and CC
	kind      byte // M and PT
	length    uint16
	timestamp uint32
}

// ParseXOR reads a whole datagram as parity of SMPTE 2022-1. The data that it
// returns is part of the datagram. It fails with ErrNotXOR, and with ErrGeometry
// for a matrix that spans more than 1024 numbers.
func ParseXOR(datagram []byte) (h XORHeader, data []byte, err error) {
	if len(datagram) < rtpHeaderBytes+xorHeaderBytes || datagram[0]>>6 != rtpVersion {
		return XORHeader{}, nil, ErrNotXOR
	}
	b := datagram[rtpHeaderBytes:]
	if b[xorTypeOffset]&xorExtended == 0 || b[xorTypeOffset+1]|b[xorTypeOffset+2]|b[xorTypeOffset+3] != 0 ||
		b[xorKindOffset]&xorPlainXOR != 0 || b[xorExtOffset] != 0 || b[xorStepOffset] == 0 || b[xorCountOffset] == 0 {
		return XORHeader{}, nil, ErrNotXOR
	}
	h = XORHeader{
		Base:      binary.BigEndian.Uint16(b),
		Step:      int(b[xorStepOffset]),
		Count:     int(b[xorCountOffset]),
		Row:       b[xorKindOffset]&xorRow != 0,
		bits:      datagram[0] & rtpBits,
		kind:      datagram[1]&rtpMarker | b[xorTypeOffset]&rtpPayloadType,
		length:    binary.BigEndian.Uint16(b[xorLengthOffset:]),
		timestamp: binary.BigEndian.Uint32(b[xorStampOffset:]),
	}
	data = b[xorHeaderBytes:]
	switch {
	case h.Row && h.Step != 1 || rtpHeaderBytes+len(data) > maxProtected:
		return XORHeader{}, nil, ErrNotXOR
	case h.Step*h.Count > maxSpan:
		return XORHeader{}, nil, ErrGeometry
	}
	return h, data, nil
}

// append appends what follows the fixed RTP header of a parity datagram to b.
func (h XORHeader) append(b, data []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, h.Base)
	b = binary.BigEndian.AppendUint16(b, h.length)
	b = append(b, xorExtended|h.kind&rtpPayloadType, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, h.timestamp)
	direction := byte(0)
	if h.Row {
		direction = xorRow
	}
	b = append(b, direction, byte(h.Step), byte(h.Count), 0)
	return append(b, data...)
}

// add takes a datagram into the sum, or out of it again. sum has room for all
// that follows the datagram's fixed header.
func (h *XORHeader) add(datagram, sum []byte) {
	h.bits ^= datagram[0] & rtpBits
	h.kind ^= datagram[1]
	h.length ^= uint16(len(datagram) - rtpHeaderBytes)
	h.timestamp ^= binary.BigEndian.Uint32(datagram[rtpStampOffset:])
	addMul(1, datagram[rtpHeaderBytes:], sum)
}
