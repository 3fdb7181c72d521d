package ingest

import (
	"encoding/binary"

	"zapcast/mpegts"
)

// Kind says what a datagram on a media socket is.
type Kind uint8

// The kinds of datagrams, in the order in which Classify tests for them.
const (
	KindEmpty   Kind = iota // no bytes: a keep-alive, or a hole punched into a NAT
	KindRTCP                // a control packet, never part of the stream
	KindFEC                 // operator parity in RTP, payload type 97 or 127
	KindRTP                 // any other RTP packet; its lengths are yet to be checked
	KindTS                  // bare MPEG-TS; only the first sync bytes have been checked
	KindForeign             // anything else
	kinds       = iota
)

const (
	// tsSyncSteps is how many packets after the first one must begin with a
	// sync byte, where the datagram is that long, for it to be taken for TS.
	tsSyncSteps = 3

	// rtcpLowest and rtcpHighest bound the packet types of RTCP. RTP payload
	// types 72-83 with the marker set look the same and are not used beside
	// RTCP (RFC 5761 §4).
	rtcpLowest, rtcpHighest = 200, 211
	rtcpHeaderBytes         = 8

	// fecTypeUsual and fecTypeOther are the payload types of parity that
	// operators send on the media port itself.
	fecTypeUsual, fecTypeOther = 127, 97
)

// String returns the kind in the field's words.
func (k Kind) String() string {
	switch k {
	case KindEmpty:
		return "empty"
	case KindRTCP:
		return "RTCP"
	case KindFEC:
		return "FEC"
	case KindRTP:
		return "RTP"
	case KindTS:
		return "MPEG-TS"
	}
	return "foreign"
}

// Classify tells what kind of datagram b is, by its first bytes and its length
// alone. A stream may change its kind from one datagram to the next.
func Classify(b []byte) Kind {
	switch {
	case len(b) == 0:
		return KindEmpty
	case b[0]>>6 == rtpVersion && isRTCP(b):
		return KindRTCP
	case b[0]>>6 == rtpVersion && len(b) >= rtpHeaderBytes:
		switch b[1] & rtpPayloadType {
		case fecTypeUsual, fecTypeOther:
			return KindFEC
		}
		return KindRTP
	case len(b) >= mpegts.PacketSize && b[0] == mpegts.SyncByte && onGrid(b):
		return KindTS
	}
	return KindForeign
}

func isRTCP(b []byte) bool {
	return len(b) >= rtcpHeaderBytes && b[1] >= rtcpLowest && b[1] <= rtcpHighest &&
		(int(binary.BigEndian.Uint16(b[2:]))+1)*4 <= len(b)
}

func onGrid(b []byte) bool {
	for step := 1; step <= tsSyncSteps && step*mpegts.PacketSize < len(b); step++ {
		if b[step*mpegts.PacketSize] != mpegts.SyncByte {
			return false
		}
	}
	return true
}
