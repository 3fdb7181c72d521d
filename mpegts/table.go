package mpegts

const (
	sectionHeaderSize = 3
	sectionCRCSize    = 4

	// maxTablePackets bounds what is held of a section. 23 full packets carry
	// the longest section there is (4096 bytes); PAT and PMT end at 1024.
	maxTablePackets = 24
)

// table puts the sections of one PID together and keeps the packets of the last
// one that was accepted.
type table struct {
	pid    uint16
	seen   bool  // cc is valid
	cc     uint8 // counter of the last packet
	active bool  // section has begun and lacks bytes

	section []byte // the section being put together
	packets []byte // the packets it came in
	raw     []byte // the packets of the accepted section
}

// restart makes t follow pid from nothing, keeping its memory.
func (t *table) restart(pid uint16) {
	*t = table{pid: pid, section: t.section[:0], packets: t.packets[:0], raw: t.raw[:0]}
}

// advance notes a counter and says how it stands to the one before.
func (t *table) advance(cc uint8) (continues, repeats bool) {
	continues = t.seen && cc == (t.cc+1)&counterBits
	repeats = t.seen && cc == t.cc
	t.seen, t.cc = true, cc
	return continues, repeats
}

// begin makes p the first packet of a new section.
func (t *table) begin(p Packet) {
	t.active = true
	t.section = t.section[:0]
	t.packets = append(t.packets[:0], p...)
}

// extend adds a further packet of the section, if there is room.
func (t *table) extend(p Packet) {
	if len(t.packets) >= maxTablePackets*PacketSize {
		t.active = false
		return
	}
	t.packets = append(t.packets, p...)
}

// fill takes what the section still lacks from b. It returns the bytes behind
// the section, and whether the section is complete.
func (t *table) fill(b []byte) (rest []byte, complete bool) {
	for len(b) > 0 {
		need := sectionHeaderSize
		if len(t.section) >= sectionHeaderSize {
			need = sectionSize(t.section)
		}
		n := min(need-len(t.section), len(b))
		t.section = append(t.section, b[:n]...)
		b = b[n:]
		if len(t.section) >= sectionHeaderSize && len(t.section) == sectionSize(t.section) {
			t.active = false
			return b, true
		}
	}
	return nil, false
}

// accept keeps the packets of the section that was just completed.
func (t *table) accept() { t.raw, t.packets = t.packets, t.raw }

// appendTo appends the accepted packets. Their counters lead up to the last one
// seen on the PID, so that the PID's next packet continues the count even when
// packets with something else came after the table.
func (t *table) appendTo(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, t.raw...)
	cc := t.cc - uint8(len(t.raw)/PacketSize) + 1
	for ; at < len(dst); at += PacketSize {
		Packet(dst[at : at+PacketSize]).setContinuity(cc)
		cc++
	}
	return dst
}

// sectionSize returns the whole length of a section from its first three bytes.
func sectionSize(b []byte) int {
	return sectionHeaderSize + int(b[1]&0x0F)<<8 + int(b[2])
}

// crcTable is of CRC-32/MPEG-2 (ISO/IEC 13818-1 annex A): polynomial
// 0x04C11DB7, most significant bit first, which hash/crc32 does not offer.
var crcTable = func() (t [256]uint32) {
	for i := range t {
		c := uint32(i) << 24
		for range 8 {
			if c&(1<<31) != 0 {
				c = c<<1 ^ 0x04C11DB7
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()

// crc32MPEG is zero for a section that ends with its own checksum.
func crc32MPEG(b []byte) uint32 {
	c := ^uint32(0)
	for _, x := range b {
		c = c<<8 ^ crcTable[byte(c>>24)^x]
	}
	return c
}
