//go:build !linux

package ingest

import (
	"net"
	"net/netip"
)

// route finds the interface by which the system would reach the group: the one
// that has the address of a socket connected to it.
func route(group netip.Addr, l *links) (int, error) {
	const discard = 9 // any port: nothing is sent
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(group, discard)))
	if err != nil {
		return 0, errNoRoute
	}
	defer conn.Close()
	own := conn.LocalAddr().(*net.UDPAddr)
	link := l.find(func(i *net.Interface) bool {
		if own.Zone != "" {
			return i.Name == own.Zone
		}
		addrs, err := l.addrs(i)
		if err != nil {
			return false
		}
		for _, a := range addrs {
			if ipnet, ok := a.(*net.IPNet); ok && ipnet.IP.Equal(own.IP) {
				return true
			}
		}
		return false
	})
	if link == nil {
		return 0, errNoRoute
	}
	return link.Index, nil
}
