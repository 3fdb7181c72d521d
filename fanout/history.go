package fanout

// A loop has its share of the history budget. A channel whose random-access
// points are span bytes apart is granted a little more than that, first come,
// first served: were the room fought over anew at each point, no channel would
// ever have a whole history. A channel that lingers loses its grant to one that
// is watched.

func (l *loop) budget() int64 { return max(l.cfg.History, 0) / int64(l.cfg.Loops) }

// grantHistory decides whether c keeps history from its newest random-access
// point on. A span of zero is not known yet: c may try.
func (l *loop) grantHistory(c *channel, span int64) {
	l.granted -= c.grant
	c.grant = 0
	want := span + span/4
	c.history = span <= l.cfg.ChannelHistory
	if !c.history {
		return
	}
	for l.granted+want > l.budget() {
		idle := l.idlest()
		if idle == nil || idle == c {
			c.history = false
			return
		}
		idle.close(nil)
	}
	c.grant = want
	l.granted += want
}

// denyHistory takes c's history away until its next random-access point.
func (l *loop) denyHistory(c *channel) {
	l.granted -= c.grant
	c.grant = 0
	c.history = false
}

// idlest is the channel that has lingered longest, or nil.
func (l *loop) idlest() (idle *channel) {
	for _, c := range l.channels {
		if !c.idleSince.IsZero() && (idle == nil || c.idleSince.Before(idle.idleSince)) {
			idle = c
		}
	}
	return idle
}

// makeRoom brings what is held back under the budget. It gives up, in this
// order: lingering channels; history that nobody was promised; the largest
// history; and what the viewer who lags most keeps from being freed.
func (l *loop) makeRoom() {
	for range 2 * len(l.channels) {
		if l.store.bytes <= l.budget() {
			return
		}
		if idle := l.idlest(); idle != nil {
			idle.close(nil)
			continue
		}
		if c := l.leastEntitled(); c != nil {
			l.denyHistory(c)
			c.trim()
			continue
		}
		if !l.skipLaggard() {
			return
		}
	}
}

// leastEntitled is the channel whose history goes first, or nil.
func (l *loop) leastEntitled() (least *channel) {
	for _, c := range l.channels {
		switch {
		case !c.history:
		case least == nil, c.grant == 0 && least.grant != 0:
			least = c
		case (c.grant == 0) == (least.grant == 0) && c.chain.bytes() > least.chain.bytes():
			least = c
		}
	}
	return least
}

// skipLaggard deals with the viewer who keeps most from being freed.
func (l *loop) skipLaggard() bool {
	var v *viewer
	var held int64
	for _, c := range l.channels {
		if c.lossless() {
			continue
		}
		for _, o := range c.viewers {
			if n, _ := o.lag(l.now); o.blocked && n > held {
				v, held = o, n
			}
		}
	}
	if held <= fileBytes { // it would free next to nothing
		return false
	}
	c := v.ch
	_, behind := v.lag(l.now)
	c.slow(v, held, behind)
	c.trim()
	return true
}
