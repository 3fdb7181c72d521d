package rtsp

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deaf is a server at addr that takes no further connection and refuses none: the
// kernel drops what asks for one, since nobody accepts those that are there.
func deaf(t *testing.T, addr netip.AddrPort) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: addr.Addr().As4(), Port: int(addr.Port())}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		conn, err := net.DialTimeout("tcp", addr.String(), 200*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the server at", addr, "takes every connection")
}

// A server's first address does not answer: the next is tried long before the
// time for a connection is over.
func TestDial_silentAddress(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	server := newStubborn(t, func(p *peer) { p.serve(nil, func() { _, _ = p.Write(frames) }) })
	u := server.url("/")
	first, second := netip.MustParseAddr("127.0.0.77"), netip.MustParseAddr("127.0.0.1")
	deaf(t, netip.AddrPortFrom(first, u.Port))
	u.Host = "two.example.net"
	cfg := Config{Timeout: 3 * patience, Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{first, second}, nil
	}}
	began := time.Now()
	source, sink := watch(t, cfg, u, len(ts))
	if spent := time.Since(began); spent < stagger || spent > patience {
		t.Errorf("got the stream after %v, want it a little after %v", spent, stagger)
	}
	if !bytes.Equal(sink.Bytes, ts) {
		t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
	}
	if got := source.session.m.server.Addr(); got != second {
		t.Errorf("got the server %v, want %v", got, second)
	}
}

// Both addresses answer: the second is not asked at all.
func TestDial_firstAddressAnswers(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	server := newStubborn(t, func(p *peer) { p.serve(nil, func() { _, _ = p.Write(frames) }) })
	u := server.url("/")
	other, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.77"), u.Port).String())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	u.Host = "two.example.net"
	cfg := Config{Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.77")}, nil
	}}
	watch(t, cfg, u, len(ts))
	_ = other.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond))
	if conn, err := other.Accept(); err == nil {
		_ = conn.Close()
		t.Error("the second address was asked though the first had answered")
	}
}
