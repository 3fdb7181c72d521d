package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"zapcast/fanout"
	"zapcast/tune"
)

// A conn is a connection on which nothing is played yet. One goroutine drives its
// machine, and ends when the engine takes over.
type conn struct {
	server  *Server
	config  *Config
	nc      net.Conn
	addr    netip.Addr
	client  string
	machine machine

	udp      *receiver // where packets are datagrams
	lastWord time.Time // when the client last said something
	reported time.Time // last sender report
}

func newConn(s *Server, config *Config, nc net.Conn) *conn {
	c := &conn{server: s, config: config, nc: nc, addr: addressOf(nc.RemoteAddr()), client: nc.RemoteAddr().String()}
	var id [8]byte
	rand.Read(id[:])
	c.machine.id = hex.EncodeToString(id[:])
	c.machine.digest = newDigest(config.User, config.Password)
	c.machine.local = "IP4 0.0.0.0"
	if local := addressOf(nc.LocalAddr()); local.Is6() {
		c.machine.local = "IP6 ::"
	}
	return c
}

// run serves the connection until it is closed, or the engine's.
func (c *conn) run() {
	for m := &c.machine; ; {
		a := m.next()
		for a.kind == lookup || a.kind == settle {
			a = c.answer(a.kind)
		}
		if c.udp != nil && c.udp.feed != nil {
			a = c.steer(a)
		}
		if len(a.reply) > 0 && !c.write(a.reply) {
			a.kind = end
		}
		switch a.kind {
		case wait:
			if c.read() {
				continue
			}
		case send:
			continue
		case start:
			switch err := c.start(); {
			case err == nil && m.chosen.way == interleaved:
				return // it is the engine's now
			case err == nil && c.begin():
				continue
			case err != nil && !lost(err) && c.write(m.failed(err).reply) && c.server.retain(c):
				continue
			}
		}
		c.close()
		return
	}
}

// answer does what the machine cannot do by itself.
func (c *conn) answer(k kind) action {
	m := &c.machine
	if k == settle {
		t, parameters, err := c.settle(m.offers)
		return m.settled(t, parameters, err)
	}
	ctx, cancel := context.WithTimeout(c.server.ctx, c.config.HeaderTimeout)
	defer cancel()
	channel, err := tune.Channel{}, error(tune.Refuse(404, "expected a channel as in rtsp://HOST/rtp/GROUP:PORT, found %s", tune.Quote(m.place.path)))
	if c.server.tuner.Stream(m.place.path) {
		channel, err = c.server.tuner.Channel(ctx, m.place.path)
	}
	return m.found(channel, err)
}

// settle chooses the first transport that can be had.
func (c *conn) settle(offers []transport) (t transport, parameters string, err error) {
	for _, t := range offers {
		switch t.way {
		case interleaved:
			if t.first < 0 {
				t.first, t.second = 0, 1
			}
			return t, "unicast;interleaved=" + pair(t.first, t.second), nil
		case unicast:
			if !c.addr.IsValid() {
				continue // there are no ports behind this socket
			}
			p, err := c.server.openPorts()
			if err != nil {
				c.config.Logger.Warn("no UDP ports for RTSP clients", "err", err)
				continue
			}
			return t, "unicast;client_port=" + pair(t.first, t.second) + ";server_port=" + pair(p.port(), p.port()+1), nil
		}
	}
	return t, "", tune.Refuse(461, "expected a Transport that is served here: RTP/AVP/TCP;interleaved or RTP/AVP;unicast;client_port")
}

// close ends the connection, and a session with datagrams.
func (c *conn) close() {
	if r := c.udp; r != nil {
		r.ports.remove(r)
		if r.feed != nil {
			r.feed.Close("the client says so, or has gone")
		}
	}
	c.nc.Close()
}

// steer lets the stream of a session with datagrams follow its requests.
func (c *conn) steer(a action) action {
	r := c.udp
	switch a.kind {
	case pause:
		r.feed.Pause()
		a.kind = send
	case resume:
		r.feed.Resume()
		if a.kind = send; !c.begin() {
			a.kind = end
		}
	}
	return a
}

// begin waits for the first packet, and answers PLAY; false when there is none.
func (c *conn) begin() bool {
	r := c.udp
	select {
	case b := <-r.begun:
		return c.begun(b)
	case <-r.ended:
	}
	select {
	case b := <-r.begun: // both: it began, and was over at once
		return c.begun(b)
	default:
		return false
	}
}

// begun answers PLAY.
func (c *conn) begun(b beginning) bool {
	c.udp.feed = b.feed
	return c.write(c.machine.started(uint16(b.first), b.at))
}

// write sends an answer.
func (c *conn) write(b []byte) bool {
	c.nc.SetWriteDeadline(time.Now().Add(c.config.HeaderTimeout))
	_, err := c.nc.Write(b)
	return err == nil
}

