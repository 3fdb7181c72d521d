package server

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// share lets several sockets have one port (socket(7), SO_REUSEADDR): one for
// each client, connected to him, so that the kernel tells him apart.
func share(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	})
	if err != nil {
		return err
	}
	return failed
}

// listenShared opens the socket that holds a port that is shared.
func listenShared(port int) (*net.UDPConn, error) {
	config := net.ListenConfig{Control: share}
	c, err := config.ListenPacket(context.Background(), "udp", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

// dialShared opens a socket on a shared port, connected to a client.
func dialShared(from, to netip.AddrPort) (*net.UDPConn, error) {
	dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(from), Control: share}
	c, err := dialer.Dial("udp", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}
