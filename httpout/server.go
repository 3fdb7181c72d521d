package httpout

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"zapcast/diagnose"
	"zapcast/fanout"
	"zapcast/tune"
)

const (
	// maxHeader bounds request line and header, in bytes; more is answered 431.
	maxHeader = 8192

	// httpSlop is what net/http adds to MaxHeaderBytes for its read buffer.
	httpSlop = 4096

	// maxBody bounds a request body, in bytes; more is answered 413. No route
	// reads one.
	maxBody = 4 << 20
)

// A Server answers HTTP requests and hands viewers to an engine. It is safe for
// concurrent use.
type Server struct {
	engine  *fanout.Engine
	http    *http.Server
	config  atomic.Pointer[Config]
	pending pending
	slots   slots
	tuner   *tune.Tuner
	started time.Time

	endpoints map[string]endpoint

	counters     counters
	failures     failures
	events       events
	queries      *diagnose.Queries
	diagnoses    chan struct{} // holds one for each that runs
	floods       repeated      // pending connections over the limit
	acceptErrors repeated
	wrongTokens  repeated

	ctx      context.Context // ends when the server shuts down
	shutdown context.CancelCauseFunc
}

// errShuttingDown is what viewers are told who wait while the server ends.
var errShuttingDown = errors.New("the server is shutting down")

// New returns a server that opens on engine the channels that tuner finds. It
// listens to nothing until Serve is called. The engine stays the caller's; it
// must be closed after Shutdown, which leaves running streams to it.
func New(config Config, engine *fanout.Engine, tuner *tune.Tuner) *Server {
	config = config.withDefaults()
	s := &Server{
		engine:  engine,
		tuner:   tuner,
		started: time.Now(),
	}
	s.pending.total, s.pending.perAddress = config.MaxPending, config.MaxPendingPerAddress
	s.config.Store(&config)
	s.queries = config.Queries
	s.diagnoses = make(chan struct{}, maxDiagnoses)
	s.events.interval, s.events.make = eventInterval, s.statusEvent
	s.endpoints = s.fixed()
	s.ctx, s.shutdown = context.WithCancelCause(context.Background())
	s.http = &http.Server{
		Handler:                      s,
		ReadHeaderTimeout:            config.HeaderTimeout,
		IdleTimeout:                  config.IdleTimeout,
		MaxHeaderBytes:               maxHeader - httpSlop,
		DisableGeneralOptionsHandler: true,
		// What scanners and half-open connections cause is no one's to act upon.
		ErrorLog:    slog.NewLogLogger(config.Logger.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	return s
}

// connKey is the context key of a request's connection.
type connKey struct{}

// Serve accepts connections on l, a TCP or unix listener, until Shutdown, and
// closes it. It may run for several listeners at a time. It returns nil after a
// Shutdown and when l was closed; no error of a client or of accept ends it.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(&listener{Listener: l, server: s, closed: make(chan struct{})})
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Reconfigure replaces the settings for new requests. Running streams keep what
// they started with; Config says what it does not change.
func (s *Server) Reconfigure(config Config) {
	config = config.withDefaults()
	s.config.Store(&config)
}

// Shutdown closes the listeners and the idle connections, answers waiting
// viewers with 503 and waits for answers under way until ctx ends; what is left
// then is closed. Running streams are the engine's and go on.
func (s *Server) Shutdown(ctx context.Context) error {
	s.shutdown(errShuttingDown)
	s.pending.closeIdle()
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	s.events.running.Wait()
	return nil
}

func (s *Server) logger() *slog.Logger { return s.config.Load().Logger }
