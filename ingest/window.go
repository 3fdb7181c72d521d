package ingest

import (
	"math/bits"
	"time"
)

// Packet is what the window needs of an RTP packet.
type Packet struct {
	Seq  uint16
	SSRC uint32
	Via  Via // by which way it has come; zero: as part of the stream

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
// waited for the hold time or the window is full, whichever is first. Where
// there is a repair, a hole that it may still fill waits longer (Await). Packets
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

	epoch      time.Time     // of the time.Durations below and in the slots
	at         time.Duration // the last time that was told
	collectEnd time.Duration

	hope    func(seq uint16) bool // whether a repair may still bring a number; nil: there is none
	latency time.Duration         // how long a hole waits for it

	rival  rival
	went   history
	losses losses
	pool   pool
}

type windowState uint8

const (
	idle windowState = iota
	collecting
	following
)

type slot struct {
	payload []byte
	at      time.Duration // of a hole: when a packet behind it showed it
	held    bool          // the payload may be empty
	via     Via           // of a packet that was missed and then came by another way
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
		return w.pass(p.Payload, ViaStream, out)
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

// Fill takes a packet that a repair has brought back, and appends to out what
// can go on. A number that went out stays out; one that was given up on is
// counted and not sent. The payload is copied.
func (w *Window) Fill(p Packet, now time.Time, out [][]byte) [][]byte {
	if w.state == idle || w.far(p.Seq) {
		return out
	}
	at := w.since(now)
	if int16(p.Seq-w.next) < 0 && w.state == following {
		if !w.went.has(p.Seq) {
			w.losses.late++
		}
		return out
	}
	p.Payload = w.pool.copy(p.Payload)
	w.pool.release(p.Payload) // place copies it once more if it has to wait
	return w.place(p, at, out)
}

// Await says that there is a repair: a hole waits for latency as long as hope
// says that its number may still come.
func (w *Window) Await(hope func(seq uint16) bool, latency time.Duration) {
	w.hope, w.latency = hope, max(latency, w.config.Hold)
	w.config.Packets = max(w.config.Packets, repairWindowPackets)
	w.config.Bytes = max(w.config.Bytes, repairWindowBytes)
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
	for w.held > 0 && at >= w.patience() {
		out = w.advance(w.next+1, out)
	}
	return out
}

// patience is when the hole that is due is given up. The holes behind it came
// to light later.
func (w *Window) patience() time.Duration {
	wait := w.config.Hold
	if w.hope != nil && w.hope(w.next) {
		wait = w.latency
	}
	return w.slot(w.next).at + wait
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
	return w.epoch.Add(w.patience()), true
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
	s, via := w.slot(p.Seq), ViaStream
	switch end := w.end(); {
	case int16(p.Seq-end) >= 0:
		w.notice(end, p.Seq, at)
		if p.Via.repairs() {
			via = w.filled(p.Via, 0)
		}
	case s.held:
		if !p.Via.repairs() {
			w.stats.Duplicates++
		}
		return out
	default:
		via = w.filled(p.Via, at-s.at)
	}
	if w.state == following && p.Seq == w.next {
		return w.run(w.pass(p.Payload, via, out))
	}

	if w.held == 0 || int16(p.Seq-w.top) >= 0 {
		w.top = p.Seq + 1
	}
	*s = slot{payload: w.pool.copy(p.Payload), via: via, held: true}
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
	old := w.next
	w.next = seq
	w.notice(seq, old, w.collectEnd-w.config.CollectTime) // the first packet is behind them all
	return true
}

// notice notes the time for the holes from begin up to but not including end.
func (w *Window) notice(begin, end uint16, at time.Duration) {
	for seq := begin; seq != end; seq++ {
		*w.slot(seq) = slot{at: at}
	}
}

// filled counts a number that was missing, and by what way it came after
// waiting for so long.
func (w *Window) filled(via Via, waited time.Duration) Via {
	if via == ViaStream {
		w.stats.Reordered++
	}
	w.losses.filled(via, waited)
	return via
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
	payload, via := s.payload, s.via
	*s = slot{}
	w.held--
	w.bytes -= len(payload)
	w.pool.release(payload)
	return w.pass(payload, via, out)
}

// pass appends the payload that is due to out.
func (w *Window) pass(payload []byte, via Via, out [][]byte) [][]byte {
	if via != ViaStream {
		w.losses.missed(w.next, 1, false, w.at)
	}
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
	w.losses.missed(w.next, int(end-w.next), true, w.at)
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
	w.at = now.Sub(w.epoch)
	return w.at
}

// Lost returns the map of what was missed.
func (w *Window) Lost() LossMap { return w.losses.snapshot(w.epoch, w.at) }
