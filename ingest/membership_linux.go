package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Protocol-independent membership options (RFC 3678 §5, include/uapi/linux/in.h).
const (
	mcastJoinGroup        = 42
	mcastLeaveGroup       = 45
	mcastJoinSourceGroup  = 46
	mcastLeaveSourceGroup = 47
)

// join makes the socket a member on its interface; leave ends it.
func (s *socket) join(spec FlowSpec) error {
	return s.member(spec, mcastJoinGroup, mcastJoinSourceGroup)
}

func (s *socket) leave(spec FlowSpec) error {
	return s.member(spec, mcastLeaveGroup, mcastLeaveSourceGroup)
}

func (s *socket) member(spec FlowSpec, anySource, oneSource int) error {
	level := unix.IPPROTO_IP
	if spec.Group.Addr().Is6() {
		level = unix.IPPROTO_IPV6
	}
	request := binary.NativeEndian.AppendUint32(nil, uint32(s.index))
	// struct group_req and group_source_req: the addresses that follow are
	// aligned like a pointer.
	request = append(request, make([]byte, unsafe.Sizeof(uintptr(0))-4)...)
	request = appendSockaddr(request, spec.Group.Addr())
	option := anySource
	if spec.Source.IsValid() {
		request = appendSockaddr(request, spec.Source)
		option = oneSource
	}
	return memberError(unix.SetsockoptString(s.fd, level, option, string(request)))
}

// appendSockaddr appends a sockaddr_storage of 128 bytes.
func appendSockaddr(b []byte, a netip.Addr) []byte {
	const (
		size       = 128
		in4Address = 4 // offset in sockaddr_in
		in6Address = 8 // offset in sockaddr_in6
	)
	storage := make([]byte, size)
	if a.Is4() {
		binary.NativeEndian.PutUint16(storage, unix.AF_INET)
		copy(storage[in4Address:], a.AsSlice())
	} else {
		binary.NativeEndian.PutUint16(storage, unix.AF_INET6)
		copy(storage[in6Address:], a.AsSlice())
	}
	return append(b, storage...)
}

// memberError says what the kernel means.
func memberError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENODEV):
		return ErrInterface
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("the interface does not take part in this family's multicast (IPv6 may be switched off): %w", err)
	case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("a limit of the kernel on memberships is reached (net.ipv4.igmp_max_memberships, net.core.optmem_max): %w", err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("the system does not permit it: %w", err)
	}
	return err
}
