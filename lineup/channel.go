package lineup

import (
	"net/url"
	"strings"

	"zapcast/failover"
	"zapcast/playlist"
)

// A Channel is what a viewer can ask for by name. It is not changed once it is
// in a Table.
type Channel struct {
	// Path is where it is found, decoded and without the first slash:
	// "Group/Name".
	Path string

	Name, Group, Logo string

	// Number is tvg-chno, under which viewers dial it; 0: it has none.
	Number int

	// Sources are tried in this order. There is at least one.
	Sources []Source

	// Origin is what it comes from: "zapcast.toml:12" or the name of a
	// playlist.
	Origin string

	// Switch chooses among the sources.
	Switch *failover.Switch

	// Edition counts the lists of sources that the path has stood for in this
	// run, from 0.
	Edition int
}

// A Source is one way to get a channel.
type Source struct {
	// URL is rtp://GROUP:PORT, rtsp(s)://… or http(s)://…, parameters included.
	URL string

	Label string // "4K"; may be empty
}

// Scheme is "rtp", "rtsp", "rtsps", "http" or "https".
func (s Source) Scheme() string {
	scheme, _, _ := strings.Cut(s.URL, ":")
	return scheme
}

// Name is the URL without passwords.
func (s Source) Name() string {
	if !strings.Contains(s.URL, "@") {
		return s.URL
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return s.Scheme() + "://…"
	}
	if u.User != nil {
		if _, secret := u.User.Password(); secret {
			u.User = url.UserPassword(u.User.Username(), "xxxxx")
		}
	}
	return u.String()
}

// Default adds a parameter to the query of s where it has none of that name.
func (s *Source) Default(key, value string) {
	path, query, _ := strings.Cut(s.URL, "?")
	if value == "" {
		return
	}
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); name == key {
			return
		}
	}
	if query != "" {
		query += "&"
	}
	s.URL = path + "?" + query + key + "=" + url.QueryEscape(value)
}

// Sources returns what a line of a playlist stands for, label included: mostly
// one source; none: nothing that can be opened here.
func Sources(line string) []Source {
	l, err := playlist.Parse([]byte(line))
	if err != nil || len(l.Entries) != 1 {
		return nil
	}
	out, _ := entrySources(&l.Entries[0])
	return out
}

// sourcesOf recognizes a URL line of a list; false: it names no stream that this
// program can open. Other relays' URLs ("http://host:4022/udp/239.1.1.1:5000")
// are taken for the group that they carry, and "a|b", as operators' portals write
// it, for two sources.
func sourcesOf(line, label string) (out []Source, ok bool) {
	for part := range strings.SplitSeq(line, "|") {
		u, ok := sourceURL(strings.TrimSpace(part))
		if !ok {
			return nil, false
		}
		out = append(out, Source{URL: u, Label: label})
	}
	return out, true
}

func sourceURL(s string) (string, bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		if rest, ok := relayed(strings.TrimPrefix(s, "/")); ok {
			return rest, true
		}
		return "", false
	}
	switch scheme = strings.ToLower(scheme); scheme {
	case "rtp", "udp", "igmp":
		return "rtp://" + strings.TrimPrefix(rest, "@"), rest != ""
	case "rtsp", "rtsps":
		return scheme + "://" + rest, rest != ""
	case "http", "https":
		host, path, _ := strings.Cut(rest, "/")
		if inner, ok := relayed(path); ok {
			return inner, true
		}
		name, _, _ := strings.Cut(path, "?")
		name = strings.ToLower(name)
		if host == "" || strings.HasSuffix(name, ".m3u8") || strings.HasSuffix(name, ".mpd") {
			return "", false // HLS and DASH: players do that better
		}
		return scheme + "://" + rest, true
	}
	return "", false
}

// relayed recognizes the path of a URL that asks a relay for a group or for an
// RTSP stream.
func relayed(path string) (string, bool) {
	kind, rest, ok := strings.Cut(path, "/")
	if !ok || rest == "" {
		return "", false
	}
	switch kind {
	case "rtp", "udp":
		address := strings.TrimLeft(rest[strings.LastIndexByte(rest, '@')+1:], "[")
		if address != "" && (strings.HasPrefix(address, "2") || strings.HasPrefix(address, "ff") || strings.HasPrefix(address, "FF")) {
			return "rtp://" + rest, true
		}
	case "rtsp", "rtsps":
		return kind + "://" + rest, true
	}
	return "", false
}

// entrySources lists the sources of an entry, and for each of its lines which
// of them is the line's first; -1: the line is left as it is.
func entrySources(e *playlist.Entry) (sources []Source, firsts []int) {
	for _, s := range e.Sources {
		found, ok := sourcesOf(s.URL, s.Label)
		if !ok {
			firsts = append(firsts, -1)
			continue
		}
		firsts = append(firsts, len(sources))
		sources = append(sources, found...)
	}
	return sources, firsts
}
