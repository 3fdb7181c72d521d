package fcc

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"zapcast/fcc/wire"
	"zapcast/ingest"
	"zapcast/mpegts"
)

const (
	// burstInterval bounds the tick while a burst is open: what it brings waits
	// no longer, and six times 35 Mbit/s is no risk for the buffer.
	burstInterval = 10 * time.Millisecond

	// closingTime bounds how long Close listens whether the server has stopped,
	// closingPause is the time between two looks.
	closingTime  = 2 * time.Second
	closingPause = 5 * time.Millisecond

	// barrenAfter is how long the multicast may take to begin after a burst.
	barrenAfter = 2 * time.Second
)

// A Source is a multicast group whose beginning a burst may bring.
type Source struct {
	cfg       Config
	book      *Book
	target    target
	multicast *ingest.Multicast
	late      *lateFlow // nil: the group was joined at once
	seam      seam

	// The conversation: nil where there is none, or none any more.
	machine *machine
	sockets sockets
	learned bool // the book has heard of it
	fault   error

	opened   time.Time
	joinedAt time.Time
	status   ingest.FCCStatus
	closed   bool
}

var (
	_ ingest.Source = (*Source)(nil)
	_ ingest.Lead   = (*Source)(nil)
)

// Open joins the group and asks the server for a burst, in the order that
// cfg.Join has. Where there can be no burst the source is the group alone, and
// its Status says why. The errors are those of ingest.OpenMulticast, and of
// Request.Validate.
func Open(r ingest.Receiver, spec ingest.FlowSpec, req Request, cfg Config, book *Book) (*Source, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	req.Server = netip.AddrPortFrom(req.Server.Addr().Unmap(), req.Server.Port())
	s := &Source{
		cfg: cfg.withDefaults(), book: book, target: target{req.Server, spec.Group}, opened: time.Now(),
		status: ingest.FCCStatus{Server: req.Server.String()},
	}
	if err := spec.Validate(); err != nil { // before anybody is asked anything
		return nil, err
	}
	s.seam.source = s
	s.ask(spec, req)

	var err error
	if s.machine != nil && s.cfg.Join == OnSync {
		late := &lateReceiver{Receiver: r}
		s.multicast, err = ingest.OpenMulticast(late, spec)
		s.late = late.flow
	} else {
		s.multicast, err = ingest.OpenMulticast(r, spec)
		s.joinedAt = time.Now()
	}
	if err != nil {
		s.hangUp()
		return nil, err
	}
	if s.machine != nil {
		s.multicast.SetLead(s)
	} else {
		s.seam.phase = done
	}
	return s, nil
}

// ask begins the conversation, or notes why there is none.
func (s *Source) ask(spec ingest.FlowSpec, req Request) {
	refuse := func(reason string) { s.status.Kind, s.status.Reason = ingest.StartMulticast, reason }
	if !spec.Group.Addr().Is4() {
		refuse(reasonIPv6)
		return
	}
	client := s.cfg.Client
	if !client.IsValid() {
		var err error
		if client, err = localAddr(req.Server); err != nil {
			s.fault = err
			refuse(reasonSocket + ": " + err.Error())
			return
		}
	}
	now := time.Now()
	a := s.book.begin(now, s.target, req.Dialect, s.cfg.Bursts)
	if a.refusal != "" {
		refuse(a.refusal)
		return
	}
	twin := false
	for _, d := range a.plan {
		twin = twin || d.twin()
	}
	about := subject{group: spec.Group, source: spec.Source, client: client, boxID: s.cfg.BoxID, ssrc: rand.Uint32(), maxRate: s.cfg.MaxRate}
	s.machine = newMachine(about, req.Server, a, s.cfg.Join)
	var err error
	if s.sockets, err = openSockets(s.cfg, twin); err != nil {
		s.fault = err
		s.machine.reason = reasonSocket
		s.book.end(now, s.target, s.machine, false)
		s.machine = nil
		refuse(reasonSocket + ": " + err.Error())
		return
	}
	s.machine.mediaPort = s.sockets.media.Port()
	s.machine.signalPort = s.machine.mediaPort + 1
	s.machine.start(now)
	s.act()
}

// Drain implements ingest.Source.
func (s *Source) Drain(now time.Time, max int, sink ingest.Sink) (more bool) {
	if s.machine == nil && s.seam.quiet() {
		return s.multicast.Drain(now, max, sink)
	}
	out := s.seam.through(sink, now)
	more = s.listen(now, max, func(b []byte, from netip.AddrPort) { s.seam.burst(b, from, now) }, func() { s.multicast.Deliver(now, out) })
	s.step(now)
	more = s.multicast.Drain(now, max, out) || more
	s.seam.judge(now)
	s.step(now)
	return s.seam.release(now, max, out) || more
}

