//go:build !linux

package server

import (
	"net"
	"net/netip"
)

// listenShared opens the socket that holds a port.
func listenShared(port int) (*net.UDPConn, error) {
	return net.ListenUDP("udp", &net.UDPAddr{Port: port})
}

// dialShared opens a socket connected to a client. It has a port of its own here:
// not every system tells connected sockets on one port apart.
func dialShared(from, to netip.AddrPort) (*net.UDPConn, error) {
	return net.DialUDP("udp", &net.UDPAddr{IP: from.Addr().AsSlice()}, net.UDPAddrFromAddrPort(to))
}
