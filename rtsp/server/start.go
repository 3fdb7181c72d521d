package server

import (
	"context"
	"time"

	"zapcast/fanout"
	"zapcast/tune"
)

// start plays. Where there is no stream afterwards, and no error, the connection
// is the engine's.
func (c *conn) start() (first beginning, err error) {
	switch c.machine.chosen.way {
	case unicast:
		return c.startUnicast()
	case multicast:
		if first, err = c.relay.start(c.lease); err == nil {
			c.stream = relayed{c.relay, c.config.sessionTimeout}
		}
		return first, err
	}
	m := &c.machine
	lease, viewer, err := c.lease()
	if err != nil {
		return first, err
	}
	viewer.Conn, viewer.Control = c.nc, &player{conn: c}
	viewer.Framing = framing{ssrc: m.ssrc, interleaved: true, channel: uint8(m.chosen.first)}
	if err := lease.Attach(viewer); err != nil {
		c.config.Logger.Debug("viewer lost at the start", "client", c.client, "channel", m.channel.Key, "err", err)
	}
	return first, nil
}

// lease opens the channel for a viewer, who lacks no more than the ways in and
// out.
func (c *conn) lease() (*fanout.Lease, fanout.Viewer, error) {
	m := &c.machine
	viewer := fanout.Viewer{Client: c.client, URL: m.place.base, Agent: m.agent, Requested: time.Now()}
	leave, ok := c.config.Seat(c.addr, m.agent)
	if !ok {
		return nil, viewer, tune.Refuse(453, "too many viewers: all places are taken")
	}
	viewer.Done = leave
	c.server.release(c) // he has a place: a channel that starts slowly may keep many of one address waiting
	lease, err := c.open()
	if err != nil {
		leave()
	}
	return lease, viewer, err
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
