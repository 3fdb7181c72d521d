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

	stream   stream    // where it does not travel here: while it plays
	relay    *relay    // and goes to a group
	lastWord time.Time // when the client last said something
	waiting  time.Time // since when the next request is waited for
	partial  time.Time // since when the rest of one is; zero: nothing of it is here
}

func newConn(s *Server, config *Config, nc net.Conn) *conn {
	c := &conn{server: s, config: config, nc: nc, addr: addressOf(nc.RemoteAddr()), client: nc.RemoteAddr().String(), waiting: time.Now()}
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
		if a.kind != wait {
			c.partial = time.Time{}
		}
		for a.kind == lookup || a.kind == settle {
			a = c.answer(a.kind)
		}
		if c.stream != nil && !c.steer(&a) {
			a = action{kind: end}
		}
		if len(a.reply) > 0 && !c.write(a.reply) {
			a.kind = end
		}
		if a.kind != wait {
			c.waiting = time.Now()
		}
		switch a.kind {
		case wait:
			if c.read() {
				continue
			}
		case send:
			continue
		case start:
			first, err := c.start()
			c.waiting = time.Now()
			switch {
			case err == nil && c.stream == nil:
				return // it is the engine's now
			case err == nil && c.write(m.begun(first)):
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
		channel, err = c.server.tuner.Channel(ctx, m.place.path, m.agent)
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
		case multicast:
			if !c.config.Groups.Prefix.IsValid() {
				continue
			}
			if err := c.joinRelay(); err != nil {
				return t, "", err
			}
			return t, c.relay.parameters(), nil
		}
	}
	return t, "", tune.Refuse(461, "expected a Transport that is served here: RTP/AVP/TCP;interleaved or RTP/AVP;unicast;client_port")
}

// joinRelay takes part in the relay of the channel, and leaves the one before.
func (c *conn) joinRelay() error {
	m := &c.machine
	r, err := c.server.relays.join(m.channel.Key, m.ssrc, c.config.Groups)
	if err != nil {
		return err
	}
	if c.relay != nil {
		c.relay.leave()
	}
	c.relay = r
	return nil
}

// close ends the connection, and a stream that does not travel in it.
func (c *conn) close() {
	if c.stream != nil {
		c.stream.close()
	}
	if c.relay != nil {
		c.relay.leave()
	}
	c.nc.Close()
}

// A stream is one whose packets do not travel in the connection of its requests.
type stream interface {
	pause()
	// resume returns when the stream goes on; false: it does not any more.
	resume() (beginning, bool)
	// over reports whether the engine has ended it.
	over() bool
	// watch does what time asks for. It is false when the client, whose last
	// request came at lastWord, is silent for too long.
	watch(now, lastWord time.Time) bool
	close()
}

// steer lets a stream follow the requests; false when it does not.
func (c *conn) steer(a *action) bool {
	switch a.kind {
	case pause:
		c.stream.pause()
		a.kind = send
	case resume:
		first, ok := c.stream.resume()
		if !ok {
			return false
		}
		*a = action{send, c.machine.begun(first)}
	}
	return true
}

// write sends an answer.
func (c *conn) write(b []byte) bool {
	c.nc.SetWriteDeadline(time.Now().Add(c.config.HeaderTimeout))
	_, err := c.nc.Write(b)
	return err == nil
}

// deadline is when the client has to have said what is waited for. His first
// request may not take long, nor the rest of any, however many pieces it comes
// in; between two there is as long as a session lasts.
func (c *conn) deadline(now time.Time) time.Time {
	m := &c.machine
	switch {
	case c.stream != nil:
		return now.Add(min(reportInterval, c.config.sessionTimeout))
	case len(m.buf) > 0:
		if c.partial.IsZero() {
			c.partial = now
		}
		return c.partial.Add(c.config.HeaderTimeout)
	case m.state == idle && m.channel.Open == nil:
		return c.waiting.Add(c.config.HeaderTimeout)
	}
	return c.waiting.Add(c.config.sessionTimeout)
}

// read waits for what the client says next.
func (c *conn) read() bool {
	m := &c.machine
	deadline := c.deadline(time.Now())
	c.nc.SetReadDeadline(deadline)
	if c.stream != nil && c.stream.over() { // not before the deadline is set, which is taken back when it is over
		return false
	}
	var b [2048]byte
	n, err := c.nc.Read(b[:])
	m.feed(b[:n])
	if n > 0 {
		c.lastWord = time.Now()
	}
	if c.stream == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err == nil
	}
	if c.stream.over() {
		return false
	}
	if !c.stream.watch(time.Now(), c.lastWord) {
		c.config.Logger.Info("no word from the client", "client", c.client, "channel", m.channel.Key, "timeout", c.config.sessionTimeout)
		return false
	}
	return true
}