// listen reads what the server has sent: RTCP goes to the machine, the rest to
// media; flush is called before its memory is used again.
func (s *Source) listen(now time.Time, max int, media func([]byte, netip.AddrPort), flush func()) (more bool) {
	if s.machine == nil {
		return false
	}
	for _, u := range []ingest.Unicast{s.sockets.media, s.sockets.signal} {
		for left := max; u != nil && left > 0; {
			datagrams, from, again := u.Read(left)
			for i, b := range datagrams {
				switch ingest.Classify(b) {
				case ingest.KindRTCP:
					for p := range wire.Packets(b) {
						s.machine.received(now, from[i], p)
					}
				case ingest.KindRTP, ingest.KindFEC: // a retransmission may have FEC's payload type
					media(b, from[i])
				}
			}
			flush()
			if left -= len(datagrams); !again {
				break
			}
			more = left <= 0
		}
	}
	return more
}

// step lets the machine do what is due.
func (s *Source) step(now time.Time) {
	if s.machine == nil {
		return
	}
	s.machine.tick(now)
	s.act()
	if !s.learned && (s.machine.pinned.IsValid() || s.machine.state == ending && s.machine.spoken != nil) {
		s.learned = true
		s.book.heard(now, s.target, s.machine)
	}
	if !s.machine.open() {
		s.hangUp()
	}
}

// act does what the machine wants.
func (s *Source) act() {
	for _, a := range s.machine.take() {
		switch a.kind {
		case actSend:
			if err := s.sockets.send(a); err != nil {
				s.cfg.Logger.Debug("fcc: message not sent", "to", a.to, "err", err)
			}
		case actJoin:
			if s.late != nil && !s.late.asked {
				s.late.join()
				s.joinedAt = time.Now()
			}
		case actSplice:
			s.seam.splice()
		}
	}
}

// hangUp ends the conversation.
func (s *Source) hangUp() {
	if s.machine == nil {
		return
	}
	s.remember()
	now := time.Now()
	barren := s.status.BurstPackets > 0 && !s.seam.met && !s.joinedAt.IsZero() && now.Sub(s.joinedAt) > barrenAfter
	s.book.end(now, s.target, s.machine, barren)
	s.sockets.close()
	s.machine = nil
}

// remember notes what the machine knows for Status.
func (s *Source) remember() {
	m := s.machine
	s.status.Open = m.state > idle && m.state < ending
	s.status.State = m.state.String()
	s.status.Asked = m.server.String()
	s.status.ReplyTime = m.replyTime
	if m.spoken != nil {
		s.status.Dialect = m.spoken.name()
	}
	if m.reason != "" && s.status.Reason == "" {
		s.status.Reason = m.reason
	}
}

// Status implements ingest.Source.
func (s *Source) Status() ingest.Status {
	status := s.multicast.Status()
	if s.machine != nil {
		s.remember()
	} else {
		s.status.Open, s.status.State = false, ""
	}
	fcc := s.status
	fcc.HeldBytes, fcc.HeldPeak = s.seam.early.bytes, s.seam.early.peak
	status.FCC = &fcc
	if s.fault != nil {
		status.Warnings = append(status.Warnings, "fast channel change: "+s.fault.Error())
	}
	return status
}

// Seen implements ingest.Source.
func (s *Source) Seen() string {
	seen := s.multicast.Seen()
	if s.late != nil && !s.late.asked {
		seen = "not joined yet"
	}
	status := s.Status().FCC
	switch {
	case status.BurstPackets > 0:
		return seen + "; a burst of fast channel change came from " + status.Server
	case status.Reason != "":
		return seen + "; no burst of fast channel change: " + status.Reason
	}
	return seen
}

// Interval implements ingest.Source.
func (s *Source) Interval() time.Duration {
	interval := s.multicast.Interval()
	if (s.machine != nil || !s.seam.over()) && (interval == 0 || interval > burstInterval) {
		return burstInterval
	}
	return interval
}

// Rejoin implements ingest.Source.
func (s *Source) Rejoin() { s.multicast.Rejoin() }

// Repair opens the ports of parity for the stream, as Multicast.Repair does.
func (s *Source) Repair(receiver ingest.Receiver, config ingest.RepairConfig) {
	s.multicast.Repair(receiver, config)
}

// Close leaves the group, ends the burst and listens for a moment whether the
// server has understood. Further calls do nothing.
func (s *Source) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.multicast.Close()
	s.seam.early.free()
	if s.machine != nil {
		s.machine.leave(time.Now())
		s.act()
	}
	for end := time.Now().Add(closingTime); s.machine != nil && time.Now().Before(end); {
		time.Sleep(closingPause)
		now := time.Now()
		s.listen(now, 256, func(_ []byte, from netip.AddrPort) { s.machine.media(now, from) }, func() {})
		s.step(now)
	}
	s.hangUp()
	return err
}

// startable reports whether a decoder can begin with what a scanner has seen.
func startable(scan *mpegts.Scanner) bool {
	_, random := scan.RandomAccess()
	return random || scan.Rule() == mpegts.AtOnce
}
