package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// route asks the kernel's routing table by which interface it would reach the
// group (rtnetlink(7), RTM_GETROUTE). The address of a connected socket would
// not do: a route's preferred source may live on another interface, and an
// interface for television often has no address at all.
func route(group netip.Addr, _ *links) (int, error) {
	index, err := queryRoute(group)
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL):
		return 0, errNoRoute // the last two: a route of type prohibit or blackhole
	case err != nil:
		return 0, fmt.Errorf("look up the route to %s: %w", group, err)
	}
	return index, nil
}

func queryRoute(group netip.Addr) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, routeRequest(group), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	answer := make([]byte, 4096)
	// The kernel has answered before sendto returns.
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
	if err != nil {
		return 0, err
	}
	return routeAnswer(answer[:n])
}

// routeRequest is nlmsghdr, rtmsg and one attribute, the destination.
func routeRequest(group netip.Addr) []byte {
	family := byte(unix.AF_INET)
	if group.Is6() {
		family = unix.AF_INET6
	}
	dst := group.AsSlice()
	native := binary.NativeEndian
	size := unix.SizeofNlMsghdr + unix.SizeofRtMsg + unix.SizeofRtAttr + len(dst)

	b := make([]byte, 0, size)
	b = native.AppendUint32(b, uint32(size))
	b = native.AppendUint16(b, unix.RTM_GETROUTE)
	b = native.AppendUint16(b, unix.NLM_F_REQUEST)
	b = native.AppendUint32(b, 1)                                  // sequence
	b = native.AppendUint32(b, 0)                                  // port: the kernel's
	b = append(b, family, byte(group.BitLen()), 0, 0, 0, 0, 0, 0)  // rtmsg up to its type
	b = native.AppendUint32(b, 0)                                  // rtmsg flags
	b = native.AppendUint16(b, uint16(unix.SizeofRtAttr+len(dst))) // attribute length
	return append(native.AppendUint16(b, unix.RTA_DST), dst...)    // its type and value
}

func routeAnswer(b []byte) (index int, err error) {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return 0, err
	}
	for i := range messages {
		m := &messages[i]
		if m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4 {
			return 0, unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
		}
		if m.Header.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg {
			continue
		}
		attributes, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			return 0, err
		}
		for _, a := range attributes {
			if a.Attr.Type == unix.RTA_OIF && len(a.Value) >= 4 {
				return int(binary.NativeEndian.Uint32(a.Value)), nil
			}
		}
	}
	return 0, unix.ENETUNREACH
}
