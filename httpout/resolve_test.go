package httpout

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// fakeResolver knows two interfaces and a few names.
func fakeResolver() resolver {
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
	return resolver{
		lookup: func(_ context.Context, _, host string) (addrs []netip.Addr, err error) {
			for _, a := range names[host] {
				addrs = append(addrs, netip.MustParseAddr(a))
			}
			if addrs == nil {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return addrs, nil
		},
		byName: func(name string) (*net.Interface, error) {
			return find(func(i net.Interface) bool { return i.Name == name })
		},
		index: func(index int) (*net.Interface, error) {
			return find(func(i net.Interface) bool { return i.Index == index })
		},
	}
}

func TestResolver_flow(t *testing.T) {
	f := func(target, configured, want string) {
		t.Helper()
		parsed, err := Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := fakeResolver().flow(context.Background(), parsed, configured)
		if err != nil {
			var refused *StatusError
			if !errors.As(err, &refused) || refused.Code != 400 || want == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("flow(%q, %q): error %v, want %s", target, configured, err, want)
			}
			return
		}
		if spec.String() != want {
			t.Errorf("flow(%q, %q) = %s, want %s", target, configured, spec, want)
		}
	}
	// The request's interface, then the configured one, then the routing table's.
	f("/rtp/239.1.1.1:5000", "", "239.1.1.1:5000")
	f("/rtp/239.1.1.1:5000", "eth9", "239.1.1.1:5000%eth9")
	f("/rtp/239.1.1.1:5000?r2h-ifname=lo", "eth9", "239.1.1.1:5000%lo")
	f("/rtp/239.1.1.1:5000?ifname=lo", "eth9", "239.1.1.1:5000%lo")
	f("/rtp/239.1.1.1:5000?ifindex=7", "eth9", "239.1.1.1:5000%iptv0")
	f("/rtp/239.1.1.1:5000?r2h-ifname=eth0.12", "eth9", `unknown interface "eth0.12"`)
	f("/rtp/239.1.1.1:5000?ifindex=8", "eth9", "unknown interface: none has the number 8")

	f("/rtp/news.example:5000", "", "239.1.1.1:5000")
	f("/rtp/mapped.example:5000", "", "239.1.1.1:5000")
	f("/rtp/both.example:5000", "", "[ff15::1]:5000")
	f("/rtp/198.51.100.9@both.example:5000", "", "198.51.100.9@239.1.1.1:5000")
	f("/rtp/sender.example@239.1.1.1:5000", "", "198.51.100.7@239.1.1.1:5000")
	f("/rtp/sender.example@[ff3e::1]:5000", "", "[2001:db8::7]@[ff3e::1]:5000")
	f("/rtp/sender.example@news.example:5000", "", "198.51.100.7@239.1.1.1:5000")
	f("/rtp/unicast.exampl:5000", "", "not multicast")
	f("/rtp/nowhere.example:5000", "", `cannot resolve "nowhere.example"`)
	f("/rtp/nowhere.example@239.1.1.1:5000", "", `cannot resolve "nowhere.example"`)
}
