package rtsp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

// maxEarly bounds what a server may send before it has answered PLAY, in bytes.
const maxEarly = 4 << 20

// A session drives a machine with a connection that it may wait for: until the
// session plays, and again for its end.
type session struct {
	cfg   *Config
	iface string
	m     *machine
	nc    net.Conn
	udp   *portPair
	in    []byte // received, not yet looked at
	early []byte // frames that came before the answer to PLAY
	buf   []byte
}

func newSession(cfg *Config, r Request, describeOnly bool) *session {
	return &session{cfg: cfg, iface: r.Interface, m: newMachine(cfg, r.URL, r.Range, describeOnly, time.Now()), buf: make([]byte, 16<<10)}
}

// run drives the machine until it plays or is finished.
func (s *session) run(ctx context.Context) error {
	for {
		now := time.Now()
		a, wake := s.m.next(now)
		switch a.kind {
		case actDial:
			s.hangUp()
			s.closePorts()
			conn, err := s.dial(ctx, a.url)
			var local, server netip.AddrPort
			if err == nil {
				s.nc = conn
				local, server = addrPort(conn.LocalAddr()), addrPort(conn.RemoteAddr())
			}
			s.m.dialed(local, server, err, time.Now())
		case actBind:
			ports, mapped := s.bind(ctx)
			s.m.bound(ports, mapped, time.Now())
		case actSend:
			_ = s.nc.SetWriteDeadline(now.Add(s.cfg.Timeout))
			if _, err := s.nc.Write(a.data); err != nil && !s.readable() {
				s.m.closed(err, time.Now())
			}
		case actPunch:
			if s.udp != nil {
				s.m.punch().send(s.udp.sendMedia, s.udp.sendReport)
			}
		case actNone:
			if s.m.finished() {
				return s.m.err
			}
			if s.m.state == playing {
				return nil
			}
			s.read(ctx, wake)
		}
	}
}

// readable reports whether the server has said something: where it answers and
// hangs up, the answer counts, although a write fails.
func (s *session) readable() bool {
	_ = s.nc.SetReadDeadline(time.Now().Add(time.Millisecond))
	n, err := s.nc.Read(s.buf)
	s.in = append(s.in, s.buf[:n]...)
	return n > 0 && err == nil
}

// read waits for more from the server and hands it to the machine.
func (s *session) read(ctx context.Context, wake time.Time) {
	if limit := s.m.started.Add(s.cfg.Handshake); s.m.state < playing && (wake.IsZero() || limit.Before(wake)) {
		wake = limit.Add(time.Millisecond)
	}
	if s.parse() {
		return
	}
	if ctx.Err() != nil {
		s.m.end(fail(0, "%s: given up", s.m.url))
		return
	}
	nc := s.nc // what runs after ctx may do so when the session has hung up
	_ = nc.SetReadDeadline(wake)
	stop := context.AfterFunc(ctx, func() { _ = nc.SetReadDeadline(time.Unix(1, 0)) })
	n, err := nc.Read(s.buf)
	stop()
	s.in = append(s.in, s.buf[:n]...)
	s.parse()
	if err != nil && !isTimeout(err) && s.m.waits != "" && len(s.m.actions) == 0 {
		if errors.Is(err, io.EOF) {
			err = errors.New("closed by the server")
		}
		s.m.closed(err, time.Now())
	}
}

// parse hands what has come to the machine, up to the message that makes it do
// something. It reports whether there was such a one.
func (s *session) parse() (acted bool) {
	state := s.m.state
	for !acted {
		p, n, err := cut(s.in, s.m.transport.mediaChannels())
		if err != nil {
			s.m.lost(time.Now(), fail(0, "%s: cannot read the answer to %s: %v", s.m.url, s.m.waits, err))
			return true
		}
		if n == 0 {
			return false
		}
		if p.kind == pieceMessage {
			s.m.received(p.message, time.Now())
			acted = len(s.m.actions) > 0 || s.m.state != state
		} else if p.kind == pieceMedia && len(s.early) < maxEarly && state != teardown {
			s.early = append(s.early, s.in[:n]...)
		}
		s.in = s.in[:copy(s.in, s.in[n:])]
	}
	return acted
}

// mediaChannels are 0 and 1 until the server has chosen others.
func (t transport) mediaChannels() [2]uint8 {
	if t.way == OverTCP {
		return t.channels
	}
	return [2]uint8{0, 1}
}

// bind opens the UDP ports and asks STUN. What fails leaves TCP.
func (s *session) bind(ctx context.Context) (ports [2]uint16, mapped netip.AddrPort) {
	udp, err := openPorts(s.m.local.Addr())
	if err != nil {
		s.cfg.Logger.Warn("rtsp: UDP is not offered", "source", s.m.url.String(), "err", err)
		return ports, mapped
	}
	s.udp = udp
	if s.cfg.STUN != "" {
		server, err := s.stunServer(ctx)
		if err == nil {
			began := time.Now()
			mapped, err = askSTUN(udp.rtp, server)
			s.m.started = s.m.started.Add(time.Since(began)) // the handshake's time stands still meanwhile
		}
		if err != nil {
			s.cfg.Logger.Warn("rtsp: the local address is used", "source", s.m.url.String(), "err", err)
		}
	}
	return udp.numbers(), mapped
}

func (s *session) hangUp() {
	if s.nc != nil {
		_ = s.nc.Close()
		s.nc = nil
	}
	s.in, s.early = nil, nil
}

func (s *session) closePorts() {
	if s.udp != nil {
		s.udp.close()
		s.udp = nil
	}
}

// teardown ends the session on the server and hangs up, within the time limit.
// Without a connection it makes one, for this alone: a server that is not told
// goes on sending, and counts the session against the account.
func (s *session) teardown() {
	s.closePorts()
	defer s.hangUp()
	end := time.Now().Add(s.cfg.Timeout)
	if !s.m.close(time.Now()) {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	if s.nc == nil {
		conn, err := s.connect(ctx, s.m.url, s.m.server) // no other server of that name knows the session
		if err != nil {
			s.cfg.Logger.Debug("rtsp: the server was not told of the end", "source", s.m.url.String(), "err", err)
			return
		}
		s.nc = conn
	}
	for !s.m.finished() && time.Now().Before(end) {
		a, wake := s.m.next(time.Now())
		switch a.kind {
		case actSend:
			_ = s.nc.SetWriteDeadline(end)
			if _, err := s.nc.Write(a.data); err != nil {
				return
			}
		case actNone:
			s.read(ctx, wake)
		}
	}
}
