package tune

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

const (
	// defaultPort is the UDP port of a URL that names none, as in msd_lite and
	// rtp2httpd.
	defaultPort = 1234

	// MaxTarget bounds a request target, in bytes; longer ones are answered 414.
	MaxTarget = 2048

	// maxName is the longest host name, in bytes (RFC 1035 §2.3.4).
	maxName = 253

	// separators are the bytes that may stand between group and port. udpxy
	// accepts all of them, for players that mangle one or the other.
	separators = ":%~+-^"
)

// Parse takes a request target apart, as it stands in the request: "/rtp/" or
// "/udp/", then the multicast address in the grammar of udpxy, msd_lite or
// rtp2httpd, and the query. The absolute form ("http://host/rtp/…") is accepted.
// Every error is a *StatusError.
func Parse(target string) (Target, error) {
	path, err := Path(target)
	if err != nil {
		return Target{}, err
	}
	rest, ok := cutStream(path)
	if !ok {
		return Target{}, badRequest("expected /rtp/GROUP:PORT or /udp/GROUP:PORT, found %s", Quote(path))
	}
	return parseStream(rest)
}

// Path strips the scheme and authority in front of a path: an HTTP client puts
// them there when it takes us for a proxy (RFC 9112 §3.2.2), an RTSP client
// always (RFC 2326 §6.1). Every error is a *StatusError.
func Path(target string) (string, error) {
	if len(target) > MaxTarget {
		return "", Refuse(http.StatusRequestURITooLong, "the request target has %d bytes, expected at most %d", len(target), MaxTarget)
	}
	for _, scheme := range []string{"http://", "rtsp://", "rtsps://"} {
		if len(target) < len(scheme) || !strings.EqualFold(target[:len(scheme)], scheme) {
			continue
		}
		target = target[len(scheme):]
		i := strings.IndexAny(target, "/?")
		if i < 0 || target[i] == '?' {
			return "/", nil
		}
		return target[i:], nil
	}
	if !strings.HasPrefix(target, "/") {
		return "", badRequest("expected a request target that begins with /, found %s", Quote(target))
	}
	return target, nil
}

// cutStream returns what follows the prefix of a stream URL. Both prefixes mean
// the same: RTP and bare TS are told apart by what arrives.
func cutStream(path string) (rest string, ok bool) {
	for _, prefix := range []string{"/rtp", "/udp"} {
		if rest, ok = strings.CutPrefix(path, prefix); !ok {
			continue
		}
		switch {
		case rest == "" || rest[0] == '?':
			return rest, true
		case rest[0] == '/':
			return rest[1:], true
		}
	}
	return "", false
}

// parseStream parses a stream URL from behind its prefix.
func parseStream(s string) (t Target, err error) {
	s, label := cutLabel(s)
	path, query, hasQuery := strings.Cut(rawPercent(s), "?")
	path, err = url.PathUnescape(path)
	if err != nil {
		return Target{}, badRequest("expected two hexadecimal digits after each %% of the path: %v", err)
	}
	// Some players escape a whole URL, its "?" and "$" with it.
	if !hasQuery {
		path, query, _ = strings.Cut(path, "?")
	}
	if label == "" {
		path, label = cutLabel(path)
	}
	t.Label = unescape(label)
	if err := t.parsePath(path); err != nil {
		return Target{}, err
	}
	if err := t.parseQuery(query); err != nil {
		return Target{}, err
	}
	if t.Group == "" && t.Source == "" {
		if err := checkFlow(t.Spec); err != nil {
			return Target{}, err
		}
	}
	return t, nil
}

