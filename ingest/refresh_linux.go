package ingest

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"golang.org/x/sys/unix"
)

const grantRawSockets = "grant it with `setcap cap_net_raw+ep zapcast` or, under systemd, AmbientCapabilities=CAP_NET_RAW"

// Both options tell routers to look inside although the packet is not for them.
const (
	routerAlert4 = "\x94\x04\x00\x00" // RFC 2113 §2.1
	// RFC 2711 §2.1 with value 0 (MLD) in a hop-by-hop header of 8 bytes: next
	// header (the kernel's to fill in), length, option, padding.
	routerAlert6 = "\x00\x00\x05\x02\x00\x00\x01\x00"
)

// internetworkControl is the precedence that the kernel gives its own reports.
const internetworkControl = 0xc0

// A reporter sends membership reports through raw sockets, past the kernel's
// own IGMP and MLD, which have no way to be asked for one. Where a socket was
// refused the flows of that family carry a warning. Nil: refresh is off.
type reporter struct {
	raw4, raw6     int // -1: refused
	fault4, fault6 string
}

func newReporter(log *slog.Logger) *reporter {
	r := &reporter{}
	var err4, err6 error
	r.raw4, err4 = openRaw(unix.AF_INET, unix.IPPROTO_IGMP)
	r.raw6, err6 = openRaw(unix.AF_INET6, unix.IPPROTO_ICMPV6)
	r.fault4, r.fault6 = refreshFault(err4), refreshFault(err6)
	if err4 != nil {
		log.Warn("membership refresh cannot work for IPv4", "err", r.fault4)
	}
	// A host without IPv6 has no IPv6 flows to warn of.
	if err6 != nil && !errors.Is(err6, unix.EAFNOSUPPORT) {
		log.Warn("membership refresh cannot work for IPv6", "err", r.fault6)
	}
	return r
}

func refreshFault(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "membership refresh cannot work without CAP_NET_RAW: " + grantRawSockets
	default:
		return "membership refresh cannot work: " + err.Error()
	}
}

func openRaw(family, protocol int) (fd int, err error) {
	fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return -1, fmt.Errorf("open raw socket: %w", err)
	}
	// A raw socket is given a copy of all that comes in; this filter takes none.
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	if family == unix.AF_INET {
		err = errors.Join(err,
			unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, routerAlert4),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 1),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, internetworkControl))
	} else {
		err = errors.Join(err,
			unix.SetsockoptString(fd, unix.IPPROTO_IPV6, unix.IPV6_HOPOPTS, routerAlert6),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 1),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP, 0))
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("set up raw socket: %w", err)
	}
	return fd, nil
}

// fault says why reports for the group cannot be sent at all; empty: they can.
func (r *reporter) fault(group netip.Addr) string {
	switch {
	case r == nil:
		return ""
	case group.Is4():
		return r.fault4
	default:
		return r.fault6
	}
}

// send sends what the membership needs: IGMPv3, before it IGMPv2 for any
// source, or MLDv2. It does nothing where fault has something to say.
func (r *reporter) send(what report) error {
	if r.fault(what.group) != "" {
		return nil
	}
	if what.group.Is6() {
		if err := unix.SetsockoptInt(r.raw6, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, what.index); err != nil {
			return fmt.Errorf("choose interface: %w", err)
		}
		to := &unix.SockaddrInet6{Addr: allMLDv2Routers.As16(), ZoneId: uint32(what.index)}
		return unix.Sendto(r.raw6, what.mldV2(), 0, to)
	}
	if err := unix.SetsockoptIPMreqn(r.raw4, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(what.index)}); err != nil {
		return fmt.Errorf("choose interface: %w", err)
	}
	var err error
	if !what.source.IsValid() {
		err = unix.Sendto(r.raw4, what.igmpV2(), 0, &unix.SockaddrInet4{Addr: what.group.As4()})
	}
	return errors.Join(err, unix.Sendto(r.raw4, what.igmpV3(), 0, &unix.SockaddrInet4{Addr: allIGMPv3Routers.As4()}))
}

func (r *reporter) close() error {
	if r == nil {
		return nil
	}
	var err4, err6 error
	if r.raw4 >= 0 {
		err4 = unix.Close(r.raw4)
	}
	if r.raw6 >= 0 {
		err6 = unix.Close(r.raw6)
	}
	return errors.Join(err4, err6)
}
