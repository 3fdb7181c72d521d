package wire

import (
	"encoding/binary"
	"fmt"
)

// maxName is the longest canonical name: its length is a byte.
const maxName = 255

// AppendCompound appends what must stand before a feedback message where
// reduced-size RTCP (RFC 5506) was not agreed on: a receiver report without
// blocks and a source description with the canonical name, of which at most 255
// bytes count (RFC 3550 §6.1, RFC 4585 §3.1).
func AppendCompound(dst []byte, ssrc uint32, name string) []byte {
	const itemName = 1 // CNAME, RFC 3550 §6.5.1
	dst = append(dst, version<<6, TypeReceiverReport, 0, 1)
	dst = binary.BigEndian.AppendUint32(dst, ssrc)

	at := len(dst)
	dst = append(dst, version<<6|1, TypeSDES, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, ssrc)
	name = name[:min(len(name), maxName)]
	dst = append(dst, itemName, byte(len(name)))
	dst = append(dst, name...)
	// The chunk ends with at least one zero, at a multiple of four bytes.
	dst = append(dst, make([]byte, 4-(len(dst)-at)%4)...)
	return resize(dst, at)
}

// rtxBytes is what stands before the original payload of a retransmission: the
// original sequence number (RFC 4588 §4).
const rtxBytes = 2

// SplitRTX takes the payload of a retransmission apart. It reports false where
// the payload is too short. original is a part of payload.
func SplitRTX(payload []byte) (sequence uint16, original []byte, ok bool) {
	if len(payload) < rtxBytes {
		return 0, nil, false
	}
	return binary.BigEndian.Uint16(payload), payload[rtxBytes:], true
}

const formatNACK = 1

// maxLost bounds the pairs of a NACK: 64 of them name 1088 packets.
const maxLost = 64

// A NACK asks for packets again (RFC 4585 §6.2.1; client to feedback target).
type NACK struct {
	Client uint32
	Media  uint32 // SSRC of the stream; may be zero
	Lost   []Lost // at most 64
}

// Lost names up to 17 packets: First, and First+i+1 for each bit i of Following.
type Lost struct {
	First     uint16
	Following uint16
}

// Append appends the message alone, as RAMSRequest.Append does.
func (m *NACK) Append(dst []byte) []byte {
	at := len(dst)
	dst, _ = feedback(dst, formatNACK, m.Client, m.Media, headerBytes)
	for _, l := range m.Lost[:min(len(m.Lost), maxLost)] {
		dst = binary.BigEndian.AppendUint16(dst, l.First)
		dst = binary.BigEndian.AppendUint16(dst, l.Following)
	}
	return resize(dst, at)
}

// ParseNACK parses a NACK. One that names nothing is an error.
func ParseNACK(p Packet) (NACK, error) {
	if err := p.check("NACK", formatNACK, headerBytes+4); err != nil {
		return NACK{}, err
	}
	m := NACK{Client: p.Sender, Media: p.Media}
	for at := headerBytes; at+4 <= len(p.Bytes); at += 4 {
		if len(m.Lost) == maxLost {
			return NACK{}, fmt.Errorf("%w: NACK: expected at most %d pairs, found more", ErrMessage, maxLost)
		}
		m.Lost = append(m.Lost, Lost{p.uint16(at), p.uint16(at + 2)})
	}
	return m, nil
}
