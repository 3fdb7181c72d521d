package fanout

import (
	"time"

	"zapcast/mpegts"
)

// stallMax is how long a viewer's socket may take nothing at all while there is
// something to send. It is behind the kernel's own time-out for a peer that no
// longer answers (TCP_USER_TIMEOUT), which unix sockets do not have.
const stallMax = 55 * time.Second

// packetBytes is the size of a TS packet.
const packetBytes = 188

// A viewer is a cursor into his channel's chain, and the socket that it feeds.
type viewer struct {
	id   int64
	ch   *channel
	conn conn
	sock *fdConn // of conn; nil where it has no descriptor
	fd   int32   // the descriptor, or -1
	info Viewer

	view    *view   // the frames that he is sent; nil: the stream as it is
	control Control // nil: nobody listens to him

	prefix   []byte // to be sent before anything else: header, tables
	pos      int64  // stream position of the next byte, or of the next frame
	cut      int    // bytes of that frame that were sent
	entering bool   // lead and what is left of the frame at pos come first, in frames of his own
	lead     []byte
	announce bool  // and before those, what control says
	number   int64 // of his next frame
	packets  bool  // he takes datagrams, a frame each
	credit   int   // how many bytes of them he may be sent
	paced    time.Time
	paused   bool      // he is sent nothing of the stream
	ending   string    // why he is closed once the prefix is sent; empty: he is not
	parked   bool      // waits for the next random-access point; pos means nothing
	since    time.Time // when that began
	blocked  bool      // the socket is full
	queued   bool      // in the loop's queue
	gone     bool

	start     string        // "history", "cold", "live": where he began
	began     time.Time     // when he was attached
	headStart time.Duration // how old the stream was where he began: no lag of his
	headBytes int64         // the same in bytes
	progress  time.Time     // when the socket last took something or became full
	target    int64         // position of his first random-access point; -1 while unknown

	bytes, skips, skipped        int64
	frames, carried              int64         // frames sent, and bytes of TS in them
	firstByte, firstRandomAccess time.Duration // after the request; 0: not yet
	warned                       time.Time     // last log line about his lag
}

// caughtUp reports whether v has been sent all there is.
func (v *viewer) caughtUp() bool {
	if len(v.prefix) > 0 || v.parked || v.paused || v.entering {
		return false
	}
	if v.view != nil {
		return v.pos+int64(v.view.payload) > v.ch.chain.end
	}
	return v.pos == v.ch.chain.end
}

// took notes that n bytes from pos on were sent.
func (v *viewer) took(n int, now time.Time) {
	if n == 0 {
		return
	}
	v.pos += int64(n)
	v.bytes += int64(n)
	v.progress = now
	if v.firstByte == 0 {
		v.firstByte = time.Since(v.info.Requested)
		v.zapped(false, v.firstByte)
	}
	if v.firstRandomAccess == 0 && v.target >= 0 && v.pos > v.target {
		v.firstRandomAccess = time.Since(v.info.Requested)
		v.zapped(true, v.firstRandomAccess)
	}
}

// pump sends v what he has not got, for one turn.
func (l *loop) pump(v *viewer) {
	c := v.ch
	left := l.allowance(v)
	for left > 0 && !v.blocked {
		var n int
		var err error
		if v.entering && !v.parked && !v.paused && (len(v.prefix) == 0 || !v.packets) {
			v.begin()
		}
		if len(v.prefix) > 0 {
			n, err = v.conn.write(v.prefix)
			if v.prefix = v.prefix[n:]; len(v.prefix) == 0 {
				v.prefix = nil
			}
		} else if v.ending != "" {
			l.drop(v, v.ending)
			return
		} else {
			if v.parked || v.paused || v.entering {
				break
			}
			if v.view != nil {
				n, err = v.view.send(v, left, l.now)
			} else if b := c.chain.at(v.pos); b != nil {
				n, err = b.send(v.conn, v.pos, left)
				v.took(n, l.now)
			}
			if n == 0 && err == nil && len(v.prefix) == 0 {
				break
			}
		}
		left -= n
		if !l.sent(v, err) {
			return
		}
	}
	if v.packets {
		v.credit = left
	}
	switch {
	case v.caughtUp():
		v.headBytes, v.headStart = 0, 0
	case left <= 0 && !v.queued && !v.packets:
		v.queued = true
		l.queue = append(l.queue, v)
	}
}

// sent judges what a socket answered; false when the viewer is gone.
func (l *loop) sent(v *viewer, err error) bool {
	switch err {
	case nil:
	case errAgain:
		v.blocked = true
		v.progress = l.now
	default:
		l.drop(v, err.Error())
		return false
	}
	return true
}

// place puts a new viewer where he starts: at the newest random-access point
// that is held, else at the live end.
func (c *channel) place(v *viewer) {
	v.target = -1
	if c.private {
		c.put(v, nil, c.chain.start())
		v.start = "cold"
		return
	}
	if c.random && c.chain.holds(c.randomPos) {
		c.put(v, c.scan.AppendRandomAccessTables(nil), c.randomPos)
		v.target = c.randomPos
		v.start = "history"
		if v.info.Requested.Before(c.opened) {
			v.start = "cold"
		}
		v.startAhead()
		return
	}
	c.enterLive(v)
	v.start = "live"
}

