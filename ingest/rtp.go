package ingest

import "encoding/binary"

// The fixed RTP header, RFC 3550 §5.1:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|V=2|P|X|  CC   |M|     PT      |       sequence number         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                           timestamp                           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           synchronization source (SSRC) identifier            |
//	+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+
const (
	rtpVersion = 2

	rtpSequenceOffset  = 2
	rtpTimestampOffset = 4
	rtpSSRCOffset      = 8
	rtpHeaderBytes     = 12

	rtpPadding   = 0x20 // in byte 0: the last byte counts the bytes to strip
	rtpExtension = 0x10 // in byte 0: an extension follows the CSRC list
	rtpCSRCCount = 0x0f // in byte 0: number of CSRC identifiers, 4 bytes each

	rtpPayloadType = 0x7f // in byte 1, below the marker bit
)

// RTPHeader is the part of an RTP header that the receive path looks at.
type RTPHeader struct {
	PayloadType uint8 // 33 for MPEG-TS
	Sequence    uint16
	Timestamp   uint32 // 90 kHz; plays no part in ordering
	SSRC        uint32 // zero is an SSRC like any other
}

// PeekRTP reads the header of an RTP packet and finds its payload, which is a
// part of b and may be empty (a keep-alive, RFC 6263 §4.1). It reports false
// for another version than 2 and where the lengths contradict each other: CSRC
// list or extension beyond the end, padding of zero bytes or of more than there
// are. What an extension holds is not looked into.
func PeekRTP(b []byte) (h RTPHeader, payload []byte, ok bool) {
	if len(b) < rtpHeaderBytes || b[0]>>6 != rtpVersion {
		return RTPHeader{}, nil, false
	}
	start, end := rtpHeaderBytes, len(b)
	if b[0]&^(rtpVersion<<6) != 0 {
		if start, end, ok = rtpPayloadBounds(b); !ok {
			return RTPHeader{}, nil, false
		}
	}
	h = RTPHeader{
		PayloadType: b[1] & rtpPayloadType,
		Sequence:    binary.BigEndian.Uint16(b[rtpSequenceOffset:]),
		Timestamp:   binary.BigEndian.Uint32(b[rtpTimestampOffset:]),
		SSRC:        binary.BigEndian.Uint32(b[rtpSSRCOffset:]),
	}
	return h, b[start:end], true
}

// rtpPayloadBounds finds the payload of a packet that has CSRC identifiers, an
// extension (RFC 3550 §5.3.1) or padding.
func rtpPayloadBounds(b []byte) (start, end int, ok bool) {
	start, end = rtpHeaderBytes+4*int(b[0]&rtpCSRCCount), len(b)
	if b[0]&rtpExtension != 0 {
		if start+4 > end {
			return 0, 0, false
		}
		words := int(binary.BigEndian.Uint16(b[start+2:]))
		start += 4 + 4*words
	}
	if start > end {
		return 0, 0, false
	}
	if b[0]&rtpPadding != 0 {
		padding := int(b[end-1])
		if padding == 0 || padding > end-start {
			return 0, 0, false
		}
		end -= padding
	}
	return start, end, true
}
