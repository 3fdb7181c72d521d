package ingest

import "time"

// A Lead brings the beginning of a multicast stream by another way, such as a
// burst by unicast with the same sequence numbers. Its packets are pushed into
// the window that the group's own go through, so that the two meet by number.
// Its methods are called from within Drain.
type Lead interface {
	// Hold is asked for each RTP packet of the group before it enters the
	// window, and reports whether it has kept a copy of it to push it later.
	Hold(p Packet, now time.Time) bool

	// Bare hears that the group brings TS without sequence numbers, which
	// cannot be met.
	Bare(now time.Time)
}

// SetLead puts a lead before the group's own packets, or takes it away with nil.
func (m *Multicast) SetLead(l Lead) { m.lead = l }

// Push takes a packet that came by another way than the group. Its payload must
// stay as it is until Deliver has returned.
func (m *Multicast) Push(p Packet, now time.Time) {
	if m.payload == "" && len(p.Payload) > 0 {
		m.payload = payloadRTP
	}
	m.out = m.window.Push(p, now, m.out)
}

// Deliver hands what Push has yielded to sink, and gives up on holes whose time
// is over.
func (m *Multicast) Deliver(now time.Time, sink Sink) {
	m.out = m.window.Expire(now, m.out)
	m.deliver(now, sink)
}

// Due is the sequence number that goes out next; false: nothing has come yet.
func (m *Multicast) Due() (seq uint16, ok bool) { return m.window.next, m.window.state != idle }

// Skip gives up on what is missing before seq: it is known not to come.
func (m *Multicast) Skip(seq uint16) { m.out = m.window.Skip(seq, m.out) }

// Begin lets seq be the first to go out, if nothing has yet: what was collected
// before it is dropped. Else it is Skip.
func (m *Multicast) Begin(seq uint16) { m.out = m.window.Begin(seq, m.out) }

// Rename says that the stream goes on under another SSRC.
func (m *Multicast) Rename(ssrc uint32) { m.window.ssrc = ssrc }

// Skip gives up on the holes before seq and appends to out what they kept
// waiting. It does nothing when the window is empty or past seq.
func (w *Window) Skip(seq uint16, out [][]byte) [][]byte {
	if w.state == idle || int16(seq-w.next) <= 0 {
		return out
	}
	return w.advance(seq, w.start(out))
}

// Begin drops what is collected before the first delivery and makes seq the
// number that is due. After that delivery it is Skip.
func (w *Window) Begin(seq uint16, out [][]byte) [][]byte {
	if w.state != collecting {
		return w.Skip(seq, out)
	}
	for ; w.held > 0; w.next++ {
		if s := w.slot(w.next); s.held {
			w.bytes -= len(s.payload)
			w.pool.release(s.payload)
			*s = slot{}
			w.held--
		}
	}
	w.state, w.next = following, seq
	return out
}