// cutLabel cuts the display label off: what follows the last "$", unless that
// begins a template ("${…}") or nothing follows.
func cutLabel(s string) (rest, label string) {
	i := strings.LastIndexByte(s, '$')
	if i < 0 || i == len(s)-1 || s[i+1] == '{' {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// rawPercent makes a ":" of a "%" that udpxy would take for the separator
// ("239.1.1.1%1234"), before the percent signs of escapes are decoded. Where
// both readings are possible ("%2500") it is the separator if the digits are a
// port and end there; "%3A5000" and "%40239.1.1.1" are escapes.
func rawPercent(s string) string {
	head := s
	if i := strings.IndexAny(s, "/?"); i >= 0 {
		head = s[:i]
	}
	start := strings.LastIndexByte(head, '@') + 1
	sep := start + countLeading(head[start:], isAddrByte)
	if sep == len(head) || head[sep] != '%' {
		return s
	}
	if _, err := netip.ParseAddr(head[start:sep]); err != nil {
		return s
	}
	if port, err := strconv.ParseUint(head[sep+1:], 10, 16); err != nil || port == 0 {
		return s
	}
	return s[:sep] + ":" + s[sep+1:]
}

// parsePath parses "[source[:port]@]group[SEP port][anything]", decoded.
func (t *Target) parsePath(s string) error {
	head, _, _ := strings.Cut(s, "/")
	if head == "" {
		return badRequest("expected a multicast address after /rtp/ or /udp/, found none")
	}
	if i := strings.LastIndexByte(head, '@'); i >= 0 {
		if err := t.parseSource(head[:i]); err != nil {
			return err
		}
		s = s[i+1:]
	}
	group, name, rest, err := parseHost(s, "multicast address")
	if err != nil {
		return err
	}
	port := uint16(defaultPort)
	switch {
	case strings.Trim(rest, "/") == "":
	case strings.IndexByte(separators, rest[0]) >= 0:
		// What follows the port is ignored, as in udpxy.
		if port, _, err = parsePort(rest[1:], "port"); err != nil {
			return err
		}
	default:
		return badRequest("expected a port (GROUP:PORT) or nothing after the multicast address, found %s", Quote(rest))
	}
	if zone := group.Zone(); zone != "" {
		t.Spec.Interface, group = zone, group.WithZone("")
	}
	t.Spec.Group, t.Group = netip.AddrPortFrom(group, port), name
	return nil
}

// parseSource parses what stands before the "@". A source port is accepted and
// has no effect: the sender's port plays no part in a join.
func (t *Target) parseSource(s string) error {
	addr, name, rest, err := parseHost(s, "source address before @")
	if err != nil {
		return err
	}
	if rest != "" {
		if rest[0] != ':' {
			return badRequest("expected : or @ after the source address, found %s", Quote(rest))
		}
		if _, rest, err = parsePort(rest[1:], "source port"); err != nil {
			return err
		}
		if rest != "" {
			return badRequest("expected @ after the source port, found %s", Quote(rest))
		}
	}
	t.Spec.Source, t.Source = addr.WithZone(""), name
	return nil
}

// parseHost reads an address or a host name from the front of s.
func parseHost(s, what string) (addr netip.Addr, name, rest string, err error) {
	if strings.HasPrefix(s, "[") {
		inside, rest, ok := strings.Cut(s[1:], "]")
		addr, err := netip.ParseAddr(inside)
		if !ok || err != nil || !addr.Is6() {
			return netip.Addr{}, "", "", badRequest("expected a %s, an IPv6 literal in brackets, found %s", what, Quote(s))
		}
		return addr.Unmap(), "", rest, nil
	}
	n := countLeading(s, isAddrByte)
	if addr, err := netip.ParseAddr(s[:n]); err == nil && (n == len(s) || s[n] == '-' || !isNameByte(s[n])) {
		return addr, "", s[n:], nil
	}
	n = countLeading(s, isNameByte)
	if n == 0 {
		return netip.Addr{}, "", "", badRequest("expected a %s, found %s", what, Quote(s))
	}
	name, rest = s[:n], s[n:]
	// A name whose last label is a number is a mistyped address.
	last := name[strings.LastIndexByte(name, '.')+1:]
	if len(name) > maxName || countLeading(last, isDigit) == len(last) {
		return netip.Addr{}, "", "", badRequest("expected a %s, found %s", what, Quote(name))
	}
	if strings.Count(s, ":") > 1 && strings.Trim(s, "0123456789abcdefABCDEF:.") == "" {
		return netip.Addr{}, "", "", badRequest("expected a %s, IPv6 in brackets ([ADDRESS]:PORT), found %s", what, Quote(s))
	}
	return netip.Addr{}, name, rest, nil
}

// parsePort reads a port from the front of s.
func parsePort(s, what string) (port uint16, rest string, err error) {
	n := countLeading(s, isDigit)
	v, err := strconv.ParseUint(s[:n], 10, 16)
	if err != nil || v == 0 {
		return 0, "", badRequest("expected a %s from 1 to 65535, found %s", what, Quote(s))
	}
	return uint16(v), s[n:], nil
}

// unescape decodes percent escapes, and leaves text as it stands that is not
// well escaped: it is used where that does no harm.
func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

func countLeading(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isAddrByte(c byte) bool { return isDigit(c) || c == '.' }

func isNameByte(c byte) bool {
	return isAddrByte(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_'
}
