package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"zapcast/accesslog"
	"zapcast/diagnose"
	"zapcast/fanout"
	"zapcast/httpout"
	"zapcast/journal"
	"zapcast/lineup"
	"zapcast/rtsp"
	rtspserver "zapcast/rtsp/server"
	"zapcast/tune"
)

// requestsLinger is how long a stop waits for requests that are being answered
// (a status page, a refusal). With the engine's second it keeps a stop below
// two.
const requestsLinger = 500 * time.Millisecond

// A server is the running program: listeners, the HTTP front, the tuner and the
// engine.
// Its methods are for one goroutine.
type server struct {
	started   serveConfig // what the engine was made with
	cfg       serveConfig // what applies now
	log       *slog.Logger
	journal   *journal.Journal // behind log, for the page; may be nil
	reload    func() error     // has the file read again; may be nil
	metrics   *httpout.Metrics
	accesses  accesslog.Log
	engine    *fanout.Engine
	lineup    *lineup.Lineup
	tuner     *tune.Tuner
	http      *httpout.Server
	rtsp      *rtspserver.Server
	sources   *rtsp.Client
	queries   *diagnose.Queries
	listeners map[endpoint]net.Listener
	serving   sync.WaitGroup // one per listener
}

// openServer starts a server. On an error nothing stays open.
func openServer(cfg serveConfig, log *slog.Logger) (*server, error) {
	s := &server{log: log}
	return s, s.open(cfg)
}

// open opens a server whose log is set.
func (s *server) open(cfg serveConfig) (err error) {
	s.started, s.cfg, s.listeners = cfg, cfg, map[endpoint]net.Listener{}
	fresh, err := s.openListeners(cfg)
	if err != nil {
		return err
	}
	if err := s.accesses.Open(cfg.accessLog, cfg.accessFormat); err != nil {
		closeAll(fresh)
		return cfg.fault("http.access-log", err)
	}
	s.metrics = httpout.NewMetrics()
	core := cfg.engineConfig(s.log)
	core.Zapped = s.metrics.Zapped
	if s.engine, err = fanout.New(core); err != nil {
		closeAll(fresh)
		return err
	}
	s.lineup = lineup.Open(cfg.lineupConfig(s.log))
	s.sources = rtsp.NewClient(cfg.rtspSourceConfig(s.log))
	s.tuner = tune.New(cfg.tuneConfig(s.lineup, s.sources, s.log), tune.System())
	s.queries = diagnose.Listen()
	s.http = httpout.New(s.httpConfig(&cfg), s.engine, s.tuner)
	s.rtsp = rtspserver.New(s.rtspConfig(), s.engine, s.tuner)
	s.serve(fresh)
	s.warnOfInterface()
	return nil
}

// warnOfInterface says at once what requests would find out. Nothing stops for
// it: interfaces come and go.
func (s *server) warnOfInterface() {
	if err := s.cfg.interfaceFault(); err != nil {
		s.log.Warn("groups cannot be joined now", "err", err)
	}
}

// start opens a server that lives until ctx ends. It returns once the listeners
// are open: addr is where the first of them listens, and wait blocks until the
// end, when everything is closed.
func (s *server) start(ctx context.Context, cfg serveConfig) (addr string, wait func() error, err error) {
	if err := s.open(cfg); err != nil {
		return "", nil, err
	}
	addr = s.listeners[cfg.endpoints()[0]].Addr().String()
	return addr, func() error {
		<-ctx.Done()
		return s.close()
	}, nil
}

// serve takes listeners into use, in the order of the configuration.
func (s *server) serve(fresh map[endpoint]net.Listener) {
	for _, at := range s.cfg.endpoints() {
		ln, ok := fresh[at]
		if !ok {
			continue
		}
		s.listeners[at] = ln
		front := s.http.Serve
		if at.setting == "rtsp.listen" {
			front = s.rtsp.Serve
		}
		s.serving.Go(func() {
			if err := front(ln); err != nil && !errors.Is(err, net.ErrClosed) {
				s.log.Error("listener failed", at.setting, at.address, "err", err)
			}
		})
		s.log.Info("listening", at.setting, ln.Addr().String(), "open", openURL(at.scheme(), ln.Addr()))
	}
}

