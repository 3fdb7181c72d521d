package fcc

import (
	"net/netip"
	"time"

	"zapcast/fcc/wire"
	"zapcast/ingest"
	"zapcast/mpegts"
)

// unrelated is the distance from which on two sequence numbers are not of one
// numbering: a quarter of the space, 5 s at 35 Mbit/s.
const unrelated = 1 << 14

// lookBytes is how much of a stream is looked through for the sake of Status.
const lookBytes = 32 << 20

// lateSpan is how far ahead of what is due a packet of the burst may be once the
// multicast goes out: it may still fill a hole.
const lateSpan = 512

type phase uint8

const (
	waiting   phase = iota // the multicast waits for the burst to reach it
	releasing              // what has waited goes out
	done                   // the multicast goes its own way
)

// A seam joins burst and multicast in the window that they share.
//
//	waiting ──the burst has reached the multicast, or is given up──► releasing ──nothing waits──► done
//
// A start is decided once one of them has brought a point at which a decoder can
// begin. Is that the multicast, the burst is of no use any more.
type seam struct {
	source *Source
	phase  phase

	early    held
	met      bool   // the multicast has brought something
	first    uint16 // its first packet
	low      uint16 // its lowest
	group    uint32 // its SSRC
	ssrc     uint32 // under which all goes through the window
	named    bool   // ssrc is set
	useless  bool   // the burst, since the multicast was first
	past     bool   // the multicast has come up to what is due
	started  bool   // it is decided what the start is
	earlySee mpegts.Scanner
	earlyPos int64

	sink   ingest.Sink
	now    time.Time
	outSee mpegts.Scanner
	outPos int64
}

func (s *seam) over() bool { return s.phase == done }

// quiet reports whether there is nothing to do any more, nor to look at.
func (s *seam) quiet() bool {
	return s.over() && (s.source.status.RandomAccess > 0 || s.outPos > lookBytes)
}

// through returns a sink that looks at what goes to another.
func (s *seam) through(sink ingest.Sink, now time.Time) ingest.Sink {
	if s.quiet() {
		return sink
	}
	s.sink, s.now = sink, now
	return s
}

// Append implements ingest.Sink.
func (s *seam) Append(ts [][]byte) {
	status := &s.source.status
	if status.RandomAccess == 0 {
		for _, b := range ts {
			s.outSee.Scan(b, s.outPos)
			s.outPos += int64(len(b))
		}
		since := s.now.Sub(s.source.opened)
		if status.FirstByte == 0 {
			status.FirstByte = since
		}
		if startable(&s.outSee) {
			status.RandomAccess = since
			if status.Kind == "" {
				status.Kind = ingest.StartMulticast
				if status.BurstPackets > 0 && !s.useless {
					status.Kind = ingest.StartBurst
				}
			}
		}
	}
	s.sink.Append(ts)
}

// burst takes a datagram that may be of the burst.
func (s *seam) burst(b []byte, from netip.AddrPort, now time.Time) {
	h, payload, ok := ingest.PeekRTP(b)
	if !ok {
		return
	}
	seq := h.Sequence
	if !mpegts.Whole(payload) { // a retransmission, RFC 4588, whose payload type nobody has told
		original, rest, ok := wire.SplitRTX(payload)
		if !ok || !mpegts.Whole(rest) {
			return
		}
		seq, payload = original, rest
	}
	if !s.source.machine.media(now, from) {
		return
	}
	status := &s.source.status
	status.BurstPackets++
	status.BurstBytes += int64(len(payload))
	if s.useless {
		return
	}
	if s.phase != waiting {
		if due, ok := s.source.multicast.Due(); !ok || seq-due >= lateSpan {
			return // its time is over
		}
	}
	s.fill(seq, now)
	s.push(ingest.Packet{Seq: seq, SSRC: h.SSRC, Payload: payload}, now, true)
}

// fill lets what has waited up to seq go before a packet of the burst. A loop
// that is late may read more of the burst at once than the window spans: it
// would give up holes that the multicast has filled.
func (s *seam) fill(seq uint16, now time.Time) {
	if !s.met || int16(seq-s.first) < 0 || seq-s.first >= unrelated {
		return
	}
	for _, p := range s.early.upTo(seq) {
		if !s.behind(p) {
			s.push(p, now, false)
		}
	}
}

