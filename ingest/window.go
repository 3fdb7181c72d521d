package ingest

import (
	"math/bits"
	"time"
)

// Packet is what the window needs of an RTP packet.
type Packet struct {
	Seq  uint16
	SSRC uint32

	// Payload holds whole TS packets. Without payload the packet only takes its
	// place in the sequence: no bytes, no loss.
	Payload []byte
}

// A Window puts the packets of one stream in order. It is a machine without
// sockets and clock: packets and times go in, payloads come out. Time stamps
// play no part. Sequence numbers are compared as signed 16-bit differences, so
// that 0 follows 65535 as any number follows the one before it.
//
//	        first packet            8 packets or 15 ms
//	idle ─────────────► collecting ─────────────────► following ──┐
//	                                                     ▲        │ a rival has
//	                                                     └────────┘ convinced
//
// Following, the number that is due passes straight through. A packet ahead of
// it is copied and waits; the hole before it is given up when the packet has
// waited for the hold time or the window is full, whichever is first. Packets
// that do not fit the numbering (rival.go) wait apart until they have shown to
// be the sender's new numbering, or strays.
//
// A Window is not safe for concurrent use.
type Window struct {
	config WindowConfig
	stats  WindowStats

	state windowState
	ssrc  uint32
	next  uint16 // the number that is due; collecting: the lowest seen

	// Packets that wait, at their sequence number modulo len(ring), which is a
	// power of two and grows with the holes it has met.
	ring  []slot
	top   uint16 // one past the highest that waits; meaningless when none does
	held  int
	bytes int

	epoch      time.Time // of the time.Durations below and in the slots
	collectEnd time.Duration

	rival rival
	went  history
	pool  pool
}

type windowState uint8

const (
	idle windowState = iota
	collecting
	following
)

type slot struct {
	payload []byte
	at      time.Duration // arrival
	held    bool          // the payload may be empty
}

// NewWindow returns an empty window.
func NewWindow(config WindowConfig) *Window {
	return &Window{config: config.withDefaults()}
}

// Push takes a packet and appends to out what can go on, in order. The packet's
// payload is appended itself when it is due and copied when it has to wait:
// what is in out is valid as long as the payloads pushed since the last Recycle
// are, and until the next Recycle.
func (w *Window) Push(p Packet, now time.Time, out [][]byte) [][]byte {
	if p.Seq == w.next && p.SSRC == w.ssrc && w.held == 0 && w.state == following && len(w.rival.packets) == 0 {
		return w.pass(p.Payload, out)
	}
	at := w.since(now)
	if w.state == idle {
		if len(p.Payload) == 0 {
			return out
		}
		w.state, w.ssrc, w.next, w.collectEnd = collecting, p.SSRC, p.Seq, at+w.config.CollectTime
	}
	if p.SSRC != w.ssrc || w.far(p.Seq) {
		return w.consider(p, at, out)
	}
	if int16(p.Seq-w.next) >= 0 {
		w.dismiss() // the numbering goes on
	}
	return w.place(p, at, out)
}

// Expire gives up on the holes whose time is over and appends to out what they
// kept waiting. It is cheap when nothing waits.
func (w *Window) Expire(now time.Time, out [][]byte) [][]byte {
	at := w.since(now)
	if w.state == collecting {
		if at < w.collectEnd {
			return out
		}
		out = w.start(out)
	}
	if w.held == 0 {
		return out
	}
	end := w.next
	for seq := w.next; seq != w.top; seq++ {
		if s := w.slot(seq); s.held && at-s.at >= w.config.Hold {
			end = seq + 1
		}
	}
	return w.advance(end, out)
}

// Deadline returns when Expire has something to do next; false: not before
// another packet was pushed.
func (w *Window) Deadline() (time.Time, bool) {
	if w.state == collecting {
		return w.epoch.Add(w.collectEnd), true
	}
	if w.held == 0 {
		return time.Time{}, false
	}
	first := time.Duration(-1)
	for seq := w.next; seq != w.top; seq++ {
		if s := w.slot(seq); s.held && (first < 0 || s.at < first) {
			first = s.at
		}
	}
	return w.epoch.Add(first + w.config.Hold), true
}

// Flush gives up on all holes and appends everything that waits to out.
func (w *Window) Flush(out [][]byte) [][]byte {
	out = w.start(out)
	return w.advance(w.end(), out)
}

// Recycle lets the window use the memory of what it has released so far again.
// It is called when out has been consumed.
func (w *Window) Recycle() {
	w.pool.recycle(w.config.Bytes)
}

// Stats returns the counters and what waits now.
func (w *Window) Stats() WindowStats {
	stats := w.stats
	stats.Held = w.held + len(w.rival.packets)
	return stats
}

