package rtsp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// dial connects to the server of u: its addresses are tried one after the other.
func (s *session) dial(ctx context.Context, u URL) (net.Conn, error) {
	addrs, err := s.addresses(ctx, u.Host)
	if err != nil {
		return nil, fail(0, "%s: %v", u, err)
	}
	var last error
	for _, addr := range addrs {
		if !s.cfg.allows(addr) {
			last = fail(statusForbidden, "%s: the address %s is not within the networks that RTSP servers may be in", u, addr)
			continue
		}
		conn, err := s.connect(ctx, u, netip.AddrPortFrom(addr, u.Port))
		if err == nil {
			return conn, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

func (s *session) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.Unmap()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	addrs, err := s.cfg.Lookup(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return nil, fmt.Errorf("cannot resolve %s", quote(host))
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}

func (s *session) connect(ctx context.Context, u URL, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	dialer := net.Dialer{}
	if s.iface != "" {
		dialer.Control = func(_, _ string, raw syscall.RawConn) error { return bindToInterface(raw, s.iface) }
	}
	conn, err := dialer.DialContext(ctx, "tcp", to.String())
	if err == nil && u.TLS {
		secure := tls.Client(conn, &tls.Config{ServerName: u.Host, InsecureSkipVerify: s.cfg.SkipVerify})
		if err = secure.HandshakeContext(ctx); err == nil {
			return secure, nil
		}
		_ = conn.Close()
	}
	var op *net.OpError
	switch {
	case err == nil:
		return conn, nil
	case isTimeout(err) || errors.Is(err, context.DeadlineExceeded):
		return nil, fail(statusTimeout, "%s: no connection to %s within %v", u, to, s.cfg.Timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fail(0, "%s: %s refuses the connection", u, to)
	case errors.As(err, &op) && op.Err != nil:
		return nil, fail(0, "%s: cannot connect to %s: %v", u, to, op.Err)
	}
	return nil, fail(0, "%s: cannot connect to %s: %v", u, to, err)
}

// stunServer resolves the STUN server that is configured.
func (s *session) stunServer(ctx context.Context) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(s.cfg.STUN)
	if err != nil {
		host, port = s.cfg.STUN, stunPort
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("rtsp: STUN server %s: expected HOST:PORT", quote(s.cfg.STUN))
	}
	addrs, err := s.addresses(ctx, host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("rtsp: STUN server: %w", err)
	}
	for _, addr := range addrs {
		if addr.Is4() == s.m.local.Addr().Is4() {
			return netip.AddrPortFrom(addr, uint16(number)), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("rtsp: STUN server %s has no address of the family in use", quote(host))
}

// addrPort is the address of one end of a connection.
func addrPort(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	return netip.AddrPort{}
}
