package httpout

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"zapcast/access"
	"zapcast/fanout"
	"zapcast/ingest"
	"zapcast/tune"
)

const (
	streamType = "video/mp2t"
	noCache    = "no-cache, no-store"

	// retryAfter is when a viewer that found no slot should ask again, in
	// seconds: about the time that a player takes to close a stream it has left.
	retryAfter = "5"

	// maxAgent bounds what is kept of a User-Agent, in bytes, for the viewer's
	// whole stay.
	maxAgent = 200
)

// stream answers GET and HEAD on a stream's path. HEAD opens nothing. GET waits
// until the stream can start, then the connection is the engine's.
func (s *Server) stream(config *Config, w http.ResponseWriter, r *http.Request, v *visit, received time.Time) error {
	channel, err := s.tuner.Channel(r.Context(), v.path, r.UserAgent())
	if err != nil {
		return err
	}
	if len(channel.Ignored) > 0 {
		config.Logger.Info("parameters ignored", "client", r.RemoteAddr, "parameters", strings.Join(channel.Ignored, "; "))
	}
	if channel.OnlyDescribe {
		return s.duration(config, w, r, channel)
	}
	if r.Method == http.MethodHead {
		if channel.Describe != nil {
			d, err := channel.Describe(r.Context())
			if err != nil {
				return s.openFailed(config, r, channel.Key, err)
			}
			if d.Duration > 0 {
				w.Header().Set("R2H-Media-Duration", seconds(d.Duration))
			}
		}
		header := w.Header()
		header.Set("Content-Type", streamType)
		header.Set("Connection", "close")
		header.Set("Cache-Control", noCache)
		header.Set("R2H-Upstream-Protocol", channel.Protocol)
		w.WriteHeader(http.StatusOK)
		return nil
	}

	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return errors.New("httpout: stream over a connection that is not the server's")
	}
	client := clientKey{addr: v.client, agent: access.Redact(clip(r.UserAgent(), maxAgent))}
	if !s.slots.take(client, config.MaxClients) {
		s.counters.limit.Add(1)
		w.Header().Set("Retry-After", retryAfter)
		return tune.Refuse(http.StatusServiceUnavailable, "too many viewers: all %d places are taken", config.MaxClients)
	}
	s.pending.remove(c) // he has a place: a channel that starts slowly may keep many of one address waiting
	viewer := fanout.Viewer{
		Client:    clientName(r.RemoteAddr),
		URL:       access.Redact(strings.Clone(r.RequestURI)),
		Agent:     client.agent,
		Requested: received,
		Done:      func() { s.slots.give(client) },
	}
	lease, err := s.engine.Open(r.Context(), channel.Key, channel.Open)
	if err != nil {
		viewer.Done()
		return s.openFailed(config, r, channel.Key, err)
	}
	if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
		lease.Close()
		viewer.Done()
		return err
	}
	viewer.Ended = recordStream(config.Access, w, r, v, received)
	viewer.Conn = c.detach()
	viewer.Header = streamHeader(r, config.CORS, channel.Protocol, lease)
	if err := lease.Attach(viewer); err != nil {
		config.Logger.Debug("viewer lost at the start", "client", viewer.Client, "channel", channel.Key, "err", err)
	}
	return nil
}

// duration answers with the length of a recording.
func (s *Server) duration(config *Config, w http.ResponseWriter, r *http.Request, channel tune.Channel) error {
	d, err := channel.Describe(r.Context())
	if err == nil && d.Duration == 0 {
		err = tune.Refuse(http.StatusServiceUnavailable, "%s: the server tells no duration", channel.Key)
	}
	if err != nil {
		return s.openFailed(config, r, channel.Key, err)
	}
	answer(config, w, r, http.StatusOK, "application/json", []byte(`{"duration": "`+seconds(d.Duration)+"\"}\n"))
	return nil
}

