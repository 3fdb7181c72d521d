package fanout

import (
	"math"
	"slices"
	"time"
)

// A view is a channel's stream in frames: a chain of its own that holds what
// several viewers want, made from the channel's chain at the live end. What it
// does not hold is made anew for each: the way of a viewer who starts or lags,
// or is alone. It exists as long as it has viewers.
//
// A viewer's place stays a position of the channel's stream, at a frame's start;
// in the view's chain, frame n begins at n times the size of a frame.
type view struct {
	ch              *channel
	framing         Framing
	header, payload int   // sizes
	frame           int   // the sum of them
	chain           chain // of frames; its positions count their bytes
	viewers         int
	packets         bool // they take datagrams, which cannot be sent from a file
}

// frame gives v, who is new, the view with framing f.
func (c *channel) frame(v *viewer, f Framing) {
	i := slices.IndexFunc(c.views, func(w *view) bool { return w.framing == f })
	if i < 0 {
		w := &view{ch: c, framing: f}
		w.header, w.payload = f.Sizes()
		w.frame = w.header + w.payload
		w.chain.store = &c.loop.store
		c.loop.store.frames.ready()
		i, c.views = len(c.views), append(c.views, w)
	}
	v.view, v.number = c.views[i], math.MinInt64
	v.view.viewers++
	v.view.packets = v.packets
	c.framed++
	if v.packets {
		c.packets++
		v.paced, v.credit = c.loop.now, paceBurst
	}
}

// unframe takes v out of his view.
func (c *channel) unframe(v *viewer) {
	c.framed--
	if v.packets {
		c.packets--
	}
	w := v.view
	if w.viewers--; w.viewers == 0 {
		w.chain.drop(len(w.chain.batches))
		c.views = slices.DeleteFunc(c.views, func(o *view) bool { return o == w })
	}
}

// place is where the frame that begins at pos of the stream stands in the chain.
func (w *view) place(pos int64) int64 { return pos / int64(w.payload) * int64(w.frame) }

// behind is the end of the stream that was put into frames.
func (w *view) behind() int64 { return w.chain.end / int64(w.frame) * int64(w.payload) }

// next is the start of the first frame that begins at pos of the stream or behind.
func (w *view) next(pos int64) int64 {
	return (pos + int64(w.payload) - 1) / int64(w.payload) * int64(w.payload)
}

// follows reports whether v is on his way from frame to frame.
func (v *viewer) follows() bool { return !v.entering && !v.parked && !v.paused }

// shares reports whether v takes his next frame from the chain of his view.
func (v *viewer) shares() bool {
	return v.view != nil && v.follows() && v.view.chain.holds(v.view.place(v.pos))
}

// needs is the position from which on v needs his channel's chain.
func (v *viewer) needs() int64 {
	if v.shares() {
		return v.view.behind()
	}
	return v.pos
}

// trim frees what no viewer needs.
func (w *view) trim() {
	keep := w.chain.end
	for _, v := range w.ch.viewers {
		if v.view == w && v.shares() {
			keep = min(keep, w.place(v.pos))
		}
	}
	w.chain.trim(keep, w.viewers > 1)
}

// share puts what is new into the chain, where several will take it from there.
func (w *view) share() {
	if w.viewers < 2 || w.packets {
		return
	}
	if len(w.chain.batches) == 0 {
		for _, v := range w.ch.viewers {
			if v.view == w && v.follows() {
				w.chain.end = max(w.chain.end, w.place(v.pos))
			}
		}
	}
	if start := w.ch.chain.start(); w.behind() < start { // after a time without sharing
		w.chain.drop(len(w.chain.batches))
		w.chain.end = w.place(w.next(start))
	}
	for w.ch.broken == nil {
		parts, n := w.make(w.behind(), flushBytes)
		if n == 0 {
			return
		}
		w.ch.keep(&w.chain, parts, n, true)
	}
}

// make makes whole frames from position pos of the stream on: at most most
// bytes, but one frame at least if it is there. The parts are valid until the
// channel's chain changes or the next call in this loop.
func (w *view) make(pos int64, most int) (parts [][]byte, n int) {
	c, s := w.ch, &w.ch.loop.store.frames
	s.parts, s.heads, s.copies = s.parts[:0], s.heads[:0], s.copies[:0]
	for pos+int64(w.payload) <= c.chain.end && c.chain.holds(pos) {
		if n > 0 && (n+w.frame > most || len(s.heads)+w.header > cap(s.heads) || len(s.copies)+w.payload > cap(s.copies)) {
			break
		}
		at := len(s.heads)
		s.heads = s.heads[:at+w.header]
		w.framing.Header(s.heads[at:], pos/int64(w.payload), w.payload, c.clock.at(pos))
		s.parts = append(s.parts, s.heads[at:])
		for end := pos + int64(w.payload); pos < end; {
			b := c.chain.at(pos)
			off, m := int(pos-b.start), int(min(end, b.end())-pos)
			if b.file == nil {
				s.parts = append(s.parts, b.mem[off:off+m])
			} else {
				at := len(s.copies)
				s.copies = s.copies[:at+m]
				if b.file.readAt(s.copies[at:], int64(off)) != m {
					return nil, 0
				}
				s.parts = append(s.parts, s.copies[at:])
			}
			pos += int64(m)
		}
		n += w.frame
	}
	return s.parts, n
}

