package server

import (
	"math/bits"
	"time"

	"zapcast/ingest"
	"zapcast/mpegts"
)

const (
	leastHistory = 256 << 10
	leastIndex   = 256

	// mostJump is the step of the sequence number that is still a loss; past it
	// the sender has begun anew. At 35 Mbit/s it is most of a second.
	mostJump = 3000

	// nearby is how far from its expected place a packet is looked for: the
	// distance by which the network reorders.
	nearby = 64

	rateInterval = 500 * time.Millisecond

	noPacket = -1
)

// A history is the newest part of a channel: RTP packets as they came, in rings
// that grow until they reach back to the random-access point before the last.
// Packets are named by their number since the channel was opened.
type history struct {
	limit  int64  // of len(buf)
	budget *int64 // bytes that all histories may still take

	buf         []byte
	index       []entry
	first, next int64 // the packets that are held
	end         int64 // position in the endless buf behind the last one

	scanner mpegts.Scanner
	ts      int64    // position of the next TS byte
	tables  [2]int64 // the newest packets with a PAT, newest first
	found   int64    // TS position of the last random-access point
	start   int64    // packet to begin a burst with; noPacket: none
	before  int64    // the one of the random-access point before

	ssrc     uint32
	sequence uint16 // the highest
	rate     int64  // bit/s
	counted  int64  // bytes since countedAt
	since    time.Time
}

// entry is a packet in the ring.
type entry struct {
	at       int64 // position in the endless buf
	ts       int64 // of its first TS byte
	size     int32
	sequence uint16
}

func newHistory(limit int64, budget *int64) *history {
	return &history{limit: limit, budget: budget, found: noPacket, start: noPacket, before: noPacket, tables: [2]int64{noPacket, noPacket}}
}

// free gives the memory back.
func (h *history) free() {
	*h.budget += int64(len(h.buf))
	limit, budget := h.limit, h.budget
	*h = *newHistory(limit, budget)
}

// add takes a datagram. What is no RTP with whole TS packets, or was there
// before, is left out.
func (h *history) add(datagram []byte, now time.Time) {
	if ingest.Classify(datagram) != ingest.KindRTP {
		return
	}
	header, ts, ok := ingest.PeekRTP(datagram)
	if !ok || !mpegts.Whole(ts) {
		return
	}
	if h.next > h.first {
		step := int(int16(header.Sequence - h.sequence))
		switch {
		case header.SSRC != h.ssrc || step > mostJump || step < -mostJump:
			h.restart()
		case step <= 0 && h.find(header.Sequence) != noPacket:
			return
		}
	}
	if h.next == h.first || int16(header.Sequence-h.sequence) > 0 {
		h.sequence = header.Sequence
	}
	h.ssrc = header.SSRC
	h.measure(len(datagram), now)
	if !h.store(datagram, header.Sequence) {
		return
	}
	h.look(ts)
}

// restart forgets the packets of a sender that has begun anew. Numbers go on.
func (h *history) restart() {
	h.first = h.next
	h.start, h.before, h.tables = noPacket, noPacket, [2]int64{noPacket, noPacket}
	h.scanner.Reset()
}

// store puts a packet into the rings. It reports false where there is no memory.
func (h *history) store(datagram []byte, sequence uint16) bool {
	size := int64(len(datagram))
	for {
		at := h.place(size)
		kept := h.first
		for kept < h.next && h.entry(kept).at < at+size-int64(len(h.buf)) {
			kept++
		}
		full := int64(len(h.buf)) < size || h.next-kept == int64(len(h.index))
		if wanted := h.wanted(); (full || wanted < kept) && h.grow() {
			continue
		}
		if int64(len(h.buf)) < size {
			return false
		}
		h.first = max(kept, h.next-int64(len(h.index))+1)
		copy(h.buf[at%int64(len(h.buf)):], datagram)
		h.index[h.next%int64(len(h.index))] = entry{at: at, ts: h.ts, size: int32(size), sequence: sequence}
		h.end = at + size
		h.next++
		return true
	}
}

