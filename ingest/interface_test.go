package ingest

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fakeLinks is a host with interfaces of all kinds; route answers for unnamed
// ones.
func fakeLinks(route int) *links {
	const good = net.FlagUp | net.FlagRunning | net.FlagMulticast
	addrs := map[string][]string{
		"lo":      {"127.0.0.1/8", "::1/128"},
		"eth0":    {"192.0.2.7/24", "fe80::7/64", "2001:db8::7/64"},
		"eth0.12": {},
		"eth1":    {"198.51.100.4/24", "fe80::4/64"},
		"ppp0":    {"203.0.113.5/32"},
		"eth2":    {"203.0.113.6/24"},
	}
	return &links{
		all: []net.Interface{
			{Index: 1, Name: "lo", Flags: net.FlagUp | net.FlagRunning | net.FlagLoopback},
			{Index: 2, Name: "eth0", Flags: good},
			{Index: 3, Name: "eth0.12", Flags: good},
			{Index: 4, Name: "eth1", Flags: net.FlagMulticast},
			{Index: 5, Name: "ppp0", Flags: net.FlagUp | net.FlagRunning},
			{Index: 6, Name: "eth2", Flags: net.FlagUp | net.FlagMulticast},
		},
		addrs: func(i *net.Interface) (all []net.Addr, err error) {
			for _, a := range addrs[i.Name] {
				ip, ipnet, err := net.ParseCIDR(a)
				if err != nil {
					return nil, err
				}
				all = append(all, &net.IPNet{IP: ip, Mask: ipnet.Mask})
			}
			return all, nil
		},
		route: func(netip.Addr, *links) (int, error) {
			if route == 0 {
				return 0, errNoRoute
			}
			return route, nil
		},
	}
}

func TestLinks_place(t *testing.T) {
	group4, group6 := netip.MustParseAddrPort("239.1.1.1:5000"), netip.MustParseAddrPort("[ff0e::1]:5000")
	addr := netip.MustParseAddr
	tests := map[string]struct {
		spec  FlowSpec
		route int
		want  place
		err   error
	}{
		"named":               {FlowSpec{Group: group4, Interface: "eth0"}, 0, place{2, "eth0", addr("192.0.2.7"), nil}, nil},
		"named, IPv6":         {FlowSpec{Group: group6, Interface: "eth0"}, 0, place{2, "eth0", addr("2001:db8::7"), nil}, nil},
		"loopback":            {FlowSpec{Group: group4, Interface: "lo"}, 0, place{1, "lo", addr("127.0.0.1"), nil}, nil},
		"routed":              {FlowSpec{Group: group4}, 2, place{2, "eth0", addr("192.0.2.7"), nil}, nil},
		"missing":             {FlowSpec{Group: group4, Interface: "eth9"}, 2, place{}, ErrInterface},
		"no route":            {FlowSpec{Group: group4}, 0, place{}, errNoRoute},
		"routed to a missing": {FlowSpec{Group: group4}, 9, place{}, ErrInterface},
		"no address": {
			FlowSpec{Group: group4, Interface: "eth0.12"},
			0,
			place{3, "eth0.12", netip.Addr{}, []string{"interface eth0.12 has no IPv4 address: its membership reports may be ignored"}},
			nil,
		},
		"no address, IPv6": {
			FlowSpec{Group: group6, Interface: "eth0.12"},
			0,
			place{3, "eth0.12", netip.Addr{}, []string{"interface eth0.12 has no IPv6 address: its membership reports may be ignored"}},
			nil,
		},
		"down": {
			FlowSpec{Group: group6, Interface: "eth1"},
			0,
			place{4, "eth1", addr("fe80::4"), []string{"interface eth1 is down"}},
			nil,
		},
		"no multicast": {
			FlowSpec{Group: group4, Interface: "ppp0"},
			0,
			place{5, "ppp0", addr("203.0.113.5"), []string{"interface ppp0 does not do multicast"}},
			nil,
		},
		"no carrier": {
			FlowSpec{Group: group4, Interface: "eth2"},
			0,
			place{6, "eth2", addr("203.0.113.6"), []string{"interface eth2 has no carrier"}},
			nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := fakeLinks(tt.route).place(tt.spec)
			if !errors.Is(err, tt.err) {
				t.Errorf("got error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(place{}), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("place (-want +got):\n%s", diff)
			}
		})
	}
}