// behind reports whether a packet's number has gone out or was given up.
func (s *seam) behind(p ingest.Packet) bool {
	due, ok := s.source.multicast.Due()
	d := int16(p.Seq - due)
	return ok && d < 0 && d > -unrelated
}

// push puts a packet in the window. Burst and multicast have SSRCs of their own
// and go through it under one.
func (s *seam) push(p ingest.Packet, now time.Time, burst bool) {
	if !s.named {
		s.named, s.ssrc = true, p.SSRC
	}
	if burst || p.SSRC == s.group {
		p.SSRC = s.ssrc
	}
	s.source.multicast.Push(p, now)
}

// Hold implements ingest.Lead.
func (s *Source) Hold(p ingest.Packet, now time.Time) bool {
	m := &s.seam
	if !m.met {
		m.met, m.first, m.low, m.group = true, p.Seq, p.Seq, p.SSRC
		if s.machine != nil {
			s.machine.stream = p.SSRC
			s.machine.joined(now, p.Seq)
		}
	}
	if s.machine != nil {
		s.machine.heard(now)
	}
	if m.over() {
		if m.named {
			s.multicast.Rename(p.SSRC)
		}
		s.multicast.SetLead(nil)
		return false
	}
	if int16(p.Seq-m.low) < 0 && m.low-p.Seq < lateSpan {
		m.low = p.Seq
	}
	m.early.add(p)
	if !m.started {
		m.earlySee.Scan(p.Payload, m.earlyPos)
		m.earlyPos += int64(len(p.Payload))
	}
	if m.early.bytes > s.cfg.HoldBytes && m.phase == waiting {
		m.giveUp(now, reasonFull)
	}
	return true
}

// Bare implements ingest.Lead.
func (s *Source) Bare(now time.Time) {
	if s.seam.phase == waiting {
		s.seam.met = true
		s.seam.giveUp(now, reasonBare)
	}
}

// giveUp ends the wait for the burst.
func (s *seam) giveUp(now time.Time, reason string) {
	if s.source.machine != nil {
		s.source.machine.fallBack(now, reason)
	}
	s.splice()
}

// judge decides what the start is, and whether the burst has reached the
// multicast.
func (s *seam) judge(now time.Time) {
	if s.phase != waiting || !s.met {
		s.started = s.started || startable(&s.outSee)
		return
	}
	switch {
	case s.started:
	case startable(&s.outSee):
		s.started = true
	case startable(&s.earlySee):
		s.started, s.useless = true, true
		s.giveUp(now, reasonMulticast)
		return
	}
	due, ok := s.source.multicast.Due()
	if !ok {
		return
	}
	switch gap := int16(s.first - due); {
	case gap >= unrelated || gap <= -unrelated:
		s.useless = true
		s.giveUp(now, reasonUnrelated)
	case gap <= 0:
		if s.source.machine != nil {
			s.source.machine.reached(now)
		}
		s.splice()
	}
}

// splice lets what has waited go out. What the burst has left out before it is
// lost; of a burst that is of no use nothing goes out any more.
func (s *seam) splice() {
	if s.phase != waiting {
		return
	}
	s.phase = releasing
	if due, ok := s.source.multicast.Due(); ok && s.met && s.low-due < unrelated {
		if s.useless {
			s.source.multicast.Begin(s.low)
		} else {
			s.source.multicast.Skip(s.low)
		}
	}
}

// release lets up to max packets out that have waited.
func (s *seam) release(now time.Time, max int, out ingest.Sink) (more bool) {
	if s.phase != releasing {
		return false
	}
	m := s.source.multicast
	for _, p := range s.early.take(max) {
		// The burst may be ahead of the multicast. The window would take many
		// packets far behind for a sender that has begun anew.
		if !s.past && !s.useless && s.behind(p) {
			continue
		}
		s.past = true
		s.push(p, now, false)
	}
	m.Deliver(now, out)
	if !s.early.empty() {
		return true
	}
	s.early.free()
	if s.met && !s.past {
		return false
	}
	s.phase = done
	if s.source.status.BurstPackets > 0 && !s.useless {
		s.source.status.HandOver = now.Sub(s.source.opened)
	}
	if s.met {
		if s.named {
			m.Rename(s.group)
		}
		m.SetLead(nil)
	}
	return false
}