// place is where size bytes go: a packet is in one piece.
func (h *history) place(size int64) int64 {
	length := int64(len(h.buf))
	if length > 0 && h.end%length+size > length {
		return h.end + length - h.end%length
	}
	return h.end
}

// wanted is the oldest packet worth keeping.
func (h *history) wanted() int64 {
	switch {
	case h.before != noPacket:
		return h.before
	case h.start != noPacket:
		return h.start
	}
	return h.next
}

// grow doubles the rings, if that is allowed.
func (h *history) grow() bool {
	size := int64(max(2*len(h.buf), leastHistory))
	if size > h.limit || size-int64(len(h.buf)) > *h.budget {
		return false
	}
	*h.budget -= size - int64(len(h.buf))
	old := *h
	h.buf = make([]byte, size)
	// A packet of seven TS packets has 1328 bytes; small ones need more entries.
	h.index = make([]entry, max(leastIndex, 1<<bits.Len64(uint64(size/700))))
	h.end = 0
	for n := old.first; n < old.next; n++ {
		e := old.entry(n)
		copy(h.buf[h.end:], old.packet(n))
		e.at = h.end
		h.index[n%int64(len(h.index))] = e
		h.end += int64(e.size)
	}
	return true
}

func (h *history) entry(n int64) entry { return h.index[n%int64(len(h.index))] }

// packet is the datagram of a packet that is held, until the next add.
func (h *history) packet(n int64) []byte {
	e := h.entry(n)
	at := e.at % int64(len(h.buf))
	return h.buf[at : at+int64(e.size)]
}

// look finds tables and random-access points in the newest packet.
func (h *history) look(ts []byte) {
	newest := h.next - 1
	h.scanner.Scan(ts, h.ts)
	for i := 0; i < len(ts); i += mpegts.PacketSize {
		if p := mpegts.Packet(ts[i : i+mpegts.PacketSize]); p.PID() == 0 && p.UnitStart() && h.tables[0] != newest {
			h.tables = [2]int64{newest, h.tables[0]}
		}
	}
	h.ts += int64(len(ts))
	pos, ok := h.scanner.RandomAccess()
	if !ok || pos == h.found {
		return
	}
	h.found = pos
	n := newest
	for n > h.first && h.entry(n).ts > pos {
		n--
	}
	// A decoder needs the tables first. They stand before the picture, or come
	// a few times a second.
	for _, table := range h.tables {
		if table != noPacket && table <= n {
			n = max(table, h.first)
			break
		}
	}
	h.before, h.start = h.start, n
}

// begin is the packet that a burst begins with.
func (h *history) begin() (n int64, ok bool) {
	return h.start, h.start != noPacket && h.start >= h.first
}

// bytes is how much there is from a packet on.
func (h *history) bytes(from int64) int64 {
	if from >= h.next {
		return 0
	}
	return h.end - h.entry(from).at
}

// find looks for a packet by its sequence number.
func (h *history) find(sequence uint16) int64 {
	if h.first == h.next {
		return noPacket
	}
	guess := h.next - 1 - int64(int16(h.sequence-sequence))
	for n := max(h.first, guess-nearby); n < min(h.next, guess+nearby); n++ {
		if h.entry(n).sequence == sequence {
			return n
		}
	}
	return noPacket
}

// measure estimates the channel's rate.
func (h *history) measure(size int, now time.Time) {
	if h.since.IsZero() {
		h.since = now
	}
	h.counted += int64(size)
	took := now.Sub(h.since)
	if took < rateInterval {
		return
	}
	rate := int64(float64(8*h.counted) / took.Seconds())
	if h.rate > 0 {
		rate = (3*h.rate + rate) / 4
	}
	h.rate, h.counted, h.since = rate, 0, now
}
