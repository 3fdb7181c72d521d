package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"zapcast/fanout"
	"zapcast/tune"
)

// A Server answers RTSP requests and hands viewers to an engine. It is safe for
// concurrent use.
type Server struct {
	engine *fanout.Engine
	tuner  *tune.Tuner
	config atomic.Pointer[Config]
	ctx    context.Context // ends when the server shuts down
	stop   context.CancelFunc
	idle   sync.WaitGroup // connections on which nothing is played
	all    sync.WaitGroup // those with a goroutine

	mu      sync.Mutex // guards what follows
	pending map[*conn]struct{}
	ports   *ports // opened by the first who needs them
	relays  relays
}

// errShuttingDown is what clients are told who wait while the server ends.
var errShuttingDown = tune.Refuse(503, "the server is shutting down")

// New returns a server that opens on engine the channels that tuner finds. It
// listens to nothing until Serve is called. The engine stays the caller's; it
// must be closed after Shutdown, which leaves running streams to it.
func New(config Config, engine *fanout.Engine, tuner *tune.Tuner) *Server {
	s := &Server{engine: engine, tuner: tuner, pending: map[*conn]struct{}{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.Reconfigure(config)
	return s
}

// Reconfigure replaces the settings for new connections.
func (s *Server) Reconfigure(config Config) {
	config = config.withDefaults()
	s.config.Store(&config)
}

const (
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)

// Serve accepts connections on l, a TCP listener, until Shutdown or until l is
// closed, and returns nil. No error of a client or of accept ends it.
func (s *Server) Serve(l net.Listener) error {
	defer context.AfterFunc(s.ctx, func() { l.Close() })()
	for pause := acceptPauseMin; ; {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = acceptPauseMin
			s.admit(nc)
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EPROTO): // gone before accept had him
		default: // descriptors or memory are short: trying at once would only burn the processor
			s.config.Load().Logger.Error("cannot accept connections", "listener", l.Addr().String(), "err", err)
			select {
			case <-s.ctx.Done():
				return nil
			case <-time.After(pause):
			}
			pause = min(2*pause, acceptPauseMax)
		}
	}
}

// admit starts a connection, or closes one that is too many.
func (s *Server) admit(nc net.Conn) {
	config := s.config.Load()
	c := newConn(s, config, nc)
	s.mu.Lock()
	same := 0
	for o := range s.pending {
		if o.addr == c.addr {
			same++
		}
	}
	ok := s.ctx.Err() == nil && len(s.pending) < config.MaxPending && same < config.MaxPendingPerAddress
	if ok {
		s.pending[c] = struct{}{}
		s.idle.Add(1)
		s.all.Add(1)
	}
	s.mu.Unlock()
	if !ok {
		config.Logger.Debug("too many connections without a stream", "client", c.client)
		nc.Close()
		return
	}
	go func() {
		defer s.all.Done()
		c.run()
		s.release(c)
	}()
}

// retain takes c, which did not come to play, among the pending ones again. It is
// false when the server ends.
func (s *Server) retain(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	if _, ok := s.pending[c]; !ok {
		s.pending[c] = struct{}{}
		s.idle.Add(1)
	}
	return true
}

// release takes c off the pending ones: it is closed, or plays.
func (s *Server) release(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.pending[c]; ok {
		delete(s.pending, c)
		s.idle.Done()
	}
}

// openPorts returns the UDP ports of the server.
func (s *Server) openPorts() (*ports, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, errShuttingDown
	}
	if s.ports == nil {
		p, err := openPorts(s.config.Load().UDPPort)
		if err != nil {
			return nil, err
		}
		s.ports = p
	}
	return s.ports, nil
}

// Pending is the number of connections on which nothing is played.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// Shutdown closes the listeners and the connections on which nothing is played.
// Running streams are the engine's and go on.
func (s *Server) Shutdown() {
	s.stop()
	s.mu.Lock()
	for c := range s.pending {
		c.nc.Close()
	}
	s.mu.Unlock()
	s.idle.Wait()
}

// Wait waits for the end of the streams that the engine has closed, after
// Shutdown.
func (s *Server) Wait() {
	s.all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ports != nil {
		s.ports.close()
	}
}

// addressOf is the address of a peer without its port.
func addressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
