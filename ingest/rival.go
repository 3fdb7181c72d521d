package ingest

import "time"

const (
	// rivalOther is how many packets of another SSRC in succession, without one
	// of the SSRC followed between them, make a restarted sender out of a second
	// one. Two senders that share a group alternate more often than that.
	rivalOther = 8

	// rivalBehind is how many packets far behind, in succession, make a restart
	// out of late duplicates. The network repeats bursts; it does not repeat so
	// many without a packet of the present between them.
	rivalBehind = 48

	// rivalTime is the patience with a slow stream: two packets that far apart
	// suffice, if the old numbering was silent all the while.
	rivalTime = 200 * time.Millisecond
)

// rival holds the packets that do not fit the numbering that a window follows:
// another SSRC, or a number that is far away. They are a corrupt packet, a
// second sender, late duplicates, or what the sender has gone over to. As soon
// as the numbering goes on they are dismissed; if they convince first, the
// window follows them and none of them is lost.
type rival struct {
	ssrc    uint32
	packets []stray
	bytes   int
}

// stray is a packet of the rival.
type stray struct {
	seq     uint16
	at      time.Duration
	payload []byte
}

// consider adds a packet that does not fit to the rival, and follows the rival
// if that convinces.
func (w *Window) consider(p Packet, at time.Duration, out [][]byte) [][]byte {
	r := &w.rival
	if len(r.packets) > 0 && (p.SSRC != r.ssrc || outlies(p.Seq, r.packets[0].seq)) {
		w.dismiss()
	}
	if len(r.packets) == 0 {
		if len(p.Payload) == 0 { // nobody would gain by following a keep-alive
			w.stats.Foreign++
			return out
		}
		r.ssrc = p.SSRC
	}
	neighbour := false
	for i := range r.packets {
		switch r.packets[i].seq - p.Seq {
		case 0:
			w.stats.Duplicates++
			return out
		case 1, 1<<16 - 1:
			neighbour = true
		}
	}
	r.packets = append(r.packets, stray{p.Seq, at, w.pool.copy(p.Payload)})
	r.bytes += len(p.Payload)
	if w.convinced(p, at, neighbour) {
		return w.follow(out)
	}
	return out
}

// convinced reports whether the rival, to which p was added last, is what the
// sender has gone over to. neighbour says that it holds the number before or
// after p's.
func (w *Window) convinced(p Packet, at time.Duration, neighbour bool) bool {
	n := len(w.rival.packets)
	switch {
	case n > 1 && (at-w.rival.packets[0].at >= rivalTime || w.rival.bytes > w.config.Bytes):
		return true
	case p.SSRC != w.ssrc:
		continues := w.state == following && p.Seq == w.next && len(p.Payload) > 0
		return continues || n >= rivalOther
	case int16(p.Seq-w.next) > 0:
		return neighbour
	default:
		return n >= rivalBehind
	}
}

// follow goes over to the rival. Under another SSRC and near the number that is
// due it is the same stream going on; else the stream starts anew.
func (w *Window) follow(out [][]byte) [][]byte {
	r := &w.rival
	low := r.packets[0].seq
	for i := range r.packets {
		if int16(r.packets[i].seq-low) < 0 {
			low = r.packets[i].seq
		}
	}
	if r.ssrc == w.ssrc || w.far(low) {
		out = w.Flush(out)
		if gap := int16(low - w.next); r.ssrc == w.ssrc && gap > 0 {
			w.skip(low)
		}
		w.stats.Resyncs++
		w.next = low
		w.went = history{}
	}
	w.ssrc = r.ssrc
	for i := range r.packets {
		p := &r.packets[i]
		w.pool.release(p.payload) // place copies it once more if it has to wait
		out = w.place(Packet{Seq: p.seq, SSRC: r.ssrc, Payload: p.payload}, p.at, out)
	}
	r.clear()
	return out
}

// dismiss drops the rival.
func (w *Window) dismiss() {
	for i := range w.rival.packets {
		w.pool.drop(w.rival.packets[i].payload)
	}
	w.stats.Foreign += int64(len(w.rival.packets))
	w.rival.clear()
}

func (r *rival) clear() {
	clear(r.packets)
	r.packets, r.bytes = r.packets[:0], 0
}

// outlies reports whether two numbers are too far from each other to be of the
// same numbering.
func outlies(a, b uint16) bool {
	d := int16(a - b)
	return d >= farDistance || d <= -farDistance
}
