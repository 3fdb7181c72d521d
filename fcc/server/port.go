package server

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// sendBuffer is asked of the kernel for each socket: a tick of 500 Mbit/s, and
// then some.
const sendBuffer = 2 << 20

// A port is a socket that clients are served by.
type port struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	done atomic.Bool
	batch
}

func openPort(at netip.AddrPort) (*port, error) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, fmt.Errorf("fccd: %w", err)
	}
	_ = conn.SetWriteBuffer(sendBuffer) // as much as there is
	_ = conn.SetReadBuffer(sendBuffer)
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("fccd: %w", err)
	}
	return &port{conn: conn, raw: raw}, nil
}

func (p *port) address() netip.AddrPort { return p.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

func (p *port) closed() bool { return p.done.Load() }

func (p *port) close() error {
	p.done.Store(true)
	return p.conn.Close()
}
