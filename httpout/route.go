package httpout

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"zapcast/httpout/page"
	"zapcast/tune"
)

const (
	serverName = "zapcast"

	// exposedHeaders are the response headers that a web player of another
	// origin may read.
	exposedHeaders = "R2H-Upstream-Protocol, R2H-Upstream-Payload"

	allowedMethods = "GET, HEAD, OPTIONS"

	// preflightSeconds is how long a browser may keep the answer to OPTIONS.
	preflightSeconds = "86400"

	routeNames = "/rtp/GROUP:PORT, /udp/GROUP:PORT, /api/status, /api/events, /healthz and the page at /"
)

// ServeHTTP answers one request. It is the handler of the server's own
// connections; only those can become streams.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	received := time.Now()
	config := s.config.Load()
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		s.pending.setBusy(c, true)
		defer s.pending.setBusy(c, false)
	}
	header := w.Header()
	header.Set("Server", serverName)
	if config.CORS != "" {
		header.Set("Access-Control-Allow-Origin", config.CORS)
		header.Set("Access-Control-Expose-Headers", exposedHeaders)
	}
	if err := s.route(config, w, r, received); err != nil {
		s.refuse(config, w, r, err)
	}
}

// route checks the request, then finds what answers it. Errors are for refuse.
func (s *Server) route(config *Config, w http.ResponseWriter, r *http.Request, received time.Time) error {
	path, err := tune.Path(r.RequestURI)
	if err != nil {
		return err
	}
	if !config.allowsHost(r.Host) {
		return tune.Refuse(http.StatusBadRequest, "expected a Host header with a name of this server, found %s", tune.Quote(r.Host))
	}
	if err := discardBody(config, w, r); err != nil {
		return err
	}
	if r.Method == http.MethodOptions && config.CORS != "" {
		preflight(w, r)
		return nil
	}

	answer := s.status
	if s.tuner.Stream(path) {
		answer = func(w http.ResponseWriter, r *http.Request) error {
			return s.stream(config, w, r, path, received)
		}
	} else {
		name, _, _ := strings.Cut(path, "?")
		name = strings.TrimSuffix(name, "/")
		file, isPage := page.Find(strings.TrimPrefix(name, "/"))
		switch {
		case name == "/api/status":
		case name == "/healthz":
			answer = s.health
		case name == "/api/events":
			answer = s.listen
		case isPage:
			answer = func(w http.ResponseWriter, r *http.Request) error {
				http.NewResponseController(w).SetWriteDeadline(time.Now().Add(config.HeaderTimeout))
				file.ServeHTTP(w, r)
				return nil
			}
		default:
			return tune.Refuse(http.StatusNotFound, "no such path %s: there are %s", tune.Quote(name), routeNames)
		}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", allowedMethods)
		return tune.Refuse(http.StatusMethodNotAllowed, "expected one of the methods %s, found %s", allowedMethods, tune.Quote(r.Method))
	}
	return answer(w, r)
}

// discardBody reads what no route wants, so that a client that sends it gets
// its answer, and the server sees when it goes.
func discardBody(config *Config, w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	tooLarge := tune.Refuse(http.StatusRequestEntityTooLarge, "expected a request body of at most %d bytes, found more", maxBody)
	if r.ContentLength > maxBody {
		return tooLarge
	}
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(config.HeaderTimeout))
	defer control.SetReadDeadline(time.Time{})
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		var over *http.MaxBytesError
		if errors.As(err, &over) {
			return tooLarge
		}
		return tune.Refuse(http.StatusBadRequest, "expected a whole request body: %v", err)
	}
	return nil
}

// preflight answers a browser that asks what a page of another origin may do.
func preflight(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	methods := r.Header.Get("Access-Control-Request-Method")
	if methods == "" {
		methods = allowedMethods
	}
	header.Set("Access-Control-Allow-Methods", methods)
	if names := r.Header.Get("Access-Control-Request-Headers"); names != "" {
		header.Set("Access-Control-Allow-Headers", names)
	}
	header.Set("Access-Control-Max-Age", preflightSeconds)
	w.WriteHeader(http.StatusNoContent)
}
