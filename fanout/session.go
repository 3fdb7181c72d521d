package fanout

import (
	"errors"
	"io"

	"zapcast/ingest"
)

// Sources that are sessions differ from groups in three things: they end, they
// may be one viewer's own, and they may wait for him.
//
// A channel that is one viewer's own keeps no history, begins with the first
// byte that came, and is closed when he goes. Where its source waits, it is read
// no faster than he takes it: he is never moved on, however slow he is.

// pacedBytes is how much of the stream is read ahead of a viewer who is waited
// for: two ticks of 100 Mbit/s.
const pacedBytes = 1 << 20

var errEnded = errors.New("the stream has ended")

// own takes the source of a channel into use.
func (c *channel) own(src ingest.Source) {
	c.source, c.opened = src, c.loop.now
	c.session, _ = src.(ingest.Session)
	c.private = c.session != nil && c.session.Private()
	c.paced = c.private && c.session.Waits()
	c.history = !c.private
}

// drain reads the source, as far as its viewer lets it.
func (c *channel) drain() (more bool) {
	if c.over != nil {
		return false
	}
	most := turnDatagrams
	if c.paced && c.chain.bytes() >= c.ahead() {
		most = 0 // it only keeps its session alive
		if !c.lastData.IsZero() {
			c.lastData = c.loop.now // the silence is ours
		}
	}
	return c.source.Drain(c.loop.now, most, c)
}

// ahead is how far a channel that waits is read ahead: less where memory is short.
func (c *channel) ahead() int64 {
	if l := c.loop; l.store.bytes > l.budget() {
		return blockBytes
	}
	return pacedBytes
}

// lossless reports whether viewers are not to be moved on: what they have not
// been sent either waits, or is the last of the stream.
func (c *channel) lossless() bool { return c.paced || c.over != nil }

// watchEnd sees the source's session end. Viewers get what is left, then their
// connections end; whoever asks now gets a session of his own.
func (c *channel) watchEnd() {
	l := c.loop
	if c.over == nil {
		if c.session == nil || c.session.Ended() == nil {
			return
		}
		if c.over = c.session.Ended(); errors.Is(c.over, io.EOF) {
			c.over = errEnded
		}
		l.forget(c)
		for _, w := range c.waiters {
			w.ready <- c.over
		}
		c.waiters = nil
		for i := len(c.viewers) - 1; i >= 0; i-- {
			if v := c.viewers[i]; v.parked {
				l.drop(v, c.over.Error())
			}
		}
		l.log.Info("stream ended", "channel", c.key, "reason", c.over)
	}
	c.flush()
	for i := len(c.viewers) - 1; i >= 0; i-- {
		if v := c.viewers[i]; v.caughtUp() {
			l.drop(v, c.over.Error())
		}
	}
	if len(c.viewers) == 0 && c.reserved == 0 {
		c.close(c.over)
	}
}

// forget lets another channel have c's key.
func (l *loop) forget(c *channel) {
	if l.byKey[c.key] == c {
		delete(l.byKey, c.key)
	}
}
