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
	fd   int32 // of conn, -1 where there is none
	info Viewer

	prefix  []byte    // to be sent before anything else: header, tables
	pos     int64     // stream position of the next byte
	parked  bool      // waits for the next random-access point; pos means nothing
	since   time.Time // when that began
	blocked bool      // the socket is full
	queued  bool      // in the loop's queue
	gone    bool

	start     string        // "history", "cold", "live": where he began
	began     time.Time     // when he was attached
	headStart time.Duration // how old the stream was where he began: no lag of his
	headBytes int64         // the same in bytes
	progress  time.Time     // when the socket last took something or became full
	target    int64         // position of his first random-access point; -1 while unknown

	bytes, skips, skipped        int64
	firstByte, firstRandomAccess time.Duration // after the request; 0: not yet
	warned                       time.Time     // last log line about his lag
}

// caughtUp reports whether v has been sent all there is.
func (v *viewer) caughtUp() bool {
	return len(v.prefix) == 0 && !v.parked && v.pos == v.ch.chain.end
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
	}
	if v.firstRandomAccess == 0 && v.target >= 0 && v.pos > v.target {
		v.firstRandomAccess = time.Since(v.info.Requested)
	}
}

// pump sends v what he has not got, for one turn.
func (l *loop) pump(v *viewer) {
	c := v.ch
	left := turnBytes
	for left > 0 && !v.blocked {
		var n int
		var err error
		if len(v.prefix) > 0 {
			n, err = v.conn.write(v.prefix)
			if v.prefix = v.prefix[n:]; len(v.prefix) == 0 {
				v.prefix = nil
			}
		} else {
			var b *batch
			if !v.parked {
				b = c.chain.at(v.pos)
			}
			if b == nil {
				break
			}
			n, err = b.send(v.conn, v.pos, left)
			v.took(n, l.now)
		}
		left -= n
		if !l.sent(v, err) {
			return
		}
	}
	switch {
	case v.caughtUp():
		v.headBytes, v.headStart = 0, 0
	case left <= 0 && !v.queued:
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
		v.pos, v.start = c.chain.start(), "cold"
		return
	}
	if c.random && c.chain.holds(c.randomPos) {
		v.prefix = c.scan.AppendRandomAccessTables(v.prefix)
		v.pos, v.target = c.randomPos, c.randomPos
		v.start = "history"
		if v.info.Requested.Before(c.opened) {
			v.start = "cold"
		}
		v.startAhead()
		return
	}
	v.prefix = c.scan.AppendTables(v.prefix)
	v.pos = c.chain.end
	v.start = "live"
}

// skip lets a viewer who lags too far go on at the newest random-access point,
// with tables before it. He is sent whole TS packets only.
func (c *channel) skip(v *viewer) {
	from := v.pos
	if in := v.pos % packetBytes; in != 0 && len(v.prefix) == 0 { // a prefix ends at a packet's end
		v.prefix = c.chain.read(nil, v.pos, int(packetBytes-in))
	}
	switch {
	case c.random && c.randomPos > from && c.chain.holds(c.randomPos):
		c.enter(v)
	case c.random:
		v.parked, v.since = true, c.loop.now
		c.parked++
		v.pos = c.chain.end
	default:
		c.enterLive(v)
	}
	v.skips++
	v.skipped += v.pos - from
	c.skips++
}

// enter puts a viewer who was sent something else before at the newest
// random-access point.
func (c *channel) enter(v *viewer) {
	v.prefix = c.scan.AppendRandomAccessTables(v.prefix)
	v.prefix = c.scan.AppendDiscontinuity(v.prefix)
	v.pos = c.randomPos
	v.startAhead()
}

// enterLive puts him at the live end.
func (c *channel) enterLive(v *viewer) {
	v.prefix = c.scan.AppendTables(v.prefix)
	v.pos = c.chain.end
	v.startAhead()
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
			c.enterLive(v)
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
	if v.parked {
		return 0, 0
	}
	b := v.ch.chain.at(v.pos)
	if b == nil {
		return 0, 0
	}
	return v.ch.chain.end - b.start, max(now.Sub(b.began)-v.headStart, 0)
}

// judge applies the policy for slow viewers to one whose socket is full.
func (c *channel) judge(v *viewer) {
	l := c.loop
	if l.now.Sub(v.progress) > stallMax {
		l.drop(v, "his connection took nothing for "+stallMax.String())
		return
	}
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
