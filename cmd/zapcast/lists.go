package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zapcast/access"
	"zapcast/lineup"
	"zapcast/tune"
)

// A list is a table that the file may hold any number of times: [[channel]].
// The values of its settings are fields of the newest item.
type list struct {
	name     string
	doc      string
	settings []setting
	grow     func(*serveConfig)         // adds an item
	origin   func(*serveConfig) *string // where the newest item was made
}

// A channelConfig is one [[channel]].
type channelConfig struct {
	origin string // "zapcast.toml:12"

	name, group, logo string
	sources           []string
	iface             string
	fcc, fccType      string
	fec               int
}

// A playlistConfig is one [[playlist]].
type playlistConfig struct {
	origin  string
	source  string
	refresh time.Duration
}

// A tokenConfig is one [[token]].
type tokenConfig struct {
	origin string

	name, secret string
	rights       []string
	expires      time.Time
}

func (c *serveConfig) token() *tokenConfig { return &c.tokens[len(c.tokens)-1] }

func (c *serveConfig) channel() *channelConfig   { return &c.channels[len(c.channels)-1] }
func (c *serveConfig) playlist() *playlistConfig { return &c.playlists[len(c.playlists)-1] }

var lists = []list{
	{
		name:   "channel",
		doc:    "A channel with a name. It is found under /GROUP/NAME, or /NAME without a group. docs/channels.md says more.",
		grow:   func(c *serveConfig) { c.channels = append(slices.Clip(c.channels), channelConfig{}) },
		origin: func(c *serveConfig) *string { return &c.channel().origin },
		settings: []setting{
			{
				key: "channel.name", initial: "",
				doc:   "Its name, in any script.",
				value: func(c *serveConfig) value { return text{&c.channel().name, "a name of one line", oneLine} },
			},
			{
				key: "channel.group", initial: "",
				doc:   "The group under which players list it.",
				value: func(c *serveConfig) value { return text{&c.channel().group, "a name of one line", oneLine} },
			},
			{
				key: "channel.sources", initial: []any{},
				doc: "Where it comes from, in the order in which the sources are tried: `rtp://`, `udp://`, `rtsp://`, `rtsps://`, `http://` or `https://` URLs. " +
					"The parameters of stream URLs may follow (`?fcc=…`), and a label (`$HD`).",
				value: func(c *serveConfig) value {
					return texts{&c.channel().sources, 0, `a URL such as "rtp://239.1.1.1:5000", of MPEG-TS and not of HLS`, validSource}
				},
			},
			{
				key: "channel.logo", initial: "",
				doc:   "URL of its logo.",
				value: func(c *serveConfig) value { return text{&c.channel().logo, "a URL", oneLine} },
			},
			{
				key: "channel.interface", initial: "",
				doc: "Network interface on which its groups are joined. Empty: that of the top level.",
				value: func(c *serveConfig) value {
					return text{&c.channel().iface, `the name of an interface such as "eth0"`, validInterface}
				},
			},
			{
				key: "channel.fcc", initial: "",
				doc: "Server for fast channel change, `HOST:PORT`.",
				value: func(c *serveConfig) value {
					return text{&c.channel().fcc, `HOST:PORT, such as "192.0.2.1:8027"`, oneLine}
				},
			},
			{
				key: "channel.fcc-type", initial: "",
				doc:   "Dialect of that server: see docs/urls.md.",
				value: func(c *serveConfig) value { return text{&c.channel().fccType, "the name of a dialect", oneLine} },
			},
			{
				key: "channel.fec", initial: int64(0),
				doc:   "Port of the parity stream; 0: none.",
				value: func(c *serveConfig) value { return count{&c.channel().fec, 0, 65535} },
			},
		},
	},
	{
		name:   "playlist",
		doc:    "A list of channels in M3U, from a file or a server. docs/channels.md says what is made of it.",
		grow:   func(c *serveConfig) { c.playlists = append(slices.Clip(c.playlists), playlistConfig{}) },
		origin: func(c *serveConfig) *string { return &c.playlist().origin },
		settings: []setting{
			{
				key: "playlist.source", initial: "",
				doc:   "Path of a file, or a `http://` or `https://` URL. A relative path counts from the directory of the configuration.",
				value: func(c *serveConfig) value { return text{&c.playlist().source, "a path or a URL", oneLine} },
			},
			{
				key: "playlist.refresh", initial: "2h",
				doc: "How often it is read again. SIGHUP does so at once.",
				value: func(c *serveConfig) value {
					return duration{&c.playlist().refresh, 10 * time.Second, 30 * 24 * time.Hour, "only at SIGHUP"}
				},
			},
		},
	},
	{
		name:   "token",
		doc:    "A secret that grants rights. A right that no token grants is everybody's, but for admin, which is then the machine's own. docs/access.md says more.",
		grow:   func(c *serveConfig) { c.tokens = append(slices.Clip(c.tokens), tokenConfig{}) },
		origin: func(c *serveConfig) *string { return &c.token().origin },
		settings: []setting{
			{
				key: "token.name", initial: "",
				doc:   "Who has it, for you.",
				value: func(c *serveConfig) value { return text{&c.token().name, "a name of one line", oneLine} },
			},
			{
				key: "token.secret", initial: "",
				doc:   "The secret itself.",
				value: func(c *serveConfig) value { return secret{&c.token().secret, 8, true} },
			},
			{
				key: "token.rights", initial: []any{"stream"},
				doc: "What it grants: `stream` (play, and the playlist), `view` (page, status, metrics, log), `admin` (disconnect, reload, log level, and the others).",
				value: func(c *serveConfig) value {
					return texts{&c.token().rights, 1, `"stream", "view" or "admin"`, validRight}
				},
			},
			{
				key: "token.expires", initial: "",
				doc:   "When it ends.",
				value: func(c *serveConfig) value { return moment{&c.token().expires} },
			},
		},
	},
}

