package diagnose

import (
	"net"
	"net/netip"
)

// linkOf is what every system tells of an interface.
func linkOf(name string) Link {
	l := Link{Name: name}
	if name == "" {
		return l
	}
	ifi, err := net.InterfaceByName(name)
	if l.Exists = answer(err == nil); err != nil {
		return l
	}
	l.Up = ifi.Flags&net.FlagUp != 0
	if l.Up {
		l.Carrier = answer(ifi.Flags&net.FlagRunning != 0)
	}
	addrs, _ := ifi.Addrs()
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			l.Addresses = append(l.Addresses, prefix.Addr())
		}
	}
	return l
}
