package fanout

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"zapcast/ingest"
)

const (
	// tickMax is the pause between two rounds of reading where the receive
	// buffers allow it: a picture's time. 16 ms cost 12 to 18 % more with eight
	// channels, or eight viewers of one.
	tickMax = 40 * time.Millisecond
	tickMin = time.Millisecond
	// tickStart is the pause while a viewer waits for his first picture, and
	// tickDead the same once a second has brought nothing.
	tickStart = 2 * time.Millisecond
	tickDead  = 10 * time.Millisecond

	// turnDatagrams and turnBytes bound what one source may bring and what one
	// viewer may take before all others have had their turn.
	turnDatagrams = 256
	turnBytes     = 2 * flushBytes
	// flushBytes is how much a shared batch may gather before it is sent.
	flushBytes = 256 << 10
)

// A loop is one strand of the data plane: its channels, their viewers, and the
// memory they share. What is not behind mu belongs to the goroutine of run.
type loop struct {
	engine   *Engine
	log      *slog.Logger
	cfg      *Config // of this turn
	receiver ingest.Receiver
	poll     poller
	now      time.Time // of this turn

	store    store
	past     Totals // of channels and viewers that have gone
	granted  int64  // bytes of history promised to channels
	channels []*channel
	byKey    map[string]*channel
	byFD     map[int32]*viewer
	queue    []*viewer // viewers who were not done when their turn was over
	spare    []*viewer
	next     time.Time // next tick
	more     bool      // a source has more than it was allowed to bring
	closing  bool
	inbox    [4096]byte

	mu     sync.Mutex // guards posted and ended
	posted []func()
	ended  bool
	batch  []func()
}

func newLoop(e *Engine) (*loop, error) {
	cfg := e.cfg.Load()
	r, err := cfg.Receiver()
	if err != nil {
		return nil, err
	}
	p, err := newPoller(cfg.Plain)
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	l := &loop{engine: e, log: cfg.Logger, cfg: cfg, receiver: r, poll: p, byKey: map[string]*channel{}, byFD: map[int32]*viewer{}}
	l.store.share, l.store.log, l.store.alloc = haveMemfiles && !cfg.Plain, cfg.Logger, allocBlock
	return l, nil
}

// post has f run in the loop; false when the loop has ended.
func (l *loop) post(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.posted = append(l.posted, f)
	if len(l.posted) == 1 {
		l.poll.wake()
	}
	return true
}

// do is post and waits until f has run.
func (l *loop) do(f func()) bool {
	done := make(chan struct{})
	if !l.post(func() { f(); close(done) }) {
		return false
	}
	<-done
	return true
}

func (l *loop) runPosted() {
	l.mu.Lock()
	l.batch, l.posted = l.posted, l.batch[:0]
	l.mu.Unlock()
	for i, f := range l.batch {
		f()
		l.batch[i] = nil
	}
}

// run is the loop: wait, hear what happened, read, send.
func (l *loop) run() {
	for !l.closing {
		var deadline time.Time
		switch {
		case l.more || len(l.queue) > 0:
			deadline = l.now
		case len(l.channels) > 0:
			deadline = l.next
		}
		events := l.poll.wait(deadline)
		l.turn(time.Now(), events)
	}
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.runPosted() // nobody who waits is forgotten
	l.store.close()
	l.poll.close()
	_ = l.receiver.Close()
}

// turn does what is due at now.
func (l *loop) turn(now time.Time, events []event) {
	l.cfg = l.engine.cfg.Load()
	l.now = now
	l.runPosted()
	for _, ev := range events {
		if v := l.byFD[ev.fd]; v != nil {
			if ev.in && !v.gone {
				l.input(v)
			}
			l.socket(v, ev.out, ev.hup)
		}
	}
	queue := l.queue
	l.queue, l.spare = l.spare[:0], queue
	for _, v := range queue {
		v.queued = false
		if !v.gone {
			l.pump(v)
		}
	}
	due := !l.now.Before(l.next)
	if !due && !l.more {
		return
	}
	l.more = false
	l.receiver.Begin(l.now)
	for i := len(l.channels) - 1; i >= 0; i-- { // a channel may end in its turn
		if i >= len(l.channels) { // or end others
			continue
		}
		c := l.channels[i]
		if c.source != nil && (due || c.more) {
			c.more = c.drain()
			l.more = l.more || c.more
		}
	}
	l.receiver.End()
	for i := len(l.channels) - 1; i >= 0; i-- {
		if i < len(l.channels) {
			l.channels[i].service()
		}
	}
	l.makeRoom()
	if due {
		tick := l.tick()
		if l.next = l.next.Add(tick); !l.next.After(l.now) {
			l.next = l.now.Add(tick)
		}
	}
}

// tick is how long the loop may wait before it reads again.
func (l *loop) tick() time.Duration {
	d := tickMax
	for _, c := range l.channels {
		d = min(d, c.patience())
	}
	return max(d, tickMin)
}

// socket hears that a viewer's socket takes data again, or is gone.
func (l *loop) socket(v *viewer, out, hup bool) {
	if v.gone {
		return
	}
	if hup {
		l.drop(v, "closed by the viewer")
		return
	}
	if out && v.blocked {
		v.blocked = false
		l.pump(v)
	}
}

// inputMax is how much a viewer may send in one turn. All that he has to send are
// requests and reports.
const inputMax = 64 << 10

// input reads what a viewer sent.
func (l *loop) input(v *viewer) {
	if v.sock == nil || v.control == nil {
		return
	}
	for total := 0; !v.gone; {
		n := v.sock.read(l.inbox[:])
		if n <= 0 {
			return
		}
		if total += n; total > inputMax {
			l.drop(v, "he sends too much")
			return
		}
		v.control.Receive(l.inbox[:n])
	}
}