// seconds writes a duration as players read it.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// openFailed makes the answer to a viewer out of the reason why a channel did
// not open.
func (s *Server) openFailed(config *Config, r *http.Request, key string, err error) error {
	if s.ctx.Err() != nil {
		return tune.Refuse(http.StatusServiceUnavailable, "%v", errShuttingDown)
	}
	if r.Context().Err() != nil {
		s.counters.gone.Add(1)
		return errGone
	}
	if s.failures.add(failure{Channel: access.Redact(key), Reason: access.Redact(oneLine(err.Error())), At: time.Now()}) {
		config.Logger.Warn("stream does not start", "client", clientName(r.RemoteAddr), "channel", key, "err", err)
	}
	var refused *tune.StatusError
	if errors.As(err, &refused) {
		return refused
	}
	s.counters.noStream.Add(1)
	return tune.Refuse(http.StatusServiceUnavailable, "%v", err)
}

// streamHeader is the response header of a stream, whole. There is no length:
// the body ends with the connection.
func streamHeader(r *http.Request, cors, protocol string, lease *fanout.Lease) []byte {
	var b strings.Builder
	line := func(key, value string) {
		b.WriteString(key + ": " + value + "\r\n")
	}
	if r.ProtoAtLeast(1, 1) {
		b.WriteString("HTTP/1.1 200 OK\r\n")
	} else {
		b.WriteString("HTTP/1.0 200 OK\r\n")
	}
	line("Server", serverName)
	line("Date", time.Now().UTC().Format(http.TimeFormat))
	line("Content-Type", streamType)
	line("Connection", "close")
	line("Cache-Control", noCache)
	line("R2H-Upstream-Protocol", protocol)
	source := lease.Source()
	if source.Payload != "" {
		line("R2H-Upstream-Payload", source.Payload)
	}
	if session := source.Session; session != nil {
		sessionHeader(session, line)
	}
	if source.FCC != nil {
		fastChange(line, source.FCC, lease.Cold())
	}
	if cors != "" {
		line("Access-Control-Allow-Origin", cors)
		line("Access-Control-Expose-Headers", exposedHeaders)
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// sessionHeader writes what an upstream server said of its session, as far as
// it can be said in a header.
func sessionHeader(s *ingest.SessionStatus, line func(key, value string)) {
	line("R2H-Upstream-Transport", s.Transport)
	if scale, err := strconv.ParseFloat(s.Scale, 64); err == nil && !math.IsInf(scale, 0) && !math.IsNaN(scale) {
		line("R2H-Playback-Scale", s.Scale)
	}
	if s.Range != "" && !strings.ContainsFunc(s.Range, unicode.IsControl) {
		line("R2H-Playback-Range", s.Range)
	}
	if s.Duration > 0 {
		line("R2H-Media-Duration", seconds(s.Duration))
	}
}

// fastChange tells how a channel with fast channel change began: in the two
// headers of rtp2httpd, and in one of our own that has the details.
func fastChange(line func(key, value string), status *ingest.FCCStatus, cold bool) {
	compatible, start := "fallback", "multicast"
	switch {
	case !cold:
		start = "history"
	case status.Kind == ingest.StartBurst:
		start = "burst"
	}
	if status.Kind == ingest.StartBurst {
		compatible = "active"
	}
	line("R2H-FCC-Status", compatible)
	if status.Dialect != "" {
		line("R2H-FCC-Type", status.Dialect)
	}
	ms := func(key string, d time.Duration) {
		if d > 0 {
			start += "; " + key + "=" + strconv.FormatInt(d.Milliseconds(), 10)
		}
	}
	if cold {
		ms("reply-ms", status.ReplyTime)
		ms("first-byte-ms", status.FirstByte)
		ms("random-access-ms", status.RandomAccess)
		if status.Reason != "" {
			start += "; reason=" + strconv.Quote(oneLine(status.Reason))
		}
	}
	line("Zapcast-Start", start)
}

// clientName is a peer's address for logs and status.
func clientName(remote string) string {
	if remote == "" || remote == "@" {
		return "unix"
	}
	return remote
}

// clip returns a copy of the beginning of s, so that nothing longer is kept.
func clip(s string, most int) string {
	return strings.Clone(s[:min(len(s), most)])
}