// openListeners opens what cfg lists and s does not have yet: all of it, or
// nothing.
func (s *server) openListeners(cfg serveConfig) (map[endpoint]net.Listener, error) {
	fresh := map[endpoint]net.Listener{}
	for _, at := range cfg.endpoints() {
		if s.listeners[at] != nil {
			continue
		}
		ln, err := listen(at.address)
		if err != nil {
			closeAll(fresh)
			return nil, cfg.listenFault(at, err)
		}
		fresh[at] = ln
	}
	return fresh, nil
}

func closeAll(listeners map[endpoint]net.Listener) {
	for _, ln := range listeners {
		ln.Close()
	}
}

// reconfigure applies another configuration. Streams go on, listeners that stay
// are not touched, and new ones are open before old ones close. On an error
// everything is as before.
func (s *server) reconfigure(next serveConfig) error {
	fresh, err := s.openListeners(next)
	if errors.Is(err, syscall.EADDRINUSE) {
		fresh, err = s.swapListeners(next)
	}
	if err != nil {
		return err
	}
	if err := s.accesses.Open(next.accessLog, next.accessFormat); err != nil {
		s.log.Error("access log not opened; the old one stays", "err", next.fault("http.access-log", err))
	}
	s.cfg = next
	s.engine.Reconfigure(next.engineConfig(s.log))
	s.lineup.Reconfigure(next.lineupConfig(s.log))
	s.sources.Reconfigure(next.rtspSourceConfig(s.log))
	s.tuner.Reconfigure(next.tuneConfig(s.lineup, s.sources, s.log))
	s.http.Reconfigure(s.httpConfig(&next))
	s.rtsp.Reconfigure(s.rtspConfig())
	s.serve(fresh)
	for _, at := range s.leaving(next) {
		s.log.Info("no longer listening", at.setting, s.listeners[at].Addr().String())
		s.listeners[at].Close()
		delete(s.listeners, at)
	}
	s.warnOfInterface()
	if keys := s.restartNeeded(next); len(keys) > 0 {
		s.log.Warn("settings that apply after a restart", "keys", strings.Join(keys, ", "))
	}
	return nil
}

// swapListeners makes room for new listeners by closing those of ours that
// leave and hold the same port, which exclude each other (":5140" and
// "127.0.0.1:5140"). If that does not help, they are opened again.
func (s *server) swapListeners(next serveConfig) (map[endpoint]net.Listener, error) {
	for _, old := range s.leaving(next) {
		at := s.listeners[old].Addr().String()
		if slices.ContainsFunc(next.endpoints(), func(fresh endpoint) bool { return samePort(at, fresh.address) }) {
			s.listeners[old].Close()
			delete(s.listeners, old)
		}
	}
	fresh, err := s.openListeners(next)
	if err != nil {
		back, lost := s.openListeners(s.cfg)
		if lost != nil {
			s.log.Error("listener lost", "err", lost)
		}
		s.serve(back)
	}
	return fresh, err
}

// leaving lists the open listeners that next does not list.
func (s *server) leaving(next serveConfig) []endpoint {
	var out []endpoint
	for at := range s.listeners {
		if !slices.Contains(next.endpoints(), at) {
			out = append(out, at)
		}
	}
	return out
}

// restartNeeded lists the keys of those settings that cannot change while the
// engine runs and that differ from what it was started with.
func (s *server) restartNeeded(next serveConfig) []string {
	var keys []string
	for _, st := range settings {
		if st.restart && st.value(&s.started).text() != st.value(&next).text() {
			keys = append(keys, st.key)
		}
	}
	return keys
}

// close stops serving: no new requests, the viewers' sockets closed, the
// groups left.
func (s *server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), requestsLinger)
	defer cancel()
	s.rtsp.Shutdown()
	err := s.http.Shutdown(ctx)
	closeAll(s.listeners)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) {
		err = nil // requests that still wait for a stream end with the engine; a listener may be closed just now
	}
	s.sources.Close()
	err = errors.Join(err, s.engine.Close())
	s.rtsp.Wait()
	s.serving.Wait()
	s.lineup.Close()
	s.queries.Close()
	return errors.Join(err, s.accesses.Open("", accesslog.Combined))
}
