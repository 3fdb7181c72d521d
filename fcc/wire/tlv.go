package wire

import (
	"encoding/binary"
	"net/netip"
)

// The type-length-value form that Huawei's and RFC 6285's messages share:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     type      |   reserved    |   length of the value alone   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     value, zeros up to a multiple of four bytes               |
const (
	tlvHeaderBytes = 4
	maxTLVs        = 64
)

// tlvs are the values of a message by type. Types may stand once: of a
// repeated one the first counts.
type tlvs map[byte][]byte

// parseTLVs reads up to the end, or up to a value that is cut.
func parseTLVs(b []byte) tlvs {
	found := make(tlvs)
	for range maxTLVs {
		if len(b) < tlvHeaderBytes {
			break
		}
		kind, size := b[0], int(binary.BigEndian.Uint16(b[2:]))
		b = b[tlvHeaderBytes:]
		if size > len(b) {
			break
		}
		if _, twice := found[kind]; !twice {
			found[kind] = b[:size]
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return found
}

// number is a value of 1, 2, 4 or 8 bytes; any other length is no number.
func (t tlvs) number(kind byte) (v uint64, ok bool) {
	b := t[kind]
	switch len(b) {
	case 1, 2, 4, 8:
		for _, c := range b {
			v = v<<8 | uint64(c)
		}
		return v, true
	}
	return 0, false
}

// addr is a value of 4 or 16 bytes; zeros are no address.
func (t tlvs) addr(kind byte) netip.Addr {
	a, ok := netip.AddrFromSlice(t[kind])
	if !ok || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

func appendTLV(dst []byte, kind byte, value ...byte) []byte {
	dst = append(dst, kind, 0, byte(len(value)>>8), byte(len(value)))
	dst = append(dst, value...)
	return append(dst, make([]byte, -len(value)&3)...)
}

func appendTLV16(dst []byte, kind byte, v uint16) []byte {
	return appendTLV(dst, kind, byte(v>>8), byte(v))
}

func appendTLV32(dst []byte, kind byte, v uint32) []byte {
	return appendTLV(dst, kind, binary.BigEndian.AppendUint32(nil, v)...)
}

func appendTLV64(dst []byte, kind byte, v uint64) []byte {
	return appendTLV(dst, kind, binary.BigEndian.AppendUint64(nil, v)...)
}

// appendTLVAddr appends an address, or nothing where there is none.
func appendTLVAddr(dst []byte, kind byte, a netip.Addr) []byte {
	if !a.IsValid() {
		return dst
	}
	return appendTLV(dst, kind, a.AsSlice()...)
}
