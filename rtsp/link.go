package rtsp

import (
	"errors"
	"net"
	"sync"
	"time"
)

// errAgain says that a link has nothing to read, or takes nothing more, for now.
var errAgain = errors.New("rtsp: not now")

// A link is the control connection once the session plays. Its methods, but for
// the last two, are the loop's and never block.
type link interface {
	// read returns 0 with errAgain, or with the error that ended the connection.
	read(p []byte) (int, error)
	write(p []byte) (int, error)
	// conn gives the connection back for blocking use. The link is used up.
	conn() (net.Conn, error)
	close() error
}

// goLink is the portable link, and the one for TLS: a goroutine reads ahead into
// a buffer, another writes.
type goLink struct {
	nc   net.Conn
	done sync.WaitGroup

	mu      sync.Mutex // guards what follows
	cond    sync.Cond  // the reader waits here for room, the writer for work
	in, out []byte
	err     error // of the reader
	closing bool
}

const (
	goLinkBuffer = 256 << 10
	goLinkOut    = 64 << 10
)

func newGoLink(nc net.Conn) *goLink {
	_ = nc.SetDeadline(time.Time{})
	l := &goLink{nc: nc}
	l.cond.L = &l.mu
	l.done.Go(l.fill)
	l.done.Go(l.drain)
	return l
}

func (l *goLink) fill() {
	buf := make([]byte, 32<<10)
	for {
		n, err := l.nc.Read(buf)
		l.mu.Lock()
		for len(l.in)+n > goLinkBuffer && !l.closing {
			l.cond.Wait()
		}
		l.in = append(l.in, buf[:n]...)
		if err != nil {
			l.err = err
		}
		stop := err != nil || l.closing
		l.mu.Unlock()
		if stop {
			return
		}
	}
}

func (l *goLink) drain() {
	var out []byte
	for {
		l.mu.Lock()
		for len(l.out) == 0 && !l.closing {
			l.cond.Wait()
		}
		if len(l.out) == 0 {
			l.mu.Unlock()
			return
		}
		out, l.out = l.out, out[:0]
		l.mu.Unlock()
		if _, err := l.nc.Write(out); err != nil {
			return
		}
	}
}

func (l *goLink) read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := copy(p, l.in)
	l.in = l.in[:copy(l.in, l.in[n:])]
	switch {
	case n > 0:
		l.cond.Broadcast()
		return n, nil
	case l.err != nil:
		return 0, l.err
	}
	return 0, errAgain
}

func (l *goLink) write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.out)+len(p) > goLinkOut {
		return 0, errAgain
	}
	l.out = append(l.out, p...)
	l.cond.Broadcast()
	return len(p), nil
}

// stop ends the goroutines. The connection stays open.
func (l *goLink) stop() {
	l.mu.Lock()
	l.closing = true
	l.cond.Broadcast()
	l.mu.Unlock()
	_ = l.nc.SetDeadline(time.Unix(1, 0))
	l.done.Wait()
	_ = l.nc.SetDeadline(time.Time{})
}

func (l *goLink) conn() (net.Conn, error) {
	l.stop()
	if l.err != nil && !isTimeout(l.err) {
		return nil, errors.Join(l.err, l.nc.Close())
	}
	return l.nc, nil
}

func (l *goLink) close() error {
	l.stop()
	return l.nc.Close()
}

// isTimeout reports whether a deadline has passed.
func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
