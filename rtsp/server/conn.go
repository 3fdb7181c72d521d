package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/netip"
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
			err, own := c.start()
			if err == nil {
				if own {
					return
				}
				break
			}
			if !c.write(m.failed(err).reply) {
				break
			}
			continue
		}
		c.nc.Close()
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
		if t.way == interleaved {
			if t.first < 0 {
				t.first, t.second = 0, 1
			}
			return t, "unicast;interleaved=" + pair(t.first, t.second), nil
		}
	}
	return t, "", tune.Refuse(461, "expected the transport RTP/AVP/TCP")
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
	c.nc.SetReadDeadline(time.Now().Add(patience))
	var b [2048]byte
	n, err := c.nc.Read(b[:])
	m.feed(b[:n])
	return err == nil
}

// start plays. Without an error the connection is over for this goroutine: own
// says that it is the engine's now, else it is to be closed.
func (c *conn) start() (err error, own bool) {
	m, requested := &c.machine, time.Now()
	leave, ok := c.config.Seat(c.addr, m.agent)
	if !ok {
		return tune.Refuse(453, "too many viewers: all places are taken"), false
	}
	lease, err := c.open()
	if err != nil {
		leave()
		if lost(err) {
			return nil, false
		}
		return err, false
	}
	p := &player{conn: c, leave: leave}
	viewer := fanout.Viewer{
		Conn: c.nc, Client: c.client, URL: m.place.base, Agent: m.agent, Requested: requested, Done: p.done,
		Framing: framing{ssrc: m.ssrc, interleaved: true, channel: uint8(m.chosen.first)}, Control: p,
	}
	c.server.release(c) // he has a place
	if err := lease.Attach(viewer); err != nil {
		c.config.Logger.Debug("viewer lost at the start", "client", c.client, "channel", m.channel.Key, "err", err)
	}
	return nil, true
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
