package ingest

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket is bound to one group and port.
type socket struct {
	fd    int
	index int // of the interface that it is for
	room  int // SO_RCVBUF: bytes of kernel memory its queue may take
}

// openSocket opens a socket that takes datagrams to the group that come in by
// one interface. It has not joined the group yet.
func openSocket(group netip.AddrPort, index, readBuffer int) (*socket, error) {
	family := unix.AF_INET
	if group.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	s := &socket{fd: fd, index: index}
	if err := s.setUp(group, readBuffer); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return s, nil
}

func (s *socket) setUp(group netip.AddrPort, readBuffer int) error {
	// Each socket gets its own copy of a multicast datagram; SO_REUSEPORT, which
	// would be refused beside other programs' sockets, adds nothing.
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("share the port: %w", err)
	}
	// The first needs CAP_NET_ADMIN, the second is capped by net.core.rmem_max.
	if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, readBuffer) != nil {
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, readBuffer)
	}
	room, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return fmt.Errorf("ask for the receive buffer: %w", err)
	}
	s.room = room

	// Bound to the group, a socket gets no other group of the port. Without
	// *_MULTICAST_ALL=0 it would get this one on any interface and from any
	// sender that another socket of the host has joined.
	if group.Addr().Is4() {
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0); err != nil {
			return fmt.Errorf("refuse other memberships: %w", err)
		}
		return bindError(unix.Bind(s.fd, &unix.SockaddrInet4{Addr: group.Addr().As4(), Port: int(group.Port())}))
	}
	// IPv6 does not look at the interface even then (net/ipv6/mcast.c,
	// inet6_mc_check), hence the binding to it. It asks for no privilege since
	// Linux 5.7; before, and without it, groups that were joined on two
	// interfaces would be heard twice. IPV6_MULTICAST_ALL is there since 4.20.
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, s.index)
	_ = unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL, 0)
	if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
		return fmt.Errorf("keep to IPv6: %w", err)
	}
	// The kernel looks at the scope id where the group's scope has need of it.
	return bindError(unix.Bind(s.fd, &unix.SockaddrInet6{
		Addr: group.Addr().As16(), Port: int(group.Port()), ZoneId: uint32(s.index),
	}))
}

func bindError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("a program that does not share the port has it: %w", err)
	case errors.Is(err, unix.ENODEV):
		return ErrInterface
	}
	return fmt.Errorf("bind: %w", err)
}

// filter makes the socket take what a BPF program answers for; without one it
// takes everything. It is called in the loop.
func (s *socket) filter(program ...unix.SockFilter) bool {
	option := uintptr(unix.SO_DETACH_FILTER)
	var p unix.SockFprog
	if len(program) > 0 {
		option = unix.SO_ATTACH_FILTER
		p = unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(s.fd), unix.SOL_SOCKET, option,
		uintptr(unsafe.Pointer(&p)), unsafe.Sizeof(p), 0)
	return errno == 0
}

func (s *socket) close() error { return unix.Close(s.fd) }

// memory asks for the queue's size in bytes of kernel memory and for the count
// of datagrams that were dropped, which wraps at 32 bits (SO_MEMINFO, Linux
// 4.12; include/uapi/linux/sock_diag.h). Older kernels say nothing: zeros.
func (s *socket) memory() (queued int64, dropped uint32) {
	const (
		rmemAlloc = 0 // SK_MEMINFO_RMEM_ALLOC
		drops     = 8 // SK_MEMINFO_DROPS
		vars      = 9
	)
	var info [vars]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, 0
	}
	return int64(info[rmemAlloc]), info[drops]
}

// trueSize estimates what a waiting datagram takes of the receive buffer: its
// bytes, headers, head room and skb_shared_info in a block that is a power of
// two, and the sk_buff (include/linux/skbuff.h, SKB_TRUESIZE). Drivers that
// spend a page or more on a frame are measured, not guessed: see
// socketFlow.sample.
func trueSize(datagram int) int64 {
	const (
		around = 426
		skbuff = 256
		least  = 1024 // small ones come from a cache of odd sizes below it
	)
	return max(least, int64(1)<<bits.Len(uint(datagram+around-1))) + skbuff
}
