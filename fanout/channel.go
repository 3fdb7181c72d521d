package fanout

import (
	"errors"
	"time"

	"zapcast/ingest"
	"zapcast/mpegts"
)

// A waiter is a lease that waits until its channel can start a viewer.
type waiter struct {
	ready    chan error // one answer; room for it is there
	since    time.Time
	reserved bool          // it was told to start, and has not yet
	source   ingest.Status // set before the answer
	cold     bool          // the same: the channel was opened for it
}

// A channel is one source and all who watch it.
//
//	opening ─► starting ─► live ⇄ silent ─► closed
//	                         └► lingering (nobody watches) ─► closed
//
// State is derived from what is there (see state); only closed is kept.
type channel struct {
	loop   *loop
	key    string
	source ingest.Source // nil while it is being opened
	opened time.Time
	closed bool
	more   bool // the source has more than it was allowed to bring

	session ingest.Session // the source, where it is one
	private bool           // one viewer's own
	paced   bool           // and read at his pace
	over    error          // why the session has ended
	broken  error          // why the stream cannot be kept; the channel ends with this turn

	scan     mpegts.Scanner
	chain    chain
	clock    clock
	viewers  []*viewer
	views    []*view // of viewers who take frames
	framed   int     // those viewers
	packets  int     // those of them who take datagrams
	waiters  []*waiter
	reserved int // leases told to start, not attached yet
	parked   int // viewers who wait for a random-access point

	known     bool // the scanner knows the tables, and has since c.rescan
	random    bool // there has been a random-access point
	randomPos int64
	randomAt  time.Time
	history   bool  // keep the stream from the last random-access point on
	grant     int64 // bytes of history that this channel may count on

	firstData, lastData time.Time
	idleSince           time.Time // zero while somebody is there
	rejoined            bool      // asked the network again in this silence
	barren              bool      // somebody waited for data in vain
	dirty               int       // bytes that shared viewers have not been sent
	flushed             time.Time

	bytes, skips int64
	rate         int64 // bit/s
	rateAt       time.Time
	rateBytes    int64
}

func newChannel(l *loop, key string) *channel {
	c := &channel{loop: l, key: key, history: true, rateAt: l.now}
	c.chain.store = &l.store
	return c
}

var _ ingest.Sink = (*channel)(nil)

// Append takes what the source brings: it is looked through for tables and
// random-access points, sent at once to a viewer who is alone and up to date,
// and kept as far as anybody needs it.
func (c *channel) Append(ts [][]byte) {
	if c.broken != nil {
		return
	}
	n := 0
	for _, p := range ts {
		c.scan.Scan(p, c.chain.end+int64(n))
		n += len(p)
	}
	if n == 0 {
		return
	}
	now := c.loop.now
	if c.firstData.IsZero() {
		c.firstData = now
	}
	c.lastData = now
	c.bytes += int64(n)

	if len(c.viewers) == 1 && c.framed == 0 {
		c.appendAlone(c.viewers[0], ts, n)
	} else {
		if len(c.viewers) > 0 || c.keeps() {
			c.keep(&c.chain, ts, n, c.bare() > 1)
		} else {
			c.chain.pass(n)
		}
		c.dirty += n
	}
	if c.clock.due(now) {
		c.clock.mark(c.chain.end, now)
	}
	if !c.known && c.scan.Rule() != mpegts.Unknown {
		c.known = true
		c.rescan()
	}
	if pos, ok := c.scan.RandomAccess(); ok && (!c.random || pos != c.randomPos) {
		c.randomAccess(pos)
	}
}

var errNoMemory = errors.New("the system has no memory left for this channel")

// keep appends ts, n bytes in all, to chain, which is c's or a view's.
func (c *channel) keep(chain *chain, ts [][]byte, n int, shared bool) {
	if !chain.append(ts, n, shared, c.loop.now) {
		c.broken = errNoMemory
		c.loop.log.Error("channel ends: no memory for its stream", "channel", c.key, "held", c.loop.store.bytes)
	}
}

// rescan looks through what was kept while the tables were unknown: a stream
// whose first random-access point came before its first tables starts there, and
// not one point later.
func (c *channel) rescan() {
	const most = 256 * packetBytes
	pos := (c.chain.start() + packetBytes - 1) / packetBytes * packetBytes
	for pos < c.chain.end {
		ts := c.chain.read(nil, pos, most)
		c.scan.Scan(ts, pos)
		pos += int64(len(ts))
	}
}

