package main

import (
	"net"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// A Unix socket's path fits, with its final zero, into the 108 bytes of
// sockaddr_un (104 on the BSDs).
const maxSocketPath = 103

// normalAddress checks an address to listen on and returns the one way to
// write it: "/path.sock" or "HOST:PORT", with an empty host for every address.
func normalAddress(s string) (string, bool) {
	if strings.HasPrefix(s, "/") {
		return s, len(s) <= maxSocketPath && !strings.ContainsRune(s, 0) && !strings.HasSuffix(s, "/")
	}
	if !strings.Contains(s, ":") {
		s = ":" + s
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || s[0] == '[' && !strings.Contains(host, ":") {
		return "", false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", false
	}
	if host != "" {
		var ok bool
		if host, ok = normalHost(host); !ok {
			return "", false
		}
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), true
}

// normalTCPAddress is normalAddress without sockets.
func normalTCPAddress(s string) (string, bool) {
	if strings.HasPrefix(s, "/") {
		return "", false
	}
	return normalAddress(s)
}

// validUser keeps out what a digest could not carry.
func validUser(s string) bool { return validPassword(s) && !strings.ContainsAny(s, `":\`) }

// validPassword keeps out what nobody can type.
func validPassword(s string) bool {
	return len(s) <= 200 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// validSTUN checks the address of a STUN server.
func validSTUN(s string) bool {
	host := s
	if h, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return false
		}
		host = h
	}
	_, ok := normalHost(host)
	return s == "" || ok
}

// validTransport checks a way in which media may come.
func validTransport(s string) (string, bool) { return s, s == "tcp" || s == "udp" || s == "multicast" }

// validAgent checks a User-Agent: it stands in a header.
func validAgent(s string) bool {
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// normalHost checks a host name or a literal address (an IPv6 one with or
// without brackets) and returns it in lower case and without brackets.
func normalHost(s string) (string, bool) {
	bare := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		bare = s[1 : len(s)-1]
	}
	if addr, err := netip.ParseAddr(bare); err == nil {
		return addr.String(), addr.Is6() || bare == s
	}
	const maxName = 253 // RFC 1035 §2.3.4, without the final dot
	if s == "" || len(s) > maxName {
		return "", false
	}
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_') {
			return "", false
		}
	}
	return strings.ToLower(s), true
}

// validInterface keeps out what no system takes for the name of an interface.
// Whether there is one of that name is asked later, again and again.
func validInterface(s string) bool {
	const maxName = 63 // Linux has 15; other systems use whole words
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == '/' || r == 0x7f }) &&
		s == strings.TrimSpace(s)
}

// validGroups accepts what parseGroups does, and nothing.
func validGroups(s string) bool {
	_, _, ok := parseGroups(s)
	return s == "" || ok
}

// parseGroups parses GROUP/BITS:PORT, with brackets around an IPv6 GROUP/BITS.
func parseGroups(s string) (prefix netip.Prefix, port uint16, ok bool) {
	groups, number, err := net.SplitHostPort(s)
	if err != nil {
		return netip.Prefix{}, 0, false
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 || n%2 != 0 {
		return netip.Prefix{}, 0, false
	}
	prefix, err = netip.ParsePrefix(groups)
	return prefix, uint16(n), err == nil && prefix.Masked().Addr().IsMulticast()
}

// validIPv4 accepts an IPv4 address, or nothing.
func validIPv4(s string) bool {
	addr, err := netip.ParseAddr(s)
	return s == "" || err == nil && addr.Is4()
}

// validOrigin accepts an origin (RFC 6454 §6.2), "*" or nothing.
func validOrigin(s string) bool {
	if s == "" || s == "*" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Scheme+"://"+u.Host == s
}

// openURL returns the address at which a viewer opens a channel through a
// listener: GROUP and PORT, and HOST where it listens everywhere, are left for
// the reader to fill in.
func openURL(scheme string, addr net.Addr) string {
	if addr.Network() == "unix" {
		return scheme + "://HOST/rtp/GROUP:PORT"
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "HOST"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/rtp/GROUP:PORT"
}

// validPrefix accepts the path before every other.
func validPrefix(s string) bool {
	if s == "" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && u.EscapedPath() == s && s[0] == '/' && path.Clean(s) == s && s != "/"
}

// normalNetwork accepts an address or a network.
func normalNetwork(s string) (string, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()).String(), true
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked().String(), err == nil
}

// emptyOr accepts what valid does, and the empty string.
func emptyOr(valid func(string) bool) func(string) bool {
	return func(s string) bool { return s == "" || valid(s) }
}
