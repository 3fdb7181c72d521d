package httpout

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"zapcast/journal"
	"zapcast/tune"
)

// What changes the running server. These are POST requests, so that no link and
// no image of a foreign page sets them off, and are refused where the browser
// says that a foreign page sends them.

// crossSite tells requests that a foreign page sends from all others, by
// Sec-Fetch-Site or Origin.
var crossSite = http.NewCrossOriginProtection()

// parameter is a query parameter of a request.
func parameter(r *http.Request, key string) string {
	_, query, _ := strings.Cut(r.RequestURI, "?")
	values, _ := url.ParseQuery(query)
	return values.Get(key)
}

// done answers a request that has been carried out.
func (s *Server) done(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", noCache)
	answer(s.config.Load(), w, r, http.StatusOK, "application/json", []byte("{}\n"))
	return nil
}

// disconnect answers POST /api/viewers/ID/disconnect.
func (s *Server) disconnect(w http.ResponseWriter, r *http.Request, id string) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || !s.engine.Disconnect(n) {
		return tune.Refuse(http.StatusNotFound, "no viewer has the number %s", tune.Quote(id))
	}
	return s.done(w, r)
}

// changeSource answers POST /api/channels/PATH/source?number=N, which counts
// from 1.
func (s *Server) changeSource(w http.ResponseWriter, r *http.Request, path string) error {
	found, ok := s.table(s.config.Load()).Find(path)
	if !ok || found.Source >= 0 {
		return tune.Refuse(http.StatusNotFound, "no channel has the path %s", tune.Quote(path))
	}
	n, err := strconv.Atoi(parameter(r, "number"))
	if sources := len(found.Channel.Sources); err != nil || n < 1 || n > sources {
		return tune.Refuse(http.StatusBadRequest, "expected number=N from 1 to %d, found %s", sources, tune.Quote(parameter(r, "number")))
	}
	found.Channel.Switch.To(n - 1)
	return s.done(w, r)
}

// reload answers POST /api/reload.
func (s *Server) reload(w http.ResponseWriter, r *http.Request) error {
	config := s.config.Load()
	if config.Reload == nil {
		return tune.Refuse(http.StatusNotFound, "this server has nothing to reload")
	}
	if err := config.Reload(); err != nil {
		return tune.Refuse(http.StatusConflict, "not reloaded, the old configuration stays: %v", err)
	}
	return s.done(w, r)
}

// setLevel answers POST /api/log-level?level=LEVEL.
func (s *Server) setLevel(w http.ResponseWriter, r *http.Request) error {
	config := s.config.Load()
	if config.Journal == nil {
		return tune.Refuse(http.StatusNotFound, "this server keeps no log")
	}
	var level slog.Level
	if name := parameter(r, "level"); level.UnmarshalText([]byte(name)) != nil {
		return tune.Refuse(http.StatusBadRequest, "expected level=debug, info, warn or error, found %s", tune.Quote(name))
	}
	config.Journal.SetLevel(level)
	config.Logger.Warn("log level set", "level", level, "client", clientName(r.RemoteAddr))
	return s.done(w, r)
}

// The JSON of /api/log.

type logJSON struct {
	Level string     `json:"level"`
	Lines []lineJSON `json:"lines"`
}

type lineJSON struct {
	Number int64     `json:"number"`
	At     time.Time `json:"at"`
	Level  string    `json:"level"`
	Text   string    `json:"text"`
}

// log answers /api/log?after=NUMBER.
func (s *Server) log(w http.ResponseWriter, r *http.Request) error {
	config := s.config.Load()
	shown := logJSON{Lines: []lineJSON{}}
	after, _ := strconv.ParseInt(parameter(r, "after"), 10, 64)
	var lines []journal.Line
	if config.Journal != nil {
		lines = config.Journal.Lines(after)
		shown.Level = strings.ToLower(config.Journal.Level().String())
	}
	for _, l := range lines {
		shown.Lines = append(shown.Lines, lineJSON{l.Number, l.At.UTC(), strings.ToLower(l.Level.String()), l.Text})
	}
	body, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", noCache)
	answer(config, w, r, http.StatusOK, "application/json", append(body, '\n'))
	return nil
}
