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
	"time"
)

// stagger is how long one address of a server has for itself before the next is
// tried beside it (RFC 8305 §5 says at most 2 s, and recommends 250 ms).
const stagger = 300 * time.Millisecond

// dial connects to the server of u, by the first of its addresses that answers.
func (s *session) dial(ctx context.Context, u URL) (net.Conn, error) {
	addrs, err := s.addresses(ctx, u.Host)
	if err != nil {
		return nil, fail(0, "%s: %v", u, err)
	}
	var refused error
	allowed := addrs[:0]
	for _, addr := range addrs {
		if s.cfg.allows(addr) {
			allowed = append(allowed, addr)
			continue
		}
		refused = fail(statusForbidden, "%s: the address %s is not within the networks that RTSP servers may be in", u, addr)
	}
	if len(allowed) == 0 {
		return nil, refused
	}
	return s.race(ctx, u, allowed)
}

// race connects to the addresses, each beginning when the one before it has failed
// or has had its time. The first connection is kept. Without any, the error is
// that of the last to fail.
func (s *session) race(ctx context.Context, u URL, addrs []netip.Addr) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results, over := make(chan result), make(chan struct{})
	defer close(over)
	connect := func(addr netip.Addr) {
		conn, err := s.connect(ctx, u, netip.AddrPortFrom(addr, u.Port))
		select {
		case results <- result{conn, err}:
		case <-over: // another was first
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	var last error
	for running := 0; running > 0 || len(addrs) > 0; {
		var next <-chan time.Time
		if len(addrs) > 0 {
			go connect(addrs[0])
			addrs, running = addrs[1:], running+1
		}
		if len(addrs) > 0 {
			next = time.After(stagger)
		}
		select {
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			last, running = r.err, running-1
			if ctx.Err() != nil {
				addrs = nil
			}
		case <-next:
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
