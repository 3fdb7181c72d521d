package ingest

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
)

var (
	testSource4, testGroup4 = netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("239.1.2.3")
	testSource6, testGroup6 = netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("ff3e::1:2")
)

// udpPacket is an IP packet with a UDP datagram, checksums and all.
func udpPacket(src, dst netip.Addr, port uint16, payload []byte) []byte {
	udp := binary.BigEndian.AppendUint16(nil, 4000)
	udp = binary.BigEndian.AppendUint16(udp, port)
	udp = binary.BigEndian.AppendUint16(udp, uint16(udpHeader+len(payload)))
	udp = append(append(udp, 0, 0), payload...)
	pseudo := append(append(src.AsSlice(), dst.AsSlice()...), 0, protocolUDP, byte(len(udp)>>8), byte(len(udp)))
	check := ^simpleSum(append(pseudo, udp...))
	if check == 0 {
		check = 0xffff
	}
	binary.BigEndian.PutUint16(udp[6:], check)
	return ipPacket(src, dst, protocolUDP, 0, 0, udp)
}

// simpleSum is the sum of RFC 1071 §1, an odd byte at the end padded.
func simpleSum(b []byte) uint16 {
	if len(b)%2 == 1 {
		b = append(bytes.Clone(b), 0)
	}
	return uint16(onesSum(b))
}

// ipPacket is an IP packet; part is the fragment field, of an IPv6 packet in a
// header of its own.
func ipPacket(src, dst netip.Addr, next byte, id, part uint16, body []byte) []byte {
	if dst.Is6() {
		if part != 0 {
			body = append([]byte{next, 0, byte(part >> 5), byte(part<<3) | byte(part>>13), 0, 0, byte(id >> 8), byte(id)}, body...)
			next = protocolFragment
		}
		b := append([]byte{0x60, 0, 0, 0, byte(len(body) >> 8), byte(len(body)), next, 64}, src.AsSlice()...)
		return append(append(b, dst.AsSlice()...), body...)
	}
	b := []byte{0x45, 0, 0, 0, byte(id >> 8), byte(id), byte(part >> 8), byte(part), 64, next, 0, 0}
	b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	return fix4(append(b, body...))
}

// fix4 sets the length and the checksum of an IPv4 header.
func fix4(b []byte) []byte {
	header := int(b[0]&0xf) * 4
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], ^uint16(onesSum(b[:header])))
	return b
}

