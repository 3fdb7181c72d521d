package fanout

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zapcast/ingest"
)

// ErrClosed is returned when the engine is shutting down.
var ErrClosed = errors.New("the server is shutting down")

// An Engine is a set of loops and the channels in them. Its methods may be
// called from any goroutine.
type Engine struct {
	cfg   atomic.Pointer[Config]
	loops []*loop
	seed  maphash.Seed
	ids   atomic.Int64
	wg    sync.WaitGroup // loops, sources being closed, and the portable path's connections
	stop  sync.Once
}

// New starts an engine.
func New(cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	e := &Engine{seed: maphash.MakeSeed()}
	e.cfg.Store(&cfg)
	for range cfg.Loops {
		l, err := newLoop(e)
		if err != nil {
			_ = e.Close()
			return nil, err
		}
		e.loops = append(e.loops, l)
		e.wg.Go(l.run)
	}
	return e, nil
}

// Reconfigure changes the settings of running channels and of those to come,
// except for the ones that are read at start only.
func (e *Engine) Reconfigure(cfg Config) {
	now := *e.cfg.Load()
	cfg.Loops, cfg.Plain, cfg.Receiver, cfg.Logger = now.Loops, now.Plain, now.Receiver, now.Logger
	cfg.Zapped = now.Zapped
	cfg = cfg.withDefaults()
	e.cfg.Store(&cfg)
}

// Close ends every viewer's connection, leaves every group and waits for both.
// It is safe to call twice.
func (e *Engine) Close() error {
	e.stop.Do(func() {
		for _, l := range e.loops {
			l.post(l.shutdown)
		}
	})
	e.wg.Wait()
	return nil
}

// An OpenFunc opens the source of a channel. It runs in the goroutine of the
// Open that needs it and may block.
type OpenFunc func(ingest.Receiver) (ingest.Source, error)

// Open returns a lease on the channel named key, which it opens with open where
// there is no such channel. It blocks until a viewer can start: there is a
// random-access point, or the stream needs none. It fails when ctx ends, when
// the source cannot be opened, or when nothing comes from it; the error is then
// a sentence for the viewer.
func (e *Engine) Open(ctx context.Context, key string, open OpenFunc) (*Lease, error) {
	l := e.loops[maphash.String(e.seed, key)%uint64(len(e.loops))]
	w := &waiter{ready: make(chan error, 1)}
	var ch *channel
	var opener bool
	if !l.do(func() { ch, opener = l.join(key, w) }) {
		return nil, ErrClosed
	}
	if opener {
		src, err := open(l.receiver)
		if !l.post(func() { l.opened(ch, src, err) }) {
			if err == nil {
				_ = src.Close()
			}
			return nil, ErrClosed
		}
	}
	lease := &Lease{loop: l, channel: ch, waiter: w}
	select {
	case err := <-w.ready:
		if err != nil {
			return nil, err
		}
		return lease, nil
	case <-ctx.Done():
		lease.Close()
		return nil, ctx.Err()
	}
}

// Disconnect ends the connection of the viewer with a number; false: there is
// none.
func (e *Engine) Disconnect(id int64) (found bool) {
	for _, l := range e.loops {
		l.do(func() {
			for _, c := range l.channels {
				if i := slices.IndexFunc(c.viewers, func(v *viewer) bool { return v.id == id }); i >= 0 {
					found = true
					l.drop(c.viewers[i], "disconnected by the operator")
					return
				}
			}
		})
	}
	return found
}

// A Lease is the right to start a viewer on a channel. It keeps the channel open.
type Lease struct {
	loop    *loop
	channel *channel
	waiter  *waiter
	done    atomic.Bool
}

// Source is what the channel's source knew of itself when the lease was given.
func (l *Lease) Source() ingest.Status { return l.waiter.source }

// Cold reports whether the channel was opened for this lease; others start from
// what has come since.
func (l *Lease) Cold() bool { return l.waiter.cold }

// Close gives the lease back. It does nothing after Attach, or a second time.
func (l *Lease) Close() {
	if l.done.Swap(true) {
		return
	}
	l.loop.post(func() { l.loop.leave(l.channel, l.waiter) })
}

// A Viewer is a connection that a stream is to be sent to.
type Viewer struct {
	Conn      net.Conn
	Header    []byte    // sent before the stream
	Client    string    // his address, "192.0.2.1:40000"
	URL       string    // what he asked for
	Agent     string    // the program that he uses, as it calls itself
	Requested time.Time // when he asked; waiting times count from here
	Done      func()    // called once when he is gone, if not nil; must not block

	// Ended is told once, when a viewer who was attached is gone, what he came
	// to. It must not block. Nil: nobody.
	Ended func(ViewerStatus)

	Framing Framing // cuts the stream into frames; nil: it is sent as it is
	Control Control // speaks with him, between frames; nil: nobody listens
}

// Attach hands a viewer over: the engine owns his connection from now on, also
// when it returns an error.
func (l *Lease) Attach(v Viewer) error {
	fail := func(err error) error {
		_ = v.Conn.Close()
		if v.Done != nil {
			v.Done()
		}
		return fmt.Errorf("fanout: attach %s: %w", v.Client, err)
	}
	if l.done.Swap(true) {
		return fail(errors.New("the lease is used up"))
	}
	if err := prepare(v.Conn); err != nil {
		l.loop.log.Debug("cannot set socket options", "client", v.Client, "err", err)
	}
	n := &viewer{id: l.loop.engine.ids.Add(1), info: v, fd: -1}
	if err := l.loop.connect(n, v.Conn); err != nil {
		l.loop.post(func() { l.loop.leave(l.channel, l.waiter) })
		return fail(err)
	}
	n.control, n.announce = v.Control, v.Control != nil
	n.info.Conn, n.info.Header = nil, nil
	n.prefix = v.Header
	if !l.loop.post(func() { l.loop.attach(l.channel, l.waiter, n) }) {
		n.conn.close()
		return fail(ErrClosed)
	}
	return nil
}
