package ingest

import "zapcast/mpegts"

// historyPackets is a power of two that covers farDistance: what is further
// behind is not taken for a duplicate anyway.
const historyPackets = 512

// history remembers which of the last historyPackets numbers went out, to tell
// a duplicate from a packet that came too late.
type history [historyPackets / 64]uint64

func (h *history) set(seq uint16) {
	h[seq%historyPackets/64] |= 1 << (seq % 64)
}

func (h *history) has(seq uint16) bool {
	return h[seq%historyPackets/64]&(1<<(seq%64)) != 0
}

// clear forgets the numbers from begin up to but not including end.
func (h *history) clear(begin, end uint16) {
	if end-begin >= historyPackets {
		*h = history{}
		return
	}
	for seq := begin; seq != end; seq++ {
		h[seq%historyPackets/64] &^= 1 << (seq % 64)
	}
}

// pooledBytes is the least size of a buffer: the usual payload, 7 TS packets.
const pooledBytes = 7 * mpegts.PacketSize

// pool lends the buffers in which packets wait. A buffer that was released is
// still being read by whoever consumes the window's output, until recycle.
type pool struct {
	free      [][]byte
	freeBytes int
	released  [][]byte
}

// copy returns a copy of b in a buffer of the pool.
func (p *pool) copy(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	var buf []byte
	if last := len(p.free) - 1; last >= 0 {
		buf = p.free[last]
		p.free = p.free[:last]
		p.freeBytes -= cap(buf)
	}
	if cap(buf) < len(b) {
		buf = make([]byte, 0, max(len(b), pooledBytes))
	}
	return append(buf[:0], b...)
}

// release takes back a buffer that is still being read.
func (p *pool) release(buf []byte) {
	if cap(buf) > 0 {
		p.released = append(p.released, buf)
	}
}

// drop takes back a buffer that nobody reads.
func (p *pool) drop(buf []byte) {
	if cap(buf) > 0 {
		p.free = append(p.free, buf)
		p.freeBytes += cap(buf)
	}
}

// recycle makes the released buffers free, those beyond limit bytes the garbage
// collector's.
func (p *pool) recycle(limit int) {
	if len(p.released) == 0 {
		return
	}
	for i, buf := range p.released {
		if p.freeBytes+cap(buf) <= limit {
			p.drop(buf)
		}
		p.released[i] = nil
	}
	p.released = p.released[:0]
}