func TestParsePacket(t *testing.T) {
	payload := bytes.Repeat([]byte("seven"), 100)
	v4 := udpPacket(testSource4, testGroup4, 5000, payload)
	v6 := udpPacket(testSource6, testGroup6, 5000, payload)
	edit := func(b []byte, f func([]byte)) []byte { b = bytes.Clone(b); f(b); return b }
	options := fix4(append(append(append([]byte{0x46}, v4[1:20]...), 0x94, 4, 0, 0), v4[20:]...))
	hop := func(kind byte, extension ...byte) []byte {
		b := append(bytes.Clone(v6[:40]), extension...)
		b = append(b, v6[40:]...)
		b[6] = kind
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
		return b
	}
	const udp = protocolUDP
	for name, tt := range map[string]struct {
		b        []byte
		cut      bool
		ok, good bool // is taken; and the checksum is right
	}{
		"IPv4":                          {v4, false, true, true},
		"IPv6":                          {v6, false, true, true},
		"padding of the link":           {append(bytes.Clone(v4), 0, 0, 0, 0), false, true, true},
		"IPv4 options":                  {options, false, true, true},
		"don't fragment":                {fix4(edit(v4, func(b []byte) { b[6] = 0x40 })), false, true, true},
		"no checksum, IPv4":             {edit(v4, func(b []byte) { b[26], b[27] = 0, 0 }), false, true, true},
		"no checksum, IPv6":             {edit(v6, func(b []byte) { b[46], b[47] = 0, 0 }), false, true, false},
		"a bit wrong, IPv4":             {edit(v4, func(b []byte) { b[100] ^= 1 }), false, true, false},
		"a bit wrong, IPv6":             {edit(v6, func(b []byte) { b[100] ^= 1 }), false, true, false},
		"hop-by-hop":                    {hop(protocolHopByHop, udp, 0, 1, 4, 0, 0, 0, 0), false, true, true},
		"destination options":           {hop(protocolDestination, udp, 0, 1, 4, 0, 0, 0, 0), false, true, true},
		"routing, at its end":           {hop(protocolRouting, udp, 0, 3, 0, 0, 0, 0, 0), false, true, true},
		"fragment header of a whole":    {hop(protocolFragment, udp, 0, 0, 0, 0, 0, 0, 9), false, true, true},
		"hop-by-hop, then destination":  {hop(protocolHopByHop, protocolDestination, 0, 1, 4, 0, 0, 0, 0, udp, 0, 1, 4, 0, 0, 0, 0), false, true, true},
		"routing, on its way":           {hop(protocolRouting, udp, 0, 3, 1, 0, 0, 0, 0), false, false, false},
		"extension longer than all":     {hop(protocolHopByHop, udp, 255, 1, 4, 0, 0, 0, 0), false, false, false},
		"authentication header":         {hop(51, udp, 0, 0, 0, 0, 0, 0, 0), false, false, false},
		"extensions without end":        {hop(protocolHopByHop, bytes.Repeat([]byte{protocolHopByHop, 0, 1, 4, 0, 0, 0, 0}, 9)...), false, false, false},
		"empty":                         {nil, false, false, false},
		"TCP":                           {fix4(edit(v4, func(b []byte) { b[9] = 6 })), false, false, false},
		"version 5":                     {edit(v4, func(b []byte) { b[0] = 0x55 }), false, false, false},
		"header checksum":               {edit(v4, func(b []byte) { b[8]-- }), false, false, false},
		"header of 16 bytes":            {edit(v4, func(b []byte) { b[0] = 0x44 }), false, false, false},
		"header longer than all":        {edit(v4[:24], func(b []byte) { b[0] = 0x4f }), false, false, false},
		"total shorter than the header": {edit(v4, func(b []byte) { binary.BigEndian.PutUint16(b[2:], 19) }), false, false, false},
		"longer than what is there":     {v4[:len(v4)-1], false, false, false},
		"IPv6, longer than there":       {v6[:len(v6)-1], false, false, false},
		"cut by the frame":              {v4[:60], true, true, false},
		"IPv6 cut by the frame":         {v6[:60], true, true, false},
		"UDP longer than IP":            {edit(v4, func(b []byte) { binary.BigEndian.PutUint16(b[24:], uint16(len(b)-19)) }), false, false, false},
		"UDP of 7 bytes":                {edit(v4, func(b []byte) { binary.BigEndian.PutUint16(b[24:], 7) }), false, false, false},
	} {
		p, ok := parsePacket(tt.b, tt.cut)
		var d datagram
		if ok {
			d, ok = p.udp()
		}
		if ok != tt.ok {
			t.Errorf("%s: taken %t, want %t", name, ok, tt.ok)
			continue
		}
		if !ok {
			continue
		}
		if d.dstPort != 5000 || d.srcPort != 4000 || (p.dst != rawAddr(testGroup4) && p.dst != rawAddr(testGroup6)) {
			t.Errorf("%s: got ports %d, %d and group %x", name, d.srcPort, d.dstPort, p.dst)
		}
		if p.cut != tt.cut {
			t.Errorf("%s: cut %t, want %t", name, p.cut, tt.cut)
		}
		if tt.cut {
			continue
		}
		if got := p.intact(&d); got != tt.good {
			t.Errorf("%s: checksum right %t, want %t", name, got, tt.good)
		}
		if tt.good && !bytes.Equal(d.payload, payload) {
			t.Errorf("%s: got a payload of %d bytes, want %d", name, len(d.payload), len(payload))
		}
	}
}

// The sum of eight bytes at a time is the sum of two at a time.
func TestSum_againstTheSimpleOne(t *testing.T) {
	b := make([]byte, 70)
	for i := range b {
		b[i] = byte(i*151 + 255)
	}
	for n := range len(b) {
		if got, want := fold(sum(b[:n], 0)), simpleSum(b[:n]); got != want {
			t.Errorf("%d bytes: got %04x, want %04x", n, got, want)
		}
	}
}

func FuzzParsePacket(f *testing.F) {
	for _, b := range [][]byte{
		udpPacket(testSource4, testGroup4, 5000, []byte("payload")),
		udpPacket(testSource6, testGroup6, 5000, []byte("payload")),
		ipPacket(testSource4, testGroup4, protocolUDP, 7, 0x2000, make([]byte, 64)),
		ipPacket(testSource6, testGroup6, protocolUDP, 7, 0x2001, make([]byte, 64)),
	} {
		f.Add(b, false)
		f.Add(b[:len(b)-3], true)
	}
	var parts fragments
	f.Fuzz(func(t *testing.T, b []byte, cut bool) {
		p, ok := parsePacket(b, cut)
		if !ok {
			return
		}
		if len(p.body) > len(b) || (p.cut && !cut) {
			t.Fatalf("a body of %d bytes out of %d, cut %t", len(p.body), len(b), p.cut)
		}
		if p.fragment && !p.oversize() {
			slot := parts.add(&p)
			if slot < 0 {
				return
			}
			p = parts.packet(slot)
			defer parts.release(slot)
		}
		if d, ok := p.udp(); ok && !p.cut {
			if len(d.payload)+udpHeader != len(d.whole) || len(d.whole) > len(p.body) {
				t.Fatalf("a datagram of %d bytes, %d of payload, out of %d", len(d.whole), len(d.payload), len(p.body))
			}
			p.intact(&d)
		}
	})
}