// appendAlone is Append with one viewer: nothing is copied if he takes it all
// and nobody else will want it.
func (c *channel) appendAlone(v *viewer, ts [][]byte, n int) {
	l := c.loop
	var sent int
	var err error
	direct := v.caughtUp() && !v.blocked
	if direct {
		sent, err = v.conn.writev(ts)
	}
	if sent < n || c.keeps() {
		c.keep(&c.chain, ts, n, false)
	} else {
		c.chain.pass(n)
	}
	switch {
	case direct:
		v.took(sent, l.now)
		l.sent(v, err)
	case !v.blocked && !v.queued:
		c.dirty += n
	}
}

// keeps reports whether the stream must be kept for more than the viewers who
// are up to date.
func (c *channel) keeps() bool {
	return c.starting() || c.history && c.scan.Rule() != mpegts.AtOnce
}

// bare is the number of viewers who are sent the stream as it is.
func (c *channel) bare() int { return len(c.viewers) - c.framed }

// starting reports whether somebody waits for a place to start.
func (c *channel) starting() bool { return len(c.waiters) > 0 || c.reserved > 0 || c.parked > 0 }

// randomAccess notes a new random-access point at pos.
func (c *channel) randomAccess(pos int64) {
	span := int64(0)
	if c.random {
		span = pos - c.randomPos
	}
	c.random, c.randomPos, c.randomAt = true, pos, c.loop.now
	if !c.private {
		c.loop.grantHistory(c, span)
	}
	for _, v := range c.viewers {
		if v.parked && c.chain.holds(pos) {
			c.unpark(v)
			if !c.enter(v) {
				c.park(v)
			}
		}
		if v.target < 0 && v.pos <= pos {
			v.target = pos
		}
	}
}

// service does what is due for a channel after its source was read.
func (c *channel) service() {
	l := c.loop
	if c.source == nil {
		return
	}
	flush := c.broken == nil && c.dirty > 0 && (c.dirty >= flushBytes || l.now.Sub(c.flushed) >= l.cfg.Flush)
	if flush {
		c.flush()
	}
	if c.broken != nil {
		c.close(c.broken)
		return
	}
	if c.packets > 0 {
		c.pumpPackets()
	}
	if len(c.waiters) > 0 {
		c.wakeWaiters()
	}
	if c.parked > 0 {
		c.wakeParked()
	}
	c.watchEnd()
	if c.closed {
		return
	}
	if flush || len(c.viewers) < 2 {
		c.trim()
	}
	c.measure()
	c.watchSilence()
	if !c.closed {
		c.watchIdle()
	}
}

// flush sends every viewer what he has not got.
func (c *channel) flush() {
	c.dirty, c.flushed = 0, c.loop.now
	if c.framed > 0 {
		c.clock.mark(c.chain.end, c.lastData)
		for _, w := range c.views {
			w.share()
		}
	}
	if c.broken != nil {
		return
	}
	for i := len(c.viewers) - 1; i >= 0; i-- {
		if v := c.viewers[i]; !v.blocked && !v.queued && !v.packets {
			c.loop.pump(v)
		}
	}
}

// measure works out the bit rate, once a second, and looks for viewers who stand
// still, which they may also do while the source does.
func (c *channel) measure() {
	l := c.loop
	d := l.now.Sub(c.rateAt)
	if d >= time.Second {
		c.rate = int64(float64(c.bytes-c.rateBytes) * 8 / d.Seconds())
		c.rateAt, c.rateBytes = l.now, c.bytes
		for i := len(c.viewers) - 1; i >= 0; i-- {
			v := c.viewers[i]
			if v.stalled(l.now) {
				l.drop(v, "his connection took nothing for "+stallMax.String())
			} else if v.control != nil {
				v.control.Tick(l.now, v.frames, v.carried)
			}
		}
	}
}

// trim deals with viewers who hold too much, and frees what nobody needs.
func (c *channel) trim() {
	if len(c.chain.batches) == 0 {
		return
	}
	for i := len(c.viewers) - 1; i >= 0; i-- {
		if v := c.viewers[i]; v.blocked {
			c.judge(v)
		}
	}
	if c.history && c.random && c.chain.end-c.randomPos > c.loop.cfg.ChannelHistory {
		c.loop.denyHistory(c)
	}
	for _, w := range c.views {
		w.trim()
	}
	c.chain.trim(c.floor(), c.bare() > 1)
}

// floor is the position from which on the stream is still needed.
func (c *channel) floor() int64 {
	keep := c.chain.end
	if c.private && c.starting() {
		return c.chain.start()
	}
	if c.keeps() {
		if c.random && c.chain.holds(c.randomPos) {
			keep = c.randomPos
		}
		if pos, ok := c.scan.Candidate(); ok {
			keep = min(keep, pos)
		}
		if !c.known && c.chain.bytes() <= c.loop.cfg.ChannelHistory {
			keep = c.chain.start()
		}
	}
	for _, v := range c.viewers {
		if !v.parked && (!v.paused || c.private) {
			keep = min(keep, v.needs())
		}
	}
	return keep
}