// listOf returns the list with a name.
func listOf(name string) (list, bool) {
	for _, l := range lists {
		if l.name == name {
			return l, true
		}
	}
	return list{}, false
}

// item adds an item with its defaults to a list.
func (c *serveConfig) item(l list, origin string) {
	l.grow(c)
	*l.origin(c) = origin
	for _, s := range l.settings {
		if err := s.value(c).set(s.initial); err != nil {
			panic("main: default of " + s.key + ": " + err.Error())
		}
	}
}

// validateLists checks what makes an item of a list whole.
func (c *serveConfig) validateLists() error {
	for _, ch := range c.channels {
		if ch.name == "" {
			return fmt.Errorf("%s: channel.name: expected a name, found none", ch.origin)
		}
		if len(ch.sources) == 0 {
			return fmt.Errorf("%s: channel.sources: expected at least one URL, found none", ch.origin)
		}
		for _, s := range ch.entry().Sources {
			path, ok := strings.CutPrefix(s.URL, "rtp://")
			if !ok {
				continue
			}
			target, err := tune.Parse("/rtp/" + path)
			if err == nil && len(target.Ignored) > 0 {
				err = fmt.Errorf("%s", strings.Join(target.Ignored, "; "))
			}
			if err != nil {
				return fmt.Errorf("%s: channel.sources: %s: %w", ch.origin, cut(s.Name()), err)
			}
		}
	}
	for _, p := range c.playlists {
		if p.source == "" {
			return fmt.Errorf("%s: playlist.source: expected a path or a URL, found none", p.origin)
		}
	}
	for i, t := range c.tokens {
		if t.secret == "" {
			return fmt.Errorf("%s: token.secret: expected a secret, found none", t.origin)
		}
		if slices.ContainsFunc(c.tokens[:i], func(o tokenConfig) bool { return o.secret == t.secret }) {
			return fmt.Errorf("%s: token.secret: expected a secret that no other token has, found one that another has", t.origin)
		}
	}
	return nil
}

// entry is what the line-up is told of a channel: its settings become parameters
// of those sources that do not have them.
func (ch *channelConfig) entry() lineup.Entry {
	e := lineup.Entry{Name: ch.name, Group: ch.group, Logo: ch.logo, Origin: ch.origin}
	for _, address := range ch.sources {
		for _, s := range lineup.Sources(address) {
			s.Default("r2h-ifname", ch.iface)
			if s.Scheme() == "rtp" {
				s.Default("fcc", ch.fcc)
				s.Default("fcc-type", ch.fccType)
				if ch.fec != 0 {
					s.Default("fec", fmt.Sprint(ch.fec))
				}
			}
			e.Sources = append(e.Sources, s)
		}
	}
	return e
}

// validSource accepts what a channel can be made of.
func validSource(s string) (string, bool) { return s, len(lineup.Sources(s)) > 0 }

func oneLine(s string) bool { return !strings.ContainsAny(s, "\r\n\x00") && len(s) <= 4096 }

func validRight(s string) (string, bool) { return s, slices.Contains(access.Rights, s) }

// stateDirectory is the directory for what outlives a run: the setting, else systemd's
// (systemd.exec(5), StateDirectory=), else none.
func (c *serveConfig) stateDirectory() string {
	if c.stateDir != "" {
		return c.stateDir
	}
	dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	return dir
}

// beside returns a path that counts from the directory of the configuration.
func beside(origin, path string) string {
	file := origin[:strings.LastIndexByte(origin, ':')]
	if filepath.IsAbs(path) || strings.Contains(path, "://") {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}
