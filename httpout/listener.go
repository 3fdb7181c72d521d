package httpout

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	// Pauses after an error of accept: the first, doubled up to the longest.
	// When descriptors are short, trying at once would only burn the processor.
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)

// A listener accepts for the server. Nothing that a peer does ends it, and
// neither does a lack of descriptors or memory: only Close.
type listener struct {
	net.Listener
	server *Server
	once   sync.Once
	closed chan struct{}
}

// Accept returns the next connection that there is room for, or net.ErrClosed.
func (l *listener) Accept() (net.Conn, error) {
	pause := acceptPauseMin
	for {
		raw, err := l.Listener.Accept()
		if err == nil {
			if c := l.server.admit(raw); c != nil {
				return c, nil
			}
			pause = acceptPauseMin
			continue
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		default:
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, net.ErrClosed
		}
		// The peer was gone before accept had it (accept(2), "Error handling").
		if errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EPROTO) {
			continue
		}
		l.server.acceptErrors.log(func(times int64) {
			l.server.logger().Error("cannot accept connections", "listener", l.Addr().String(), "err", err, "times", times)
		})
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
		pause = min(2*pause, acceptPauseMax)
	}
}

// Close ends Accept.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// admit counts a new connection as pending. Nil: it was one too many, and is
// closed.
func (s *Server) admit(raw net.Conn) *conn {
	c := &conn{Conn: raw, server: s, addr: clientAddr(raw.RemoteAddr())}
	evicted, ok := s.pending.add(c)
	if evicted == nil && ok {
		return c
	}
	s.counters.pending.Add(1)
	s.floods.log(func(times int64) {
		s.logger().Warn("too many pending connections, idle ones closed",
			"client", c.addr.String(), "times", times, "pending", s.pending.count())
	})
	if !ok {
		raw.Close()
		return nil
	}
	evicted.Conn.Close()
	return c
}
