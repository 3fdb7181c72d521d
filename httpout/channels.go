package httpout

import (
	"encoding/json"
	"hash/crc64"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"zapcast/access"
	"zapcast/lineup"
	"zapcast/tune"
)

const playlistType = "audio/x-mpegurl; charset=utf-8"

// The JSON of /api/channels: what /playlist.m3u lists, for programs.

type namedJSON struct {
	Name    string       `json:"name"`
	Group   string       `json:"group"`
	Path    string       `json:"path"`
	Number  int          `json:"number"`
	Logo    string       `json:"logo"`
	Origin  string       `json:"origin"`
	Sources []sourceJSON `json:"sources"`
}

type sourceJSON struct {
	URL    string `json:"url"`
	Label  string `json:"label"`
	Active bool   `json:"active"`
}

// playlistJSON is one playlist in /api/status.
type playlistJSON struct {
	Name     string     `json:"name"`
	Channels int        `json:"channels"`
	Read     *time.Time `json:"read"`
	Copy     bool       `json:"copy"`
	Error    string     `json:"error,omitempty"`
	Faults   []string   `json:"faults"`
}

func (s *Server) playlists() []playlistJSON {
	list := []playlistJSON{}
	config := s.config.Load()
	if config.Lineup == nil {
		return list
	}
	for _, p := range config.Lineup.Playlists() {
		shown := playlistJSON{Name: p.Name, Channels: p.Channels, Copy: p.Copy, Faults: []string{}}
		if !p.Read.IsZero() {
			at := p.Read.UTC()
			shown.Read = &at
		}
		if p.Err != nil {
			shown.Error = p.Err.Error()
		}
		for _, f := range p.Faults {
			shown.Faults = append(shown.Faults, f.String())
		}
		list = append(list, shown)
	}
	return list
}

// channels answers /api/channels.
func (s *Server) channels(w http.ResponseWriter, r *http.Request) error {
	config := s.config.Load()
	list := []namedJSON{}
	for _, c := range s.table(config).Channels {
		named := namedJSON{Name: c.Name, Group: c.Group, Path: "/" + lineup.Escape(c.Path), Number: c.Number, Logo: c.Logo, Origin: access.Redact(c.Origin)}
		for i, source := range c.Sources {
			named.Sources = append(named.Sources, sourceJSON{URL: access.Redact(source.Name()), Label: source.Label, Active: c.Switch.Active() == i})
		}
		list = append(list, named)
	}
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", noCache)
	answer(config, w, r, http.StatusOK, "application/json", append(body, '\n'))
	return nil
}

// table is the line-up of this moment.
func (s *Server) table(config *Config) *lineup.Table {
	if config.Lineup == nil {
		return new(lineup.Table)
	}
	return config.Lineup.Table()
}

// polynomial of the ETag: it tells versions of a list apart, and guards nothing.
var polynomial = crc64.MakeTable(crc64.ECMA)

// playlist answers /playlist.m3u: every channel, with URLs as this viewer has
// reached the server.
func (s *Server) playlist(w http.ResponseWriter, r *http.Request) error {
	config := s.config.Load()
	table := s.table(config)
	if len(table.Channels) == 0 {
		return tune.Refuse(http.StatusNotFound, "no channels: the configuration names none ([[channel]], [[playlist]])")
	}
	_, query, _ := strings.Cut(r.RequestURI, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return tune.Refuse(http.StatusBadRequest, "expected parameters KEY=VALUE, found %s", tune.Quote(query))
	}
	visit := visitOf(r)
	view := lineup.View{Base: visit.base(), Query: visit.query(), Group: values.Get("group")}
	switch format := values.Get("format"); {
	case format == "" || format == "http":
	case format != "rtsp":
		return tune.Refuse(http.StatusBadRequest, "expected format=http or format=rtsp, found %s", tune.Quote(format))
	case config.RTSPPort == 0:
		return tune.Refuse(http.StatusNotFound, "no RTSP listener: rtsp.listen is not set")
	default: // RTSP has neither prefix nor tokens
		host := hostName(visit.host)
		view.Base, view.Query = "rtsp://"+net.JoinHostPort(host, strconv.Itoa(int(config.RTSPPort))), ""
	}
	switch labels := values.Get("labels"); labels {
	case "", "1", "all":
	case "0", "none":
		view.Single = true
	default:
		view.Labels = strings.Split(labels, ",")
	}
	body := table.AppendM3U(nil, view)
	tag := `"` + strconv.FormatUint(crc64.Checksum(body, polynomial), 16) + `"`
	header := w.Header()
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	answer(config, w, r, http.StatusOK, playlistType, body)
	return nil
}
