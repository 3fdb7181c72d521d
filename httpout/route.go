package httpout

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"zapcast/access"
	"zapcast/httpout/page"
	"zapcast/tune"
)

const (
	serverName = "zapcast"

	// exposedHeaders are the response headers that a web player of another
	// origin may read.
	exposedHeaders = "R2H-Upstream-Protocol, R2H-Upstream-Payload, R2H-Upstream-Transport, R2H-Playback-Scale, R2H-Playback-Range, R2H-Media-Duration, R2H-FCC-Status, R2H-FCC-Type, Zapcast-Start"

	allowedMethods = "GET, HEAD, OPTIONS"

	// preflightSeconds is how long a browser may keep the answer to OPTIONS.
	preflightSeconds = "86400"

	routeNames = "/rtp/GROUP:PORT, /udp/GROUP:PORT, /rtsp/HOST/PATH, /playlist.m3u and the channels in it, /api/status, /api/events, /api/diagnose, /metrics, /healthz and the page at /"
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
	var written *recorder
	if config.Access.On() {
		written = &recorder{ResponseWriter: w}
		w = written
	}
	v, r, err := s.receive(config, r)
	if written != nil {
		defer func() { written.record(config.Access, r, v, received) }()
	}
	if err == nil {
		err = s.route(config, w, r, v, received)
	}
	if err != nil {
		s.refuse(config, w, r, err)
	}
}

// route finds what answers a request, and lets it do so if the request may ask.
// Errors are for refuse.
func (s *Server) route(config *Config, w http.ResponseWriter, r *http.Request, v *visit, received time.Time) error {
	if err := discardBody(config, w, r); err != nil {
		return err
	}
	if r.Method == http.MethodOptions && config.CORS != "" {
		preflight(w, r)
		return nil
	}
	e, err := s.endpoint(config, v, received)
	if err != nil {
		return err
	}
	if !e.takes(r.Method) {
		w.Header().Set("Allow", e.methods())
		if r.Method == http.MethodOptions {
			return tune.Refuse(http.StatusMethodNotAllowed, "OPTIONS is answered where http.cors names an origin; it names none")
		}
		return tune.Refuse(http.StatusMethodNotAllowed, "expected one of the methods %s, found %s", e.methods(), tune.Quote(r.Method))
	}
	if e.post {
		if err := crossSite.Check(r); err != nil {
			return tune.Refuse(http.StatusForbidden, "expected a request that no foreign page sends: %v", err)
		}
	}
	if !e.open {
		if err := s.enter(config, w, v, e.right); err != nil {
			return err
		}
	}
	return e.answer(w, r)
}

// An endpoint is what answers a path.
type endpoint struct {
	right  access.Right
	open   bool // no right is needed
	post   bool // POST, where others take GET and HEAD
	answer func(w http.ResponseWriter, r *http.Request) error
}

func (e *endpoint) takes(method string) bool {
	if e.post {
		return method == http.MethodPost
	}
	return method == http.MethodGet || method == http.MethodHead
}

func (e *endpoint) methods() string {
	if e.post {
		return "POST, OPTIONS"
	}
	return allowedMethods
}

// fixed are the endpoints with a name of their own.
func (s *Server) fixed() map[string]endpoint {
	return map[string]endpoint{
		"/playlist.m3u":  {right: access.Stream, answer: s.playlist},
		"/playlist.m3u8": {right: access.Stream, answer: s.playlist},
		"/api/channels":  {right: access.Stream, answer: s.channels},
		"/api/status":    {right: access.View, answer: s.status},
		"/api/events":    {right: access.View, answer: s.listen},
		"/api/diagnose":  {right: access.View, answer: s.diagnose},
		"/api/rights":    {right: access.View, answer: s.rights},
		"/metrics":       {right: access.View, answer: s.metrics},
		"/api/log":       {right: access.View, answer: s.log},
		"/api/log-level": {right: access.Admin, post: true, answer: s.setLevel},
		"/api/reload":    {right: access.Admin, post: true, answer: s.reload},
		"/healthz":       {open: true, answer: s.health},
	}
}

// endpoint finds what answers a visit.
func (s *Server) endpoint(config *Config, v *visit, received time.Time) (endpoint, error) {
	if s.tuner.Stream(v.path) {
		return endpoint{right: access.Stream, answer: func(w http.ResponseWriter, r *http.Request) error {
			return s.stream(config, w, r, v, received)
		}}, nil
	}
	name, _, _ := strings.Cut(v.path, "?")
	if name == "" && config.Prefix != "" {
		return endpoint{open: true, answer: func(w http.ResponseWriter, r *http.Request) error {
			http.Redirect(w, r, config.Prefix+"/", http.StatusPermanentRedirect) // links of the page are relative
			return nil
		}}, nil
	}
	name = strings.TrimSuffix(name, "/")
	if e, ok := s.endpoints[name]; ok {
		return e, nil
	}
	if id, ok := inside(name, "/api/viewers/", "/disconnect"); ok {
		return endpoint{right: access.Admin, post: true, answer: func(w http.ResponseWriter, r *http.Request) error {
			return s.disconnect(w, r, id)
		}}, nil
	}
	if path, ok := inside(name, "/api/channels/", "/source"); ok {
		return endpoint{right: access.Admin, post: true, answer: func(w http.ResponseWriter, r *http.Request) error {
			return s.changeSource(w, r, path)
		}}, nil
	}
	if file, ok := page.Find(strings.TrimPrefix(name, "/")); ok {
		return endpoint{right: access.View, answer: func(w http.ResponseWriter, r *http.Request) error {
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(config.HeaderTimeout))
			file.ServeHTTP(w, r)
			return nil
		}}, nil
	}
	return endpoint{}, tune.Refuse(http.StatusNotFound, "no such path %s: there are %s", tune.Quote(name), routeNames)
}

// inside returns what stands between the ends of a path.
func inside(s, before, behind string) (string, bool) {
	s, starts := strings.CutPrefix(s, before)
	s, ends := strings.CutSuffix(s, behind)
	return s, starts && ends
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
