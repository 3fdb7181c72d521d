package fanout

import (
	"fmt"
	"slices"
	"time"

	"zapcast/mpegts"
)

// startable reports whether a viewer who has waited since then can start.
func (c *channel) startable(since time.Time) bool {
	l := c.loop
	if c.lastData.IsZero() || l.now.Sub(c.lastData) > l.cfg.Silence {
		return false
	}
	if c.private {
		return true // everything since is held
	}
	switch c.scan.Rule() {
	case mpegts.AtOnce:
		return true
	case mpegts.AtRandomAccess:
		if c.random && c.chain.holds(c.randomPos) {
			return true
		}
	}
	if c.firstData.After(since) {
		since = c.firstData
	}
	return l.now.Sub(since) >= l.cfg.StartWait
}

// wakeWaiters answers those who can start, or have waited in vain.
func (c *channel) wakeWaiters() {
	l := c.loop
	c.waiters = slices.DeleteFunc(c.waiters, func(w *waiter) bool {
		last := c.lastData
		if w.since.After(last) {
			last = w.since
		}
		switch {
		case c.source == nil:
			return false
		case c.startable(w.since):
			w.source = c.source.Status()
			w.cold = !w.since.After(c.opened)
			w.reserved = true
			c.reserved++
			w.ready <- nil
		case l.now.Sub(last) > l.cfg.Silence:
			c.barren = true
			w.ready <- c.silent()
		default:
			return false
		}
		return true
	})
}

// silent says why nothing can be shown.
func (c *channel) silent() error {
	return fmt.Errorf("no stream from %s within %v: %s", c.source.Status().Source, c.loop.cfg.Silence, c.source.Seen())
}

// watchSilence asks the network again when half the time that a source may be
// silent is over, and ends the channel when all of it is. A channel that was
// given up before anything came is not held silent: it lingers as others do, so
// that somebody who zaps on faster than the network answers does not cost it a
// leave each time.
func (c *channel) watchSilence() {
	l := c.loop
	if c.over != nil {
		return
	}
	last := c.lastData
	if last.IsZero() {
		last = c.opened
		switch {
		case len(c.waiters) > 0:
			if since := c.waiters[0].since; since.After(last) {
				last = since
			}
		case !c.barren:
			return
		}
	}
	quiet := l.now.Sub(last)
	switch {
	case quiet > l.cfg.Silence:
		// Who was told to start is attached first: he has a header to come.
		if c.reserved == 0 && (len(c.viewers) > 0 || len(c.waiters) == 0) {
			c.close(c.silent())
		}
	case quiet > l.cfg.Silence/2:
		if !c.rejoined {
			c.rejoined = true
			l.log.Info("no data: asking the network again", "channel", c.key, "quiet", quiet.Round(time.Millisecond), "seen", c.source.Seen())
			c.source.Rejoin()
		}
	default:
		c.rejoined = false
	}
}

// watchIdle closes a channel that nobody has watched for a while.
func (c *channel) watchIdle() {
	l := c.loop
	if len(c.viewers) > 0 || c.starting() {
		c.idleSince = time.Time{}
		return
	}
	if c.idleSince.IsZero() {
		c.idleSince = l.now
	}
	if c.private || l.now.Sub(c.idleSince) >= l.cfg.Linger {
		c.close(nil)
	}
}

// patience is how long the loop may wait for this channel's sake.
func (c *channel) patience() time.Duration {
	if c.source == nil {
		return tickMax
	}
	d := tickMax
	if c.starting() {
		d = tickStart
		last := c.lastData
		if last.IsZero() {
			last = c.opened
		}
		if c.loop.now.Sub(last) > time.Second {
			d = tickDead
		}
	}
	if c.packets > 0 {
		d = min(d, tickPackets)
	}
	if i := c.source.Interval(); i > 0 {
		d = min(d, i)
	}
	return d
}

// close ends the channel; err says why, to viewers and to those who wait. It is
// nil where nobody is left to be told.
func (c *channel) close(err error) {
	if c.closed {
		return
	}
	l := c.loop
	c.closed = true
	reason := "nobody watches"
	if err != nil {
		reason = err.Error()
	}
	for len(c.viewers) > 0 {
		l.drop(c.viewers[len(c.viewers)-1], reason)
	}
	for _, w := range c.waiters {
		w.ready <- err
	}
	c.waiters = nil
	c.chain.drop(len(c.chain.batches))
	l.granted -= c.grant
	c.grant = 0
	l.forget(c)
	l.channels = slices.DeleteFunc(l.channels, func(o *channel) bool { return o == c })
	if c.source == nil {
		return
	}
	last := c.status()
	l.past.channel(&last)
	s := last.Source
	l.log.Info("channel closed", "channel", c.key, "reason", reason, "bytes", s.Bytes, "packets", s.Packets, "lost", s.Lost,
		"reordered", s.Reordered, "duplicates", s.Duplicates, "foreign", s.Foreign, "overflow", s.Overflow)
	l.closeSource(c.source)
}
