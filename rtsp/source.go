package rtsp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"zapcast/ingest"
)

// endGrace is how long packets that wait for others may still come out after the
// connection has ended: longer than the window holds them.
const endGrace = 100 * time.Millisecond

// A Source is a session that plays.
type Source struct {
	session *session // for its machine, and for its end
	request Request
	media   *ingest.Multicast
	tcp     *tcpFlow   // the control connection, and the media where it is interleaved
	udp     *udpFlow   // nil: the media does not come over UDP
	rtp     packetLink // of udp
	pending []byte     // to be sent to the server
	now     time.Time

	started time.Time // when PLAY was answered
	first   bool      // media has come
	last    time.Time // when the connection ended
	failure error
	closed  bool
}

var _ ingest.Session = (*Source)(nil)

// source makes the source of a session that plays.
func (c *Client) source(receiver ingest.Receiver, s *session, r Request) (*Source, error) {
	o := &Source{session: s, request: r, started: time.Now()}
	buf := c.scratchOf(receiver)
	switch s.m.transport.way {
	case OverMulticast:
		spec, err := s.m.flowSpec(cmp.Or(r.Interface, s.cfg.Interface))
		if err != nil {
			return nil, err
		}
		if o.media, err = ingest.OpenMulticast(receiver, spec); err != nil {
			return nil, err
		}
	case OverUDP:
		o.rtp = newPackets(s.udp.rtp, s.cfg.Plain)
		o.udp = &udpFlow{port: o.rtp, m: s.m, scratch: buf}
		o.media = ingest.NewUnicast(o.udp)
	}
	o.tcp = &tcpFlow{link: newLink(s.nc, s.cfg.Plain), m: s.m, scratch: buf, raw: s.m.transport.raw, carry: append(s.early, s.in...)}
	s.nc, s.in, s.early, s.buf = nil, nil, nil, nil
	if o.media == nil {
		o.media = ingest.NewUnicast(o.tcp)
		s.closePorts()
	}
	return o, nil
}

// flowSpec is the group that the server sends to.
func (m *machine) flowSpec(iface string) (spec ingest.FlowSpec, err error) {
	group, port := m.transport.group, m.transport.port
	if group == "" {
		group = m.sdp.group
	}
	if port == 0 {
		port = m.sdp.port
	}
	addr, err := netip.ParseAddr(strings.Trim(group, "[]"))
	if err != nil {
		return spec, fail(0, "%s: the server chose multicast and names no group, found %s", m.url, quote(group))
	}
	spec = ingest.FlowSpec{Group: netip.AddrPortFrom(addr.Unmap(), port), Interface: iface}
	if sender, err := netip.ParseAddr(m.transport.source); err == nil && sourceSpecific(addr) {
		spec.Source = sender.Unmap()
	}
	if err := spec.Validate(); err != nil {
		return spec, fail(0, "%s: the server chose multicast to %s: %v", m.url, quote(group), err)
	}
	return spec, nil
}

// sourceSpecific reports whether a group can only be joined with its sender:
// 232.0.0.0/8 (RFC 4607) and ff3x::/32.
func sourceSpecific(group netip.Addr) bool {
	if group.Is4() {
		return group.As4()[0] == 232
	}
	b := group.As16()
	return b[1]>>4 == 3
}

// Drain implements ingest.Source. With a max of 0 it reads nothing, and only
// keeps the session alive.
func (s *Source) Drain(now time.Time, max int, sink ingest.Sink) (more bool) {
	s.now = now
	if max > 0 {
		s.tcp.begin(now)
		if s.udp != nil {
			s.udp.turn = true
		}
		if !s.interleaved() { // only messages are wanted: once, or who sends without end would hold the loop
			_, more = s.tcp.Read(max)
		}
		more = s.media.Drain(now, max, sink) || more
		if s.udp != nil {
			s.udp.turn = false
		}
		s.tcp.finish()
	}
	s.work(now)
	return more && s.failure == nil
}

func (s *Source) interleaved() bool { return s.session.m.transport.way == OverTCP }