// read waits for what the client says next: not long for the first request and
// for the rest of one, and as long as a session lasts between two.
func (c *conn) read() bool {
	m := &c.machine
	patience := sessionTimeout
	if m.state == idle && m.channel.Open == nil || len(m.buf) > 0 {
		patience = c.config.HeaderTimeout
	}
	now := time.Now()
	deadline := now.Add(patience)
	if c.udp != nil && c.udp.feed != nil {
		deadline = now.Add(reportInterval)
	}
	c.nc.SetReadDeadline(deadline)
	var b [2048]byte
	if c.udp != nil && c.udp.over() { // not before the deadline is set, which done takes back
		return c.watch(now)
	}
	n, err := c.nc.Read(b[:])
	m.feed(b[:n])
	if n > 0 {
		c.lastWord = time.Now()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && c.udp != nil && c.udp.feed != nil {
		return c.watch(time.Now())
	}
	return err == nil
}

// watch does for a session with datagrams what time asks for; false when it is
// over.
func (c *conn) watch(now time.Time) bool {
	r := c.udp
	if r.over() {
		_, _ = r.ports.reports.WriteToUDPAddrPort(goodbye(r.ssrc), r.to)
		return false
	}
	if r.silent(now) && now.Sub(c.lastWord) > sessionTimeout {
		c.config.Logger.Info("no word from the client", "client", c.client, "channel", c.machine.channel.Key, "timeout", sessionTimeout)
		return false
	}
	if c.machine.state == playing && now.Sub(c.reported) >= reportInterval {
		c.reported = now
		r.report(now)
	}
	return true
}

// start plays. Without an error an interleaved connection is the engine's from
// then on.
func (c *conn) start() error {
	m, requested := &c.machine, time.Now()
	leave, ok := c.config.Seat(c.addr, m.agent)
	if !ok {
		return tune.Refuse(453, "too many viewers: all places are taken")
	}
	c.server.release(c) // he has a place: a channel that starts slowly may keep many of one address waiting
	lease, err := c.open()
	if err != nil {
		leave()
		return err
	}
	viewer := fanout.Viewer{Client: c.client, URL: m.place.base, Agent: m.agent, Requested: requested}
	if m.chosen.way == interleaved {
		viewer.Conn = c.nc
		viewer.Framing = framing{ssrc: m.ssrc, interleaved: true, channel: uint8(m.chosen.first)}
		viewer.Control = &player{conn: c}
		viewer.Done = leave
	} else {
		if err := c.receive(&viewer, leave); err != nil {
			lease.Close()
			leave()
			return err
		}
	}
	if err := lease.Attach(viewer); err != nil {
		c.config.Logger.Debug("viewer lost at the start", "client", c.client, "channel", m.channel.Key, "err", err)
		if r := c.udp; r != nil {
			r.ports.remove(r)
			c.udp = nil
			return err
		}
	}
	return nil
}

// receive makes the viewer one who is sent datagrams.
func (c *conn) receive(viewer *fanout.Viewer, leave func()) error {
	m := &c.machine
	p, err := c.server.openPorts()
	if err != nil {
		return err
	}
	r := &receiver{
		ports: p, to: netip.AddrPortFrom(c.addr, uint16(m.chosen.second)), ssrc: m.ssrc, begun: make(chan beginning, 2),
		ended: make(chan struct{}), nudge: func() { c.nc.SetReadDeadline(time.Unix(1, 0)) },
	}
	r.heard.Store(time.Now().Unix())
	if !p.add(r) {
		return tune.Refuse(453, "port %d of %v is in use by another session", m.chosen.second, c.addr)
	}
	from := netip.AddrPortFrom(addressOf(c.nc.LocalAddr()), uint16(p.port()))
	if viewer.Conn, err = dialShared(from, netip.AddrPortFrom(c.addr, uint16(m.chosen.first))); err != nil {
		p.remove(r)
		return err
	}
	c.udp = r
	viewer.Framing, viewer.Control = framing{ssrc: m.ssrc}, r
	viewer.Done = func() {
		leave()
		r.done()
	}
	return nil
}

// errGone is a client who went away before his stream began.
type errGone struct{ error }

func lost(err error) bool { _, ok := err.(errGone); return ok }

// open opens the channel, and hears what the client says meanwhile: that he has
// gone, if nothing else.
func (c *conn) open() (*fanout.Lease, error) {
	ctx, cancel := context.WithCancelCause(c.server.ctx)
	defer cancel(nil)
	c.nc.SetReadDeadline(time.Time{})
	heard := make(chan []byte, 1)
	stop := make(chan struct{})
	go func() {
		var all []byte
		var b [2048]byte
		for {
			n, err := c.nc.Read(b[:])
			all = append(all, b[:n]...)
			if err == nil && len(all) <= maxBuffer {
				continue
			}
			select {
			case <-stop:
			default:
				cancel(errGone{err})
			}
			heard <- all
			return
		}
	}()
	m := &c.machine
	lease, err := c.server.engine.Open(ctx, m.channel.Key, m.channel.Open)
	close(stop)
	c.nc.SetReadDeadline(time.Unix(1, 0))
	m.feed(<-heard)
	c.nc.SetReadDeadline(time.Time{})
	if err == nil {
		return lease, nil
	}
	if gone, ok := context.Cause(ctx).(errGone); ok {
		return nil, gone
	}
	if c.server.ctx.Err() != nil {
		return nil, errShuttingDown
	}
	c.config.Logger.Warn("stream does not start", "client", c.client, "channel", m.channel.Key, "err", err)
	return nil, err
}
