package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// RTCP packet types.
const (
	TypeReceiverReport = 201 // RFC 3550 §6.4.2
	TypeSDES           = 202 // RFC 3550 §6.5
	TypeFeedback       = 205 // RFC 4585 §6.1
)

const (
	version      = 2
	headerBytes  = 12 // of a feedback packet
	leastPacket  = 8  // of any packet: header and sender
	senderOffset = 4
	mediaOffset  = 8

	typeLowest, typeHighest = 200, 211
)

// ErrPacket is returned for bytes that are not an RTCP packet.
var ErrPacket = errors.New("wire: not an RTCP packet")

// ErrMessage is in the error of a Parse function that was given another message
// than its own.
var ErrMessage = errors.New("wire: another message")

// ErrShort is in the error of a Parse function whose message is cut.
var ErrShort = errors.New("wire: message too short")

// A Packet is one RTCP packet of a datagram. It refers to the datagram's bytes.
type Packet struct {
	Format byte   // FMT; in other packet types than feedback a count
	Type   byte   // packet type, 200 to 211
	Sender uint32 // SSRC of the sender
	Media  uint32 // SSRC of the media source; zero in a packet of 8 bytes
	Bytes  []byte // all of it, at least 8 bytes
}

// Next takes the first RTCP packet off a datagram; rest is what follows it. A
// length beyond the datagram's end means up to the end, since FiberHome's punch
// comes like that. The error is ErrPacket; then nothing else in the datagram
// can be trusted.
func Next(datagram []byte) (p Packet, rest []byte, err error) {
	if len(datagram) < leastPacket || datagram[0]>>6 != version ||
		datagram[1] < typeLowest || datagram[1] > typeHighest {
		return Packet{}, nil, ErrPacket
	}
	size := 4 * (int(binary.BigEndian.Uint16(datagram[2:])) + 1)
	if size < leastPacket {
		return Packet{}, nil, ErrPacket
	}
	size = min(size, len(datagram))
	p = Packet{
		Format: datagram[0] & 0x1F,
		Type:   datagram[1],
		Sender: binary.BigEndian.Uint32(datagram[senderOffset:]),
		Bytes:  datagram[:size:size],
	}
	if size >= headerBytes {
		p.Media = binary.BigEndian.Uint32(datagram[mediaOffset:])
	}
	return p, datagram[size:], nil
}

// maxPackets bounds the packets of one datagram: compounds hold three, and
// servers of the telecom dialect have been seen to send a message twice in one.
const maxPackets = 16

// Packets yields the packets of a datagram up to the first that is none, at
// most 16.
func Packets(datagram []byte) func(yield func(Packet) bool) {
	return func(yield func(Packet) bool) {
		for range maxPackets {
			p, rest, err := Next(datagram)
			if err != nil || !yield(p) {
				return
			}
			datagram = rest
		}
	}
}

// check reports what keeps p from being the feedback message of a format and a
// least length.
func (p Packet) check(name string, format byte, least int) error {
	switch {
	case p.Type != TypeFeedback || p.Format != format:
		return fmt.Errorf("%w: %s: expected type 205, format %d, found type %d, format %d", ErrMessage, name, format, p.Type, p.Format)
	case len(p.Bytes) < least:
		return fmt.Errorf("%w: %s: expected at least %d bytes, found %d", ErrShort, name, least, len(p.Bytes))
	}
	return nil
}

func (p Packet) uint16(at int) uint16 { return binary.BigEndian.Uint16(p.Bytes[at:]) }
func (p Packet) uint32(at int) uint32 { return binary.BigEndian.Uint32(p.Bytes[at:]) }

// addr is the IPv4 address at an offset; zeros are no address.
func (p Packet) addr(at int) netip.Addr { return addr4(p.uint32(at)) }

func (p Packet) group() netip.Addr { return addr4(p.Media) }

func addr4(v uint32) netip.Addr {
	if v == 0 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// uint4 is an IPv4 address as a number, zero for any other.
func uint4(a netip.Addr) uint32 {
	if a = a.Unmap(); !a.Is4() {
		return 0
	}
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

// feedback appends a feedback packet of size zero bytes but for its header, and
// returns the whole slice and the packet in it.
func feedback(dst []byte, format byte, sender, media uint32, size int) (all, packet []byte) {
	at := len(dst)
	dst = append(dst, make([]byte, size)...)
	b := dst[at:]
	b[0], b[1] = version<<6|format, TypeFeedback
	binary.BigEndian.PutUint16(b[2:], uint16(size/4-1))
	binary.BigEndian.PutUint32(b[senderOffset:], sender)
	binary.BigEndian.PutUint32(b[mediaOffset:], media)
	return dst, b
}

// resize writes the length of the packet that begins at a place of b and ends
// with it.
func resize(b []byte, at int) []byte {
	binary.BigEndian.PutUint16(b[at+2:], uint16((len(b)-at)/4-1))
	return b
}

// A Message is what a Parse function returns.
type Message interface {
	// Append appends the message as it is sent.
	Append(dst []byte) []byte
}

// ParseClient parses a feedback packet that a client of any dialect has sent:
// *TelecomRequest, *TelecomTermination, *TelecomPunch, *HuaweiRequest,
// *HuaweiTermination, *HuaweiPunch, *RAMSRequest, *RAMSTermination or *NACK.
// Format 5 is Huawei's request or telecom's termination: their lengths differ.
func ParseClient(p Packet) (Message, error) {
	if p.Type != TypeFeedback {
		return nil, fmt.Errorf("%w: expected type 205, found %d", ErrMessage, p.Type)
	}
	switch p.Format {
	case formatNACK:
		return keep(ParseNACK(p))
	case telecomRequest:
		return keep(ParseTelecomRequest(p))
	case telecomTermination: // and huaweiRequest
		if len(p.Bytes) >= huaweiRequestBytes {
			return keep(ParseHuaweiRequest(p))
		}
		return keep(ParseTelecomTermination(p))
	case formatRAMS:
		if len(p.Bytes) >= ramsBytes && p.Bytes[ramsKindOffset] == ramsTermination {
			return keep(ParseRAMSTermination(p))
		}
		return keep(ParseRAMSRequest(p))
	case huaweiTermination:
		return keep(ParseHuaweiTermination(p))
	case huaweiTLV:
		if len(p.Bytes) < tlvBytes {
			return nil, p.check("TLV message", huaweiTLV, tlvBytes)
		}
		switch p.Bytes[tlvKindOffset] {
		case tlvTermination:
			return keep(ParseHuaweiTermination(p))
		case tlvPunch:
			return keep(ParseHuaweiPunch(p.Bytes))
		}
		return keep(ParseHuaweiRequest(p))
	case telecomPunch:
		return keep(ParseTelecomPunch(p))
	}
	return nil, fmt.Errorf("%w: expected a client's, found format %d", ErrMessage, p.Format)
}

// message is a pointer to a T that is a Message.
type message[T any] interface {
	*T
	Message
}

// keep makes a Message out of what a Parse function returned.
func keep[T any, M message[T]](m T, err error) (Message, error) {
	if err != nil {
		return nil, err
	}
	return M(&m), nil
}