// work does what the machine asks for and notices the end.
func (s *Source) work(now time.Time) {
	m := s.session.m
	for {
		a, _ := m.next(now)
		if a.kind == actNone {
			break
		}
		s.act(a)
	}
	s.flush()
	switch {
	case s.failure != nil:
	case m.finished():
		if s.failure = m.err; m.err == nil {
			s.failure = io.EOF
		}
	case s.tcp.ended() != nil:
		if s.last.IsZero() {
			s.last = now
		}
		if now.Sub(s.last) >= endGrace {
			s.broken(s.tcp.ended())
		}
	case !s.first && s.media.HandedOn():
		s.first = true
	case !s.first && now.Sub(s.started) >= s.session.cfg.Timeout:
		s.failure = fail(statusTimeout, "%s: no media within %v of PLAY: %s", m.url, s.session.cfg.Timeout, s.Seen())
	}
}

// broken is the end of the connection. A server that hangs up without having
// sent anything has failed; later it is the stream's end.
func (s *Source) broken(err error) {
	m := s.session.m
	switch {
	case s.media.HandedOn() && (errors.Is(err, io.EOF) || isReset(err)):
		s.failure = io.EOF
	case errors.Is(err, io.EOF):
		s.failure = fail(0, "%s: the server hung up before any media: %s", m.url, s.Seen())
	default:
		s.failure = fail(0, "%s: the session broke off: %v", m.url, err)
	}
}

func (s *Source) act(a action) {
	switch a.kind {
	case actSend:
		s.pending = append(s.pending, a.data...)
	case actPunch:
		if s.rtp != nil {
			s.session.m.punch().send(s.rtp.send, s.session.udp.sendReport)
		}
	}
}

// maxPending bounds what waits for a server that asks and does not read.
const maxPending = 64 << 10

func (s *Source) flush() {
	for len(s.pending) > 0 {
		n, err := s.tcp.link.write(s.pending)
		s.pending = s.pending[:copy(s.pending, s.pending[n:])]
		if errors.Is(err, errAgain) {
			if len(s.pending) > maxPending && s.failure == nil {
				s.failure = fail(0, "%s: the server asks on and on and does not read", s.session.m.url)
			}
			return
		}
		if err != nil { // what it has sent is still read
			s.pending = nil
			return
		}
	}
}

// Ended implements ingest.Session.
func (s *Source) Ended() error { return s.failure }

// Private implements ingest.Session.
func (s *Source) Private() bool { return s.request.Private }

// Waits implements ingest.Session.
func (s *Source) Waits() bool { return s.interleaved() }

// Interval implements ingest.Source.
func (s *Source) Interval() time.Duration { return s.media.Interval() }

// Rejoin implements ingest.Source: a NAT may have forgotten the way, a group the
// membership.
func (s *Source) Rejoin() {
	if s.udp != nil {
		s.act(action{kind: actPunch})
	}
	s.media.Rejoin()
}

// Status implements ingest.Source.
func (s *Source) Status() ingest.Status {
	st := s.media.Status()
	m := s.session.m
	st.Source = m.url.String()
	if m.redirects > 0 {
		st.Source = m.entry.String()
	}
	st.Session = &ingest.SessionStatus{Transport: s.Transport(), Scale: m.scale, Range: m.played, Duration: m.sdp.duration}
	if s.request.Interface != "" {
		st.Interface = s.request.Interface
	}
	if !s.interleaved() {
		var control ingest.Status
		s.tcp.Status(&control)
		st.Warnings = append(st.Warnings, control.Warnings...)
	}
	return st
}

// Transport is how the media comes: "tcp-interleaved", "udp" or "multicast".
func (s *Source) Transport() string {
	if s.interleaved() {
		return "tcp-interleaved"
	}
	return s.session.m.transport.way
}

// Seen implements ingest.Source.
func (s *Source) Seen() string {
	m := s.session.m
	what := "nothing received"
	if st := s.media.Status(); st.Datagrams > 0 {
		what = s.media.Seen()
		_, what, _ = strings.Cut(what, ", ")
	}
	text := fmt.Sprintf("playing over %s from %s, %s", s.Transport(), m.server, what)
	if m.sdp.encoding != "" && m.sdp.encoding != "MP2T" && !s.media.HandedOn() {
		text += "; the SDP announces " + clip(m.sdp.encoding) + " instead of MPEG-TS"
	}
	return text
}

// Close ends the session on the server, which may take as long as the time limit.
func (s *Source) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.media.Close()
	if s.rtp != nil {
		err = errors.Join(err, s.rtp.close())
	}
	conn, cerr := s.tcp.link.conn()
	if cerr == nil && s.tcp.err == nil {
		s.session.nc = conn
	} else if cerr == nil {
		_ = conn.Close()
	}
	s.session.in = s.tcp.carry
	s.session.buf = make([]byte, 16<<10)
	s.session.teardown()
	return err
}
