// Package tunetest has a resolver that needs neither a name server nor
// particular interfaces.
package tunetest

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"zapcast/tune"
)

// Resolver knows two interfaces and a few names.
func Resolver() tune.Resolver {
	interfaces := []net.Interface{{Index: 1, Name: "lo"}, {Index: 7, Name: "iptv0"}}
	names := map[string][]string{
		"news.example":   {"239.1.1.1"},
		"both.example":   {"ff15::1", "239.1.1.1"},
		"sender.example": {"198.51.100.7", "2001:db8::7"},
		"unicast.exampl": {"198.51.100.7"},
		"mapped.example": {"::ffff:239.1.1.1"},
	}
	find := func(match func(net.Interface) bool) (*net.Interface, error) {
		for _, i := range interfaces {
			if match(i) {
				return &i, nil
			}
		}
		return nil, errors.New("no such interface")
	}
	return tune.Resolver{
		Lookup: func(_ context.Context, _, host string) (addrs []netip.Addr, err error) {
			for _, a := range names[host] {
				addrs = append(addrs, netip.MustParseAddr(a))
			}
			if addrs == nil {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return addrs, nil
		},
		InterfaceByName: func(name string) (*net.Interface, error) {
			return find(func(i net.Interface) bool { return i.Name == name })
		},
		InterfaceByIndex: func(index int) (*net.Interface, error) {
			return find(func(i net.Interface) bool { return i.Index == index })
		},
	}
}
