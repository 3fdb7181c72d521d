package fcc

import (
	"sync"

	"zapcast/ingest"
)

// heldChunk is the unit of memory for held packets; the largest datagram fits.
const heldChunk = 128 << 10

var heldChunks = sync.Pool{New: func() any { return new([heldChunk]byte) }}

// held keeps packets in the order in which they came.
type held struct {
	chunks  []*[heldChunk]byte
	used    int // of the last chunk
	packets []ingest.Packet
	taken   int // packets that take has returned
	bytes   int // of payload
	peak    int
}

func (h *held) add(p ingest.Packet) {
	n := len(p.Payload)
	if len(h.chunks) == 0 || h.used+n > heldChunk {
		h.chunks = append(h.chunks, heldChunks.Get().(*[heldChunk]byte))
		h.used = 0
	}
	chunk := h.chunks[len(h.chunks)-1]
	at := h.used
	h.used += copy(chunk[at:], p.Payload)
	p.Payload = chunk[at:h.used:h.used]
	h.packets = append(h.packets, p)
	h.bytes += n
	h.peak = max(h.peak, h.bytes)
}

// take returns up to n packets, oldest first. They are the caller's until free.
func (h *held) take(n int) []ingest.Packet {
	out := h.packets[h.taken:min(h.taken+n, len(h.packets))]
	h.taken += len(out)
	return out
}

// upTo returns the packets next in line that are not behind seq, as take does.
func (h *held) upTo(seq uint16) []ingest.Packet {
	n := 0
	for _, p := range h.packets[h.taken:] {
		if int16(p.Seq-seq) > 0 {
			break
		}
		n++
	}
	return h.take(n)
}

func (h *held) empty() bool { return h.taken == len(h.packets) }

// free gives all memory back.
func (h *held) free() {
	for _, c := range h.chunks {
		heldChunks.Put(c)
	}
	*h = held{peak: h.peak}
}
