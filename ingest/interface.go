package ingest

import (
	"fmt"
	"net"
	"net/netip"
)

// A place is the interface that a flow is joined on, as it was found.
type place struct {
	index    int
	name     string
	local    netip.Addr // first address of the group's family; zero value: none
	warnings []string   // what stands in the way of data
}

// links is the host's interfaces at one moment.
type links struct {
	all   []net.Interface
	addrs func(*net.Interface) ([]net.Addr, error)
	route func(group netip.Addr, l *links) (index int, err error)
}

func readLinks() (*links, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	return &links{all: all, addrs: (*net.Interface).Addrs, route: route}, nil
}

// place finds where spec is to be joined: on the interface that it names, else
// on the one that the routing table has for the group. The error is
// ErrInterface or errNoRoute, or wraps what the system said.
func (l *links) place(spec FlowSpec) (place, error) {
	group := spec.Group.Addr()
	var link *net.Interface
	if spec.Interface != "" {
		link = l.find(func(i *net.Interface) bool { return i.Name == spec.Interface })
	} else {
		index, err := l.route(group, l)
		if err != nil {
			return place{}, err
		}
		link = l.find(func(i *net.Interface) bool { return i.Index == index })
	}
	if link == nil {
		return place{}, ErrInterface
	}

	at := place{index: link.Index, name: link.Name, local: l.local(link, group.Is4())}
	warn := func(format string) { at.warnings = append(at.warnings, fmt.Sprintf(format, link.Name)) }
	switch {
	case link.Flags&net.FlagUp == 0:
		warn("interface %s is down")
	case link.Flags&net.FlagRunning == 0:
		warn("interface %s has no carrier")
	}
	if link.Flags&(net.FlagMulticast|net.FlagLoopback) == 0 {
		warn("interface %s does not do multicast")
	}
	switch {
	case at.local.IsValid():
	case group.Is4():
		warn("interface %s has no IPv4 address: its membership reports may be ignored")
	default:
		warn("interface %s has no IPv6 address: its membership reports may be ignored")
	}
	return at, nil
}

func (l *links) find(is func(*net.Interface) bool) *net.Interface {
	for i := range l.all {
		if is(&l.all[i]) {
			return &l.all[i]
		}
	}
	return nil
}

// local is the first address of the family, one that is good beyond the link
// before one that is not.
func (l *links) local(link *net.Interface, want4 bool) netip.Addr {
	addrs, err := l.addrs(link)
	if err != nil {
		return netip.Addr{}
	}
	var local netip.Addr
	for _, a := range addrs {
		ipnet, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(ipnet.IP)
		if ip = ip.Unmap(); !ok || ip.Is4() != want4 {
			continue
		}
		if !local.IsValid() || (local.IsLinkLocalUnicast() && !ip.IsLinkLocalUnicast()) {
			local = ip
		}
	}
	return local
}