// place puts a packet of the numbering that is followed in its place, or
// appends it to out if it is due.
func (w *Window) place(p Packet, at time.Duration, out [][]byte) [][]byte {
	if d := int16(p.Seq - w.next); d < 0 && !w.lower(p.Seq) {
		if d > -farDistance && w.went.has(p.Seq) {
			w.stats.Duplicates++
		} else {
			w.stats.Late++
		}
		return out
	}
	if !w.spans(p.Seq) {
		out = w.start(out)
	}
	if !w.spans(p.Seq) {
		out = w.advance(p.Seq-uint16(w.config.Packets)+1, out)
	}
	w.reserve(int(p.Seq-w.next) + 1)
	s := w.slot(p.Seq)
	if s.held {
		w.stats.Duplicates++
		return out
	}
	if int16(p.Seq-w.end()) < 0 {
		w.stats.Reordered++
	}
	if w.state == following && p.Seq == w.next {
		return w.run(w.pass(p.Payload, out))
	}

	if w.held == 0 || int16(p.Seq-w.top) >= 0 {
		w.top = p.Seq + 1
	}
	*s = slot{payload: w.pool.copy(p.Payload), at: at, held: true}
	w.held++
	w.bytes += len(p.Payload)
	if w.held >= w.config.Collect || at >= w.collectEnd || w.bytes > w.config.Bytes {
		out = w.start(out)
	}
	for w.bytes > w.config.Bytes {
		out = w.advance(w.first(), out)
	}
	return out
}

// lower makes seq the lowest number of the stream, if it has not begun to go
// out and the window spans what has come already.
func (w *Window) lower(seq uint16) bool {
	span := int(w.end() - seq)
	if w.state != collecting || span > w.config.Packets {
		return false
	}
	w.reserve(span)
	w.next = seq
	return true
}

// start ends the collecting before the first delivery.
func (w *Window) start(out [][]byte) [][]byte {
	if w.state != collecting {
		return out
	}
	w.state = following
	return w.run(out)
}

// advance makes end the number that is due: what waits below it goes out, holes
// below it are lost. What it unblocks goes out as well.
func (w *Window) advance(end uint16, out [][]byte) [][]byte {
	for w.next != end {
		if w.held == 0 {
			w.skip(end)
			break
		}
		if s := w.slot(w.next); s.held {
			out = w.release(s, out)
		} else {
			w.skip(w.next + 1)
		}
	}
	return w.run(out)
}

// run appends to out what waits without a hole before it.
func (w *Window) run(out [][]byte) [][]byte {
	for w.held > 0 {
		s := w.slot(w.next)
		if !s.held {
			break
		}
		out = w.release(s, out)
	}
	return out
}

// release appends the payload of the slot that is due to out.
func (w *Window) release(s *slot, out [][]byte) [][]byte {
	payload := s.payload
	*s = slot{}
	w.held--
	w.bytes -= len(payload)
	w.pool.release(payload)
	return w.pass(payload, out)
}

// pass appends the payload that is due to out.
func (w *Window) pass(payload []byte, out [][]byte) [][]byte {
	w.went.set(w.next)
	w.next++
	if len(payload) > 0 {
		out = append(out, payload)
	}
	return out
}

// skip counts the numbers below end as lost.
func (w *Window) skip(end uint16) {
	w.stats.Lost += int64(end - w.next)
	w.went.clear(w.next, end)
	w.next = end
}

// spans reports whether the window reaches from the number that is due to seq.
func (w *Window) spans(seq uint16) bool {
	return int(seq-w.next) < w.config.Packets
}

// far reports whether seq is too far away to be of the numbering followed.
func (w *Window) far(seq uint16) bool {
	return int16(seq-w.end()) >= farDistance || int16(seq-w.next) <= -farDistance
}

// end is one past the highest number that waits or has gone out.
func (w *Window) end() uint16 {
	if w.held == 0 {
		return w.next
	}
	return w.top
}

// first is the lowest number that waits.
func (w *Window) first() uint16 {
	seq := w.next
	for !w.slot(seq).held {
		seq++
	}
	return seq
}

func (w *Window) slot(seq uint16) *slot {
	return &w.ring[int(seq)&(len(w.ring)-1)]
}

// reserve makes the ring span n numbers.
func (w *Window) reserve(n int) {
	if n <= len(w.ring) {
		return
	}
	const least = 16
	old := w.ring
	w.ring = make([]slot, max(least, 1<<bits.Len(uint(n-1))))
	if w.held == 0 {
		return
	}
	for seq := w.next; seq != w.top; seq++ {
		*w.slot(seq) = old[int(seq)&(len(old)-1)]
	}
}

func (w *Window) since(now time.Time) time.Duration {
	if w.epoch.IsZero() {
		w.epoch = now
	}
	return now.Sub(w.epoch)
}