// frames is the room in which a loop makes frames.
type frames struct {
	parts         [][]byte
	heads, copies []byte
}

// ready makes sure that there is room.
func (s *frames) ready() {
	if s.heads == nil {
		s.heads = make([]byte, 0, 4<<10)
		s.copies = make([]byte, 0, 64<<10)
	}
}

// send sends v up to want bytes of frames.
func (w *view) send(v *viewer, want int, now time.Time) (int, error) {
	place := w.place(v.pos) + int64(v.cut)
	if b := w.chain.at(place); b != nil {
		n, err := b.send(v.conn, place, want)
		v.tookFrames(n, now)
		return n, err
	}
	if v.packets && want < w.frame {
		return 0, nil
	}
	parts, n := w.make(v.pos, want)
	if n == 0 {
		w.last(v)
		return 0, nil
	}
	n, err := v.conn.writev(parts)
	v.tookFrames(n, now)
	if v.cut > 0 { // made for him alone, and once only
		v.prefix = tail(nil, parts, n, n+w.frame-v.cut)
		v.pass(w)
	}
	return n, err
}

// last sends v what is left of a stream that has ended: a frame that is not full.
func (w *view) last(v *viewer) {
	c := w.ch
	left := int(c.chain.end - v.pos)
	if c.over == nil || left <= 0 || left >= w.payload || v.cut > 0 {
		return
	}
	v.prefix = make([]byte, w.header, w.header+left)
	w.framing.Header(v.prefix, v.number, left, c.clock.at(v.pos))
	v.prefix = c.chain.read(v.prefix, v.pos, left)
	v.pass(w)
}

// tail appends to dst the bytes of parts from index from to index to.
func tail(dst []byte, parts [][]byte, from, to int) []byte {
	for _, p := range parts {
		if from < len(p) && to > 0 {
			dst = append(dst, p[max(from, 0):min(to, len(p))]...)
		}
		from, to = from-len(p), to-len(p)
	}
	return dst
}

// tookFrames is took for bytes of frames.
func (v *viewer) tookFrames(n int, now time.Time) {
	if n == 0 {
		return
	}
	w := v.view
	v.cut += n
	whole := v.cut / w.frame
	v.cut -= whole * w.frame
	v.number += int64(whole)
	v.frames += int64(whole)
	v.carried += int64(whole * w.payload)
	v.took(whole*w.payload, now)
	v.bytes += int64(n - whole*w.payload)
}

// pass lets the frame that is under way to v be over.
func (v *viewer) pass(w *view) {
	v.pos, v.cut = v.pos+int64(w.payload), 0
	v.number++
	v.frames++
	v.carried += int64(w.payload)
}

// finish moves the rest of the frame that is under way to v into his prefix.
func (w *view) finish(v *viewer) {
	if v.cut > 0 {
		v.prefix = w.chain.read(nil, w.place(v.pos)+int64(v.cut), w.frame-v.cut)
		v.pass(w)
	}
}

// enterFrames puts v where his stream goes on at pos, in the middle of a frame or
// at its start, with the packets ts before it: what is left of that frame goes
// out in frames of his own, which number up to the next one, behind ts. It
// reports false when the numbers before that are not free.
func (v *viewer) enterFrames(ts []byte, pos int64) bool {
	w := v.view
	next, count := w.entry(len(ts), pos)
	if next-count < v.number {
		return false
	}
	v.lead, v.pos, v.entering = ts, pos, true
	return true
}

// entry is the number of the first frame that a viewer who enters at pos shares
// with others, and how many are made for him before it.
func (w *view) entry(tables int, pos int64) (next, count int64) {
	payload := int64(w.payload)
	end := w.next(pos)
	return end / payload, (int64(tables) + end - pos + payload - 1) / payload
}

// begin sends a viewer who has entered his first frames, once all of the stream
// that goes into them is there.
func (v *viewer) begin() {
	w, c := v.view, v.ch
	next, count := w.entry(len(v.lead), v.pos)
	end := next * int64(w.payload)
	if end > c.chain.end && end != v.pos && c.over == nil {
		return
	}
	at := c.clock.at(v.pos)
	if v.announce {
		v.announce = false
		v.prefix = append(v.prefix, v.control.Begin(&Feed{c.loop, v}, next-count, at)...)
	}
	ts := c.chain.read(v.lead, v.pos, int(end-v.pos))
	for n := next - count; n < next && len(ts) > 0; n++ {
		p := ts[:min(len(ts), w.payload)]
		ts = ts[len(p):]
		head := len(v.prefix)
		v.prefix = append(v.prefix, make([]byte, w.header)...)
		w.framing.Header(v.prefix[head:], n, len(p), at)
		v.prefix = append(v.prefix, p...)
		v.frames++
		v.carried += int64(len(p))
	}
	v.lead, v.entering = nil, false
	v.pos, v.number = end, next
}
