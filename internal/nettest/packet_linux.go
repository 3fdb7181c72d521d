package nettest

import (
	"encoding/binary"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// A Packet is an IP packet as it was on the cable.
type Packet struct {
	At          time.Time
	From, To    netip.AddrPort // ports of UDP, else 0
	Protocol    byte           // unix.IPPROTO_*; of ICMPv6, behind the options
	Hops        int            // time to live, or hop limit
	RouterAlert bool
	ChecksumOK  bool   // of IGMP and ICMPv6; not looked at in others
	Body        []byte // UDP: the payload; else what follows the IP header
	Bytes       []byte // all of it, from the IP header on
}

// Types of group records (RFC 3376 §4.2.12).
const (
	ModeIsInclude   = 1
	ModeIsExclude   = 2
	ChangeToInclude = 3
	ChangeToExclude = 4
	AllowNewSources = 5
	BlockOldSources = 6
)

// A Report is a group record of an IGMPv3 or MLDv2 report (RFC 3376 §4.2, RFC
// 3810 §5.2), or an IGMPv2 report as a record of type 0.
type Report struct {
	At      time.Time
	Kind    byte
	Group   netip.Addr
	Sources []netip.Addr
}

// parse reads an IP packet, without copying its body.
func parse(b []byte, at time.Time) (p Packet, ok bool) {
	p.At, p.Bytes = at, b
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		header, total := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
		if header < 20 || total < header || total > len(b) {
			return p, false
		}
		p.From = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[12:])), 0)
		p.To = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[16:])), 0)
		p.Protocol, p.Hops = b[9], int(b[8])
		p.RouterAlert = string(b[20:header]) == "\x94\x04\x00\x00"
		p.Body, p.Bytes = b[header:total], b[:total]
		p.ChecksumOK = p.Protocol == unix.IPPROTO_IGMP && sum(p.Body) == 0xffff
		if binary.BigEndian.Uint16(b[6:])&0x1fff != 0 {
			return p, true // a later fragment has no ports
		}
	case len(b) >= 40 && b[0]>>4 == 6:
		end := 40 + int(binary.BigEndian.Uint16(b[4:]))
		if end > len(b) {
			return p, false
		}
		p.From = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:])), 0)
		p.To = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[24:])), 0)
		p.Protocol, p.Hops = b[6], int(b[7])
		p.Body, p.Bytes = b[40:end], b[:end]
		if p.Protocol == 0 && len(p.Body) >= 8 { // hop-by-hop options
			p.Protocol = p.Body[0]
			p.RouterAlert = string(p.Body[2:6]) == "\x05\x02\x00\x00"
			p.Body = p.Body[8:]
		}
		if p.Protocol == unix.IPPROTO_ICMPV6 {
			pseudo := append([]byte(nil), b[8:40]...)
			pseudo = append(pseudo, 0, 0, 0, byte(len(p.Body)), 0, 0, 0, unix.IPPROTO_ICMPV6)
			p.ChecksumOK = sum(append(pseudo, p.Body...)) == 0xffff
		}
	default:
		return p, false
	}
	if p.Protocol == unix.IPPROTO_UDP && len(p.Body) >= 8 {
		p.From = netip.AddrPortFrom(p.From.Addr(), binary.BigEndian.Uint16(p.Body))
		p.To = netip.AddrPortFrom(p.To.Addr(), binary.BigEndian.Uint16(p.Body[2:]))
		p.Body = p.Body[8:]
	}
	return p, true
}

// sum is the ones' complement sum (RFC 1071); 0xffff of a message with its
// checksum in it means that this is right.
func sum(b []byte) uint16 {
	var total uint32
	for i, c := range b {
		total += uint32(c) << (8 * (1 - i&1))
	}
	for total > 0xffff {
		total = total&0xffff + total>>16
	}
	return uint16(total)
}

// Reports reads the group records of a membership report.
func (p Packet) Reports() (out []Report) {
	const igmpV2Report, igmpV3Report, mldV2Report = 0x16, 0x22, 143
	b := p.Body
	size := 4
	switch {
	case p.Protocol == unix.IPPROTO_IGMP && len(b) >= 8 && b[0] == igmpV2Report:
		return []Report{{At: p.At, Group: netip.AddrFrom4([4]byte(b[4:]))}}
	case p.Protocol == unix.IPPROTO_IGMP && len(b) >= 8 && b[0] == igmpV3Report:
	case p.Protocol == unix.IPPROTO_ICMPV6 && len(b) >= 8 && b[0] == mldV2Report:
		size = 16
	default:
		return nil
	}
	addr := func(b []byte) netip.Addr { a, _ := netip.AddrFromSlice(b[:size]); return a }
	for records := b[8:]; len(records) >= 4+size; {
		sources := int(binary.BigEndian.Uint16(records[2:]))
		next := 4 + size*(1+sources) + 4*int(records[1])
		if next > len(records) {
			break
		}
		r := Report{At: p.At, Kind: records[0], Group: addr(records[4:])}
		for i := range sources {
			r.Sources = append(r.Sources, addr(records[4+size*(1+i):]))
		}
		out, records = append(out, r), records[next:]
	}
	return out
}