// connect makes v.conn from nc. It may be called from any goroutine.
func (l *loop) connect(v *viewer, nc net.Conn) error {
	size := 0 // of datagrams
	if _, v.packets = nc.(*net.UDPConn); v.packets {
		header, payload := v.info.Framing.Sizes()
		size = header + payload
	}
	if !l.engine.cfg.Load().Plain {
		ok, err := v.adopt(nc, &l.store.scratch, size)
		switch {
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			ok = false // nc keeps the descriptor that it has
		case err != nil:
			return err
		}
		if ok {
			v.fd = int32(v.sock.fd)
			return nil
		}
	}
	if v.packets {
		v.conn = &packetConn{nc: nc, size: size}
		return nil
	}
	wake := func(hup bool) { l.post(func() { l.socket(v, !hup, hup) }) }
	input := func(b []byte) {
		if v.info.Control != nil {
			l.do(func() {
				if !v.gone {
					v.control.Receive(b)
				}
			})
		}
	}
	v.conn = newGoConn(nc, wake, input)
	return nil
}

// adopt makes v.conn of nc's descriptor, where it has one: for datagrams of size
// bytes, or a stream if that is zero.
func (v *viewer) adopt(nc net.Conn, s *scratch, size int) (ok bool, err error) {
	if size > 0 {
		c, ok, err := newUDPConn(nc, s, size)
		if ok && err == nil {
			v.conn, v.sock = c, &c.fdConn
		}
		return ok, err
	}
	c, ok, err := newFDConn(nc, s)
	if ok && err == nil {
		v.conn, v.sock = c, c
	}
	return ok, err
}

// join makes w wait for the channel named key. Where there is none, it makes
// one, and the caller is the one who must open its source.
func (l *loop) join(key string, w *waiter) (c *channel, opener bool) {
	c = l.byKey[key]
	if c == nil {
		c = newChannel(l, key)
		l.byKey[key] = c
		l.channels = append(l.channels, c)
		opener = true
	}
	if l.closing {
		w.ready <- ErrClosed
		return c, false
	}
	w.since = l.now
	c.waiters = append(c.waiters, w)
	c.idleSince = time.Time{} // now, not in its turn: another's need of room may come before
	c.wakeWaiters()
	l.next = l.now // read soon
	return c, opener
}

// opened takes the source that an opener opened, or why it could not.
func (l *loop) opened(c *channel, src ingest.Source, err error) {
	if err != nil {
		c.close(err)
		return
	}
	if c.closed {
		l.closeSource(src)
		return
	}
	c.own(src)
	l.log.Info("channel opened", "channel", c.key, "source", src.Status().Source, "interface", src.Status().Interface)
	l.next = l.now
}

func (l *loop) closeSource(src ingest.Source) {
	l.engine.wg.Go(func() {
		if err := src.Close(); err != nil {
			l.log.Warn("source did not close cleanly", "err", err)
		}
	})
}

// leave takes back a lease that was not used.
func (l *loop) leave(c *channel, w *waiter) {
	if i := slices.Index(c.waiters, w); i >= 0 {
		c.waiters = slices.Delete(c.waiters, i, i+1)
	} else if w.reserved {
		w.reserved = false
		c.reserved--
	}
}

// attach starts a viewer on the lease of w.
func (l *loop) attach(c *channel, w *waiter, v *viewer) {
	l.leave(c, w)
	v.ch, v.began, v.progress = c, l.now, l.now
	if c.closed || l.closing {
		l.end(v)
		return
	}
	if v.sock != nil {
		if err := l.poll.add(v.sock, v.control != nil && !v.packets); err != nil {
			l.end(v)
			return
		}
		l.byFD[v.fd] = v
	}
	if g, ok := v.conn.(*goConn); ok {
		g.start(&l.engine.wg) // here, where the loop itself is still waited for
	}
	c.viewers = append(c.viewers, v)
	l.past.Viewers++
	if f := v.info.Framing; f != nil {
		c.frame(v, f)
	}
	c.place(v)
	l.log.Info("viewer started", "client", v.info.Client, "channel", c.key, "start", v.start)
	l.pump(v)
}

// drop ends a viewer.
func (l *loop) drop(v *viewer, reason string) {
	if v.gone {
		return
	}
	c := v.ch
	if i := slices.Index(c.viewers, v); i >= 0 {
		last := len(c.viewers) - 1
		c.viewers[i] = c.viewers[last]
		c.viewers[last] = nil
		c.viewers = c.viewers[:last]
	}
	if v.parked {
		c.parked--
	}
	if v.view != nil {
		c.unframe(v)
	}
	if v.fd >= 0 {
		delete(l.byFD, v.fd)
	}
	l.log.Info("viewer ended", "client", v.info.Client, "channel", c.key, "reason", reason, "bytes", v.bytes,
		"duration", l.now.Sub(v.began).Round(time.Millisecond), "skips", v.skips)
	l.past.Sent += v.bytes
	if v.info.Ended != nil {
		v.info.Ended(v.status())
	}
	l.end(v)
}

// end closes a viewer's connection.
func (l *loop) end(v *viewer) {
	v.gone = true
	v.conn.close()
	if v.info.Done != nil {
		v.info.Done()
	}
}

// shutdown ends everything; the loop stops after this turn.
func (l *loop) shutdown() {
	l.closing = true
	for len(l.channels) > 0 {
		l.channels[0].close(ErrClosed)
	}
}
