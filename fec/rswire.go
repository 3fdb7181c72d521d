package fec

import (
	"encoding/binary"
	"errors"
)

// The payload of a Reed-Solomon parity datagram of the operators. It has no
// public specification; docs/repair.md says how it was found:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     first number protected    |     last number protected     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|       m       |     index     |         parity length         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        protected length       |           reserved            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            parity …                           |
const (
	rsEndOffset       = 2
	rsCountOffset     = 4
	rsIndexOffset     = 5
	rsParityOffset    = 6
	rsProtectedOffset = 8
	rsHeaderBytes     = 12

	// RSPayloadType marks parity in RTP; some senders use RSOtherType.
	RSPayloadType, RSOtherType = 127, 97

	// rtpHeaderBytes is the fixed header, which is protected like the rest.
	rtpHeaderBytes = 12
	// maxProtected is what fits an Ethernet frame, with a little room.
	maxProtected = 1536
)

// What ParseRS finds wrong.
var (
	ErrShort    = errors.New("fec: parity is cut short")
	ErrGeometry = errors.New("fec: geometry that no Reed-Solomon code over 256 elements has")
	ErrLength   = errors.New("fec: protected length is not within 12-1536 bytes or beyond the parity")
)

// RSHeader says what a parity datagram protects.
type RSHeader struct {
	Begin, End uint16 // first and last sequence number, inclusive
	M          int    // parity datagrams of the group, 1 to 255
	Index      int    // which of them this is, 0 to M-1
	Protected  int    // bytes of the longest datagram of the group, RTP header included
}

// K returns how many media datagrams the group has, 1 to 65536.
func (h RSHeader) K() int { return int(h.End-h.Begin) + 1 }

// ParseRS reads the payload of an RTP packet as Reed-Solomon parity. What it
// returns is h.Protected bytes long and part of payload. It fails with ErrShort,
// ErrGeometry or ErrLength.
func ParseRS(payload []byte) (h RSHeader, parity []byte, err error) {
	if len(payload) < rsHeaderBytes {
		return RSHeader{}, nil, ErrShort
	}
	h = RSHeader{
		Begin:     binary.BigEndian.Uint16(payload),
		End:       binary.BigEndian.Uint16(payload[rsEndOffset:]),
		M:         int(payload[rsCountOffset]),
		Index:     int(payload[rsIndexOffset]),
		Protected: int(binary.BigEndian.Uint16(payload[rsProtectedOffset:])),
	}
	length := int(binary.BigEndian.Uint16(payload[rsParityOffset:]))
	switch {
	case !Integer.Valid(h.K(), h.M) || h.Index >= h.M:
		return RSHeader{}, nil, ErrGeometry
	case h.Protected < rtpHeaderBytes || h.Protected > maxProtected || length < h.Protected:
		return RSHeader{}, nil, ErrLength
	case rsHeaderBytes+length > len(payload):
		return RSHeader{}, nil, ErrShort
	}
	return h, payload[rsHeaderBytes : rsHeaderBytes+h.Protected], nil
}

// append appends the payload of a parity datagram to b.
func (h RSHeader) append(b, parity []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, h.Begin)
	b = binary.BigEndian.AppendUint16(b, h.End)
	b = append(b, byte(h.M), byte(h.Index))
	b = binary.BigEndian.AppendUint16(b, uint16(len(parity)))
	b = binary.BigEndian.AppendUint16(b, uint16(h.Protected))
	b = append(b, 0, 0)
	return append(b, parity...)
}
