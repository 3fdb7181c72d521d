package ingest

import (
	"encoding/binary"
	"net/netip"
)

// Fixed sizes and the few fields of IP that the packet ring has to know
// (RFC 791 §3.1, RFC 8200 §3 and §4, RFC 768).
const (
	ip4Header = 20
	ip6Header = 40
	udpHeader = 8

	protocolHopByHop    = 0
	protocolUDP         = 17
	protocolRouting     = 43
	protocolFragment    = 44
	protocolDestination = 60

	// extensionsMax bounds the walk along IPv6 extension headers. No sender of
	// a stream has a use for more.
	extensionsMax = 8
)

// An ipAddr is an address of either family; IPv4 takes the first four bytes.
type ipAddr [16]byte

func rawAddr(a netip.Addr) (raw ipAddr) {
	copy(raw[:], a.AsSlice())
	return raw
}

// A packet is an IP packet, or a fragment of one, that holds UDP.
type packet struct {
	src, dst ipAddr
	v6       bool
	cut      bool // fewer bytes are there than the packet had: body is not to be used

	fragment bool   // one of several
	more     bool   // and not the last
	id       uint32 // of the packet that it is a part of
	offset   int    // of body in that, a multiple of 8

	body []byte // what follows the IP headers, without padding of the link
}

// parsePacket takes an IP packet apart. It is false for what the kernel's IP or
// this program has no use for: other protocols, lengths that contradict each
// other, a header whose checksum is wrong, too many extension headers. cut says
// that b is only the beginning of the packet.
func parsePacket(b []byte, cut bool) (p packet, ok bool) {
	if len(b) < ip4Header {
		return p, false
	}
	switch b[0] >> 4 {
	case 4:
		return parseIPv4(b, cut)
	case 6:
		return parseIPv6(b, cut)
	}
	return p, false
}

func parseIPv4(b []byte, cut bool) (p packet, ok bool) {
	const (
		dontCare = 0x4000 // "don't fragment" says nothing here
		moreBit  = 0x2000
		offset   = 0x1fff
	)
	header := int(b[0]&0xf) * 4
	total := int(binary.BigEndian.Uint16(b[2:]))
	if header < ip4Header || header > len(b) || total < header || b[9] != protocolUDP || fold(sum(b[:header], 0)) != 0xffff {
		return p, false
	}
	if total > len(b) {
		if !cut {
			return p, false
		}
		p.cut, total = true, len(b)
	}
	p.src, p.dst = ipAddr{b[12], b[13], b[14], b[15]}, ipAddr{b[16], b[17], b[18], b[19]}
	if part := binary.BigEndian.Uint16(b[6:]) &^ dontCare; part != 0 {
		p.fragment, p.more = true, part&moreBit != 0
		p.offset = int(part&offset) * 8
		p.id = uint32(binary.BigEndian.Uint16(b[4:]))
	}
	p.body = b[header:total]
	return p, true
}

func parseIPv6(b []byte, cut bool) (p packet, ok bool) {
	if len(b) < ip6Header {
		return p, false
	}
	total := ip6Header + int(binary.BigEndian.Uint16(b[4:]))
	if total > len(b) {
		if !cut {
			return p, false
		}
		p.cut, total = true, len(b)
	}
	p.v6 = true
	p.src, p.dst = ipAddr(b[8:24]), ipAddr(b[24:40])
	next, rest := b[6], b[ip6Header:total]
	for range extensionsMax {
		if next == protocolUDP {
			p.body = rest
			return p, true
		}
		if len(rest) < 8 {
			return p, false
		}
		size := 8 + int(rest[1])*8
		switch next {
		case protocolHopByHop, protocolDestination:
		case protocolRouting:
			if rest[3] != 0 { // segments left: it is on its way to somebody else
				return p, false
			}
		case protocolFragment:
			size = 8
			part := binary.BigEndian.Uint16(rest[2:])
			if part&^6 != 0 { // else it is whole (RFC 6946)
				p.fragment, p.more, p.offset = true, part&1 != 0, int(part&^7)
				p.id = binary.BigEndian.Uint32(rest[4:])
				if rest[0] != protocolUDP { // of what follows only the first part tells more
					return p, false
				}
			}
		default:
			return p, false
		}
		if size > len(rest) {
			return p, false
		}
		next, rest = rest[0], rest[size:]
	}
	return p, false
}

// A datagram is the UDP part of a packet.
type datagram struct {
	srcPort, dstPort uint16
	checksum         uint16
	whole            []byte // with its header
	payload          []byte
}

// udp takes the body of a whole packet for UDP. Of a packet that is cut only
// the ports are good. It is false when the lengths contradict each other.
func (p *packet) udp() (d datagram, ok bool) {
	b := p.body
	if len(b) < udpHeader {
		return d, false
	}
	d.srcPort, d.dstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	if p.cut {
		return d, true
	}
	size := int(binary.BigEndian.Uint16(b[4:]))
	if size < udpHeader || size > len(b) {
		return d, false
	}
	d.checksum = binary.BigEndian.Uint16(b[6:])
	d.whole, d.payload = b[:size:size], b[udpHeader:size:size]
	return d, true
}

// intact verifies the checksum over the datagram and its pseudo header. IPv4
// may do without one (RFC 768), IPv6 may not (RFC 8200 §8.1).
func (p *packet) intact(d *datagram) bool {
	if d.checksum == 0 {
		return !p.v6
	}
	pseudo := uint64(protocolUDP) + uint64(len(d.whole))
	if p.v6 {
		pseudo = sum(p.dst[:], sum(p.src[:], pseudo))
	} else {
		pseudo = sum(p.dst[:4], sum(p.src[:4], pseudo))
	}
	return fold(sum(d.whole, pseudo)) == 0xffff
}

// sum adds the big-endian 16-bit words of b to s, four at a time: with the
// carries put back, a sum of longer words folds into the same 16 bits (RFC 1071 §2).
func sum(b []byte, s uint64) uint64 {
	for len(b) >= 8 {
		v := binary.BigEndian.Uint64(b)
		s += v
		if s < v {
			s++
		}
		b = b[8:]
	}
	var rest uint64
	for i, c := range b {
		rest |= uint64(c) << (56 - 8*i)
	}
	s += rest
	if s < rest {
		s++
	}
	return s
}

// fold brings a sum to the 16 bits of a checksum's complement.
func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
