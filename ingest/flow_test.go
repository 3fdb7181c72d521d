package ingest

import (
	"net/netip"
	"strings"
	"testing"
)

func TestFlowSpec_String(t *testing.T) {
	f := func(group, source, device, want string) {
		t.Helper()
		spec := FlowSpec{Group: netip.MustParseAddrPort(group), Interface: device}
		if source != "" {
			spec.Source = netip.MustParseAddr(source)
		}
		if err := spec.Validate(); err != nil {
			t.Errorf("%s: got error %v, want none", want, err)
		}
		if got := spec.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("239.1.1.1:5000", "", "", "239.1.1.1:5000")
	f("224.0.0.0:1", "", "", "224.0.0.0:1")
	f("239.255.255.255:65535", "", "eth0", "239.255.255.255:65535%eth0")
	f("232.1.1.1:5000", "198.51.100.1", "", "198.51.100.1@232.1.1.1:5000")
	f("[ff3e::1]:5000", "", "", "[ff3e::1]:5000")
	f("[FF3E:0::1]:5000", "2001:DB8::1", "eth0.12", "[2001:db8::1]@[ff3e::1]:5000%eth0.12")
	f("[ff02::1]:5000", "fe80::1", "eth0", "[fe80::1]@[ff02::1]:5000%eth0")
}

func TestFlowSpec_Validate(t *testing.T) {
	f := func(group, source, want string) {
		t.Helper()
		var spec FlowSpec
		if group != "" {
			spec.Group = netip.MustParseAddrPort(group)
		}
		if source != "" {
			spec.Source = netip.MustParseAddr(source)
		}
		err := spec.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "ingest: flow ") {
			t.Errorf("%s from %q: got error %v, want one with %q", group, source, err, want)
		}
	}
	f("", "", "no group")
	f("192.0.2.1:5000", "", "not multicast")
	f("223.255.255.255:5000", "", "not multicast")
	f("240.0.0.0:5000", "", "not multicast")
	f("[fe80::1]:5000", "", "not multicast")
	f("[::ffff:239.1.1.1]:5000", "", "written as IPv6")
	f("[ff02::1%eth0]:5000", "", "zone")
	f("239.1.1.1:0", "", "port 0")
	f("239.1.1.1:5000", "2001:db8::1", "different families")
	f("[ff3e::1]:5000", "192.0.2.1", "different families")
	f("239.1.1.1:5000", "::ffff:192.0.2.1", "written as IPv6")
	f("239.1.1.1:5000", "239.1.1.2", "not a unicast")
	f("239.1.1.1:5000", "0.0.0.0", "not a unicast")
	f("239.1.1.1:5000", "255.255.255.255", "not a unicast")
	f("[ff3e::1]:5000", "::", "not a unicast")
	f("[ff3e::1]:5000", "fe80::1%eth0", "zone")
}
