package ingest

import (
	"encoding/binary"
	"math/bits"
)

const (
	// fragmentSlots is how many datagrams may be in pieces, or whole and not
	// read yet: what one tick of a stream brings before it is back on its socket.
	fragmentSlots = 64
	// fragmentRoom is what there is for each, UDP header included: as much as
	// a frame of the ring holds. Larger ones are for the sockets.
	fragmentRoom = 1520
)

// oversize reports that a fragment is the first of a datagram that would not fit
// a frame in one piece. It is then taken for one that was cut.
func (p *packet) oversize() bool {
	if p.offset == 0 && len(p.body) >= udpHeader && int(binary.BigEndian.Uint16(p.body[4:])) > fragmentRoom-ip6Header {
		p.cut = true
	}
	return p.offset == 0 && p.cut
}

// fragments puts the pieces of UDP datagrams together. Pieces that overlap make
// their datagram void (RFC 5722), those that come twice are ignored. A datagram
// that stays incomplete is given up when its place is needed.
type fragments struct {
	slots []pieces
	turn  uint32
}

// pieces is one datagram in the making.
type pieces struct {
	src, dst ipAddr
	v6       bool
	id       uint32

	buf   [fragmentRoom]byte
	have  [(fragmentRoom/8 + 63) / 64]uint64 // a bit for each 8 bytes
	units int                                // bits set
	size  int                                // 0: the last piece has not come
	void  bool
	used  uint32 // turn of the last piece; 0: free
	lent  bool   // whole
	refs  int    // who reads it
}

// add copies a fragment to its place. It returns the slot of the datagram that
// the fragment completed, or -1; the slot stays taken until release.
func (f *fragments) add(p *packet) int {
	if p.cut || !p.fragment || p.offset+len(p.body) > fragmentRoom || len(p.body) == 0 || (p.more && len(p.body)%8 != 0) {
		return -1
	}
	if f.slots == nil {
		f.slots = make([]pieces, fragmentSlots)
	}
	f.turn++
	i := f.find(p)
	if i < 0 {
		return -1
	}
	s := &f.slots[i]
	s.used = f.turn
	s.put(p)
	if s.void || s.size == 0 || s.units != (s.size+7)/8 {
		return -1
	}
	s.lent = true
	return i
}

// packet is the whole that lies in a slot.
func (f *fragments) packet(slot int) packet {
	s := &f.slots[slot]
	return packet{src: s.src, dst: s.dst, v6: s.v6, body: s.buf[:s.size]}
}

func (f *fragments) release(slot int) { f.slots[slot].reset() }

// find returns the slot of the datagram that p is a part of: if there is none
// yet a free one, else the one that has waited longest.
func (f *fragments) find(p *packet) int {
	oldest := -1
	for i := range f.slots {
		s := &f.slots[i]
		switch {
		case s.lent:
			continue
		case s.used != 0 && s.id == p.id && s.src == p.src && s.dst == p.dst && s.v6 == p.v6:
			return i
		case oldest < 0 || f.turn-s.used > f.turn-f.slots[oldest].used:
			oldest = i
		}
	}
	if oldest >= 0 {
		s := &f.slots[oldest]
		s.reset()
		s.src, s.dst, s.v6, s.id = p.src, p.dst, p.v6, p.id
	}
	return oldest
}

func (s *pieces) put(p *packet) {
	end := p.offset + len(p.body)
	first, units := p.offset/8, (len(p.body)+7)/8
	taken := 0
	for u := first; u < first+units; u++ {
		taken += int(s.have[u/64] >> (u % 64) & 1)
	}
	if taken == units && (p.more || s.size == end) {
		return
	}
	if taken > 0 || (!p.more && s.size != 0) || (s.size != 0 && end > s.size) || (!p.more && s.last() > end) {
		s.void = true
		return
	}
	if !p.more {
		s.size = end
	}
	for u := first; u < first+units; u++ {
		s.have[u/64] |= 1 << (u % 64)
	}
	s.units += units
	copy(s.buf[p.offset:], p.body)
}

// last is the end of the highest piece, in bytes, rounded up to 8.
func (s *pieces) last() int {
	for i := len(s.have) - 1; i >= 0; i-- {
		if w := s.have[i]; w != 0 {
			return (i*64 + bits.Len64(w)) * 8
		}
	}
	return 0
}

func (s *pieces) reset() { *s = pieces{} }
