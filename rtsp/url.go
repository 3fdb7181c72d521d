package rtsp

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

const (
	defaultPort    = 554
	defaultTLSPort = 322

	// maxURL bounds a URL, in bytes. Signed URLs of operators have 700 to 2000.
	maxURL = 8192
)

// A URL says where a stream is. What follows the authority is kept byte for
// byte: servers sign it, write several "?" into it, and want it back unchanged.
type URL struct {
	TLS      bool   // rtsps
	User     string // decoded; empty: no credentials
	Password string
	Host     string // name or address, IPv6 without brackets
	Port     uint16 // never 0
	Target   string // path and query; empty, or begins with "/" or "?"
}

// ParseURL takes an absolute URL apart, "rtsp://" or "rtsps://" in any case.
func ParseURL(s string) (URL, error) {
	rest, tls := s, false
	switch {
	case len(s) > maxURL:
		return URL{}, fmt.Errorf("rtsp: URL of %d bytes, expected at most %d", len(s), maxURL)
	case hasPrefixFold(s, "rtsp://"):
		rest = s[len("rtsp://"):]
	case hasPrefixFold(s, "rtsps://"):
		rest, tls = s[len("rtsps://"):], true
	default:
		return URL{}, fmt.Errorf("rtsp: expected rtsp:// or rtsps://, found %s", quote(s))
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }); i >= 0 {
		return URL{}, fmt.Errorf("rtsp: URL with a blank or control character: %s", quote(s))
	}
	u := URL{TLS: tls, Port: defaultPort}
	if tls {
		u.Port = defaultTLSPort
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, u.Target = rest[:i], rest[i:]
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, password, _ := strings.Cut(authority[:i], ":")
		u.User, u.Password = unescape(user), unescape(password)
		authority = authority[i+1:]
		if strings.ContainsFunc(u.User+u.Password, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return URL{}, errors.New("rtsp: control character in the credentials of the URL")
		}
	}
	return u, u.parseHost(authority)
}

func (u *URL) parseHost(s string) error {
	port, hasPort := "", false
	if inside, ok := strings.CutPrefix(s, "["); ok {
		host, rest, closed := strings.Cut(inside, "]")
		port, hasPort = strings.CutPrefix(rest, ":")
		if !closed || net.ParseIP(host) == nil || rest != "" && !hasPort {
			return fmt.Errorf("rtsp: expected an IPv6 address in brackets, found %s", quote(s))
		}
		u.Host = host
	} else {
		u.Host, port, hasPort = strings.Cut(s, ":")
	}
	if u.Host == "" || len(u.Host) > 253 {
		return fmt.Errorf("rtsp: expected a host, found %s", quote(s))
	}
	if hasPort && port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("rtsp: expected a port from 1 to 65535, found %s", quote(port))
		}
		u.Port = uint16(n)
	}
	return nil
}

// String returns the URL as it is sent to the server: without credentials, and
// without the port where it is the scheme's own.
func (u URL) String() string { return u.root() + u.Target }

// root is scheme and authority.
func (u URL) root() string {
	scheme, port := "rtsp://", uint16(defaultPort)
	if u.TLS {
		scheme, port = "rtsps://", defaultTLSPort
	}
	host := u.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Port != port {
		host += ":" + strconv.Itoa(int(u.Port))
	}
	return scheme + host
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// unescape decodes percent escapes, and leaves text as it stands that is not
// well escaped.
func unescape(s string) string {
	if d, err := url.PathUnescape(s); err == nil {
		return d
	}
	return s
}

// quote quotes what was found, shortened, for an error text.
func quote(s string) string {
	const most = 80
	if s == "" {
		return "nothing"
	}
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

// setupURL is where SETUP goes: the control attribute of the SDP seen from the
// base that the answer to DESCRIBE names. The rule is that of the players whom
// operators' servers were made for, and purely textual: a base such as
// "…/x.sdp?token=1/" yields "…?token=1/trackID=2", and that is what such a server
// expects. docs/rtsp.md, "The URL of SETUP", has the table.
func setupURL(request URL, base, control string) string {
	switch {
	case control == "" || control == "*":
		return request.String()
	case hasPrefixFold(control, "rtsp://") || hasPrefixFold(control, "rtsps://"):
		return control
	}
	switch {
	case base == "":
		base = request.String()
	case strings.HasPrefix(base, "/"):
		base = request.root() + base
	case !hasPrefixFold(base, "rtsp://") && !hasPrefixFold(base, "rtsps://"):
		base = replaceLast(request.String(), base)
	}
	switch slash := strings.HasSuffix(base, "/"); {
	case slash:
		return base + strings.TrimPrefix(control, "/")
	case control[0] == '/' || control[0] == '?':
		return base + control
	}
	return replaceLast(base, control)
}

// replaceLast puts control in the place of base's last path segment. The query
// goes with it; slashes in it are none of a path.
func replaceLast(base, control string) string {
	path, _, _ := strings.Cut(base, "?")
	authority := strings.Index(path, "://") + len("://")
	if i := strings.LastIndexByte(path, '/'); i >= authority {
		return path[:i+1] + control
	}
	return path + "/" + control
}