// put lets v go on at pos, with the packets ts before it. False: he cannot, for
// the frames that would carry them have no numbers left.
func (c *channel) put(v *viewer, ts []byte, pos int64) bool {
	if v.view != nil {
		return v.enterFrames(ts, pos)
	}
	v.prefix = append(v.prefix, ts...)
	v.pos = pos
	return true
}

// finish moves the rest of the packet or frame that is under way to v into his
// prefix, so that something else may follow.
func (v *viewer) finish() {
	switch in := v.pos % packetBytes; {
	case v.view != nil:
		v.view.finish(v)
	case in != 0 && len(v.prefix) == 0: // a prefix ends at a packet's end
		v.prefix = v.ch.chain.read(nil, v.pos, int(packetBytes-in))
		v.pos += packetBytes - in
	}
}

// skip lets a viewer who lags too far go on at the newest random-access point,
// with tables before it. He is sent whole TS packets only.
func (c *channel) skip(v *viewer) {
	from := v.pos
	v.finish()
	c.reenter(v, from)
	v.skips++
	v.skipped += v.pos - from
	c.skips++
}

// reenter lets v go on at the newest random-access point if that is behind from,
// else at the next one.
func (c *channel) reenter(v *viewer, from int64) {
	switch {
	case c.random && c.randomPos > from && c.chain.holds(c.randomPos) && c.enter(v):
	case c.random || !c.enterLive(v):
		c.park(v)
	}
}

// enter puts a viewer who was sent something else before at the newest
// random-access point.
func (c *channel) enter(v *viewer) bool {
	ts := c.scan.AppendDiscontinuity(c.scan.AppendRandomAccessTables(nil))
	if !c.put(v, ts, c.randomPos) {
		return false
	}
	v.startAhead()
	return true
}

// enterLive puts him at the live end.
func (c *channel) enterLive(v *viewer) bool {
	pos := c.chain.end
	if v.view != nil {
		pos = v.view.next(pos)
	}
	if !c.put(v, c.scan.AppendTables(nil), pos) {
		return false
	}
	v.startAhead()
	return true
}

// park lets v wait for the next random-access point.
func (c *channel) park(v *viewer) {
	v.parked, v.since = true, c.loop.now
	c.parked++
	v.pos = c.chain.end
}

// unpark ends a viewer's wait for a random-access point: he is due.
func (c *channel) unpark(v *viewer) {
	v.parked = false
	c.parked--
	c.dirty = flushBytes
}

// wakeParked lets those go on at the live end who wait for a random-access point
// in vain: the stream needs none any more, or has brought none for too long.
func (c *channel) wakeParked() {
	l := c.loop
	for _, v := range c.viewers {
		if v.parked && (c.scan.Rule() == mpegts.AtOnce || l.now.Sub(v.since) >= l.cfg.StartWait) {
			c.unpark(v)
			if !c.enterLive(v) {
				c.park(v)
			}
		}
	}
}

// startAhead notes how far behind the live end v is put.
func (v *viewer) startAhead() {
	v.headBytes, v.headStart = 0, 0
	v.headBytes, v.headStart = v.lag(v.ch.loop.now)
}

// lag is how far behind v is: in bytes that he keeps from being freed, and in
// time that he has lost since he began.
func (v *viewer) lag(now time.Time) (bytes int64, d time.Duration) {
	if v.parked || v.paused {
		return 0, 0
	}
	chain, b := &v.ch.chain, (*batch)(nil)
	if v.shares() {
		chain = &v.view.chain
		b = chain.at(v.view.place(v.pos) + int64(v.cut))
	} else {
		b = chain.at(v.pos)
	}
	if b == nil {
		return 0, 0
	}
	return chain.end - b.start, max(now.Sub(b.began)-v.headStart, 0)
}

// stalled reports whether v's socket has taken nothing for too long.
func (v *viewer) stalled(now time.Time) bool { return v.blocked && now.Sub(v.progress) > stallMax }

// judge applies the policy for slow viewers to one whose socket is full.
func (c *channel) judge(v *viewer) {
	l := c.loop
	if c.lossless() {
		return
	}
	bytes, behind := v.lag(l.now)
	if bytes <= l.cfg.LagBytes+v.headBytes && behind <= l.cfg.Lag {
		return
	}
	c.slow(v, bytes, behind)
}

// slow skips or disconnects a viewer who is bytes and behind behind.
func (c *channel) slow(v *viewer, bytes int64, behind time.Duration) {
	l := c.loop
	if l.cfg.Slow == Disconnect {
		l.drop(v, "too slow")
		return
	}
	c.skip(v)
	if l.now.Sub(v.warned) > warnInterval {
		v.warned = l.now
		l.log.Warn("viewer too slow: he skips to the next random-access point", "client", v.info.Client, "channel", c.key,
			"lag_bytes", bytes, "lag", behind.Round(time.Millisecond), "skips", v.skips, "skipped_bytes", v.skipped)
	}
	l.pump(v)
}

// warnInterval is the time between two log lines about the same viewer's lag.
const warnInterval = 30 * time.Second
