package playout

import (
	"fmt"
	"net/netip"
	"strings"
)

// defaultPort is the port of a destination that names none, as in the URLs of
// this field's players and proxies.
const defaultPort = 1234

// Destination is where a stream goes, and how it is wrapped.
type Destination struct {
	// RTP says that every datagram begins with an RTP header; else it holds
	// nothing but TS packets.
	RTP bool
	// Addr is a multicast group, or one host, and the UDP port. The zone of an
	// IPv6 address names the interface to send on.
	Addr netip.AddrPort
	// Source is the address to send from, for receivers that join a source;
	// the zero value leaves the choice to the system.
	Source netip.Addr
}

// ParseDestination reads rtp://GROUP:PORT or udp://GROUP:PORT. IPv6 addresses
// stand in brackets; SOURCE@ before the group sets the sender's address; the
// port is 1234 if there is none; a slash at the end is left out.
func ParseDestination(url string) (Destination, error) {
	bad := func(why string) (Destination, error) {
		return Destination{}, fmt.Errorf("playout: destination %q: %s", url, why)
	}
	scheme, rest, ok := strings.Cut(url, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "rtp" && scheme != "udp" {
		return bad("want rtp://GROUP:PORT or udp://GROUP:PORT")
	}
	d := Destination{RTP: scheme == "rtp"}

	rest = strings.TrimSuffix(strings.TrimPrefix(rest, "@"), "/")
	if source, group, found := strings.Cut(rest, "@"); found {
		addr, err := parseAddr(source)
		if err != nil || addr.IsMulticast() {
			return bad("what stands before the @ is not the address of a host")
		}
		d.Source, rest = addr, group
	}
	if addrPort, err := netip.ParseAddrPort(rest); err == nil {
		d.Addr = netip.AddrPortFrom(addrPort.Addr().Unmap(), addrPort.Port())
	} else if addr, err := parseAddr(rest); err == nil {
		d.Addr = netip.AddrPortFrom(addr, defaultPort)
	} else {
		return bad("want an address and a port from 1 to 65535, as in 239.1.1.1:5000 or [ff15::1]:5000")
	}
	switch {
	case d.Addr.Port() == 0:
		return bad("want a port from 1 to 65535")
	case d.Addr.Addr().IsUnspecified():
		return bad("the address names no group and no host")
	case d.Source.IsValid() && d.Source.Is4() != d.Addr.Addr().Is4():
		return bad("source and group are of different families")
	}
	return d, nil
}

// parseAddr reads an address with or without brackets.
func parseAddr(s string) (netip.Addr, error) {
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	addr, err := netip.ParseAddr(s)
	return addr.Unmap(), err
}

// String writes the destination as ParseDestination reads it.
func (d Destination) String() string {
	scheme := "udp://"
	if d.RTP {
		scheme = "rtp://"
	}
	source := ""
	switch {
	case d.Source.Is4():
		source = d.Source.String() + "@"
	case d.Source.Is6():
		source = "[" + d.Source.String() + "]@"
	}
	return scheme + source + d.Addr.String()
}
