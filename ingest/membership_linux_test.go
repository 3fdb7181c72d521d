package ingest

import (
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"zapcast/internal/nettest"
)

// is tells a report of one group by the type of its record.
func is(kind byte, spec FlowSpec) func(nettest.Packet) bool {
	return func(p nettest.Packet) bool {
		return slices.ContainsFunc(p.Reports(), func(r nettest.Report) bool {
			if r.Kind != kind || r.Group != spec.Group.Addr() {
				return false
			}
			return (len(r.Sources) == 0 && !spec.Source.IsValid()) || slices.Equal(r.Sources, []netip.Addr{spec.Source})
		})
	}
}

// flows of each family and kind.
var netnsSpecs = map[string]FlowSpec{
	"IPv4, any source": {Group: netip.MustParseAddrPort("239.7.0.1:5000"), Interface: "eth7"},
	"IPv4, one source": {Group: netip.MustParseAddrPort("232.7.0.1:5000"), Source: netip.MustParseAddr("192.0.2.2"), Interface: "eth7"},
	"IPv6, any source": {Group: netip.MustParseAddrPort("[ff0e::7:1]:5000"), Interface: "eth7"},
	"IPv6, one source": {Group: netip.MustParseAddrPort("[ff3e::7:1]:5000"), Source: netip.MustParseAddr("2001:db8:7::2"), Interface: "eth7"},
}

// own is the sender's address of the flow's family.
func own(spec FlowSpec) string {
	if spec.Group.Addr().Is4() {
		return "192.0.2.2"
	}
	return "2001:db8:7::2"
}

func TestNetns_joinsAndLeaves(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
			change := func(spec FlowSpec) (join, leave func(nettest.Packet) bool) {
				if spec.Source.IsValid() {
					return is(nettest.AllowNewSources, spec), is(nettest.BlockOldSources, spec)
				}
				return is(nettest.ChangeToExclude, spec), is(nettest.ChangeToInclude, spec)
			}
			wires, flows := map[string]*nettest.Ear{}, map[string]Flow{}
			for name, spec := range netnsSpecs {
				wires[name] = l.capture(7)
				f, err := r.Open(spec)
				if err != nil {
					t.Fatal(err)
				}
				flows[name] = f
				join, _ := change(spec)
				wires[name].Wait(name+": the join", join)
				send(t, l.sender(t, 7, own(spec)), spec.Group, "data")
				if got := receive(t, r, f, 1); !slices.Equal(got, []string{"data"}) {
					t.Errorf("%s: got %q, want data", name, got)
				}
			}
			// The kernel repeats a report a few times, each within a second.
			for _, wire := range wires {
				wire.Quiet()
			}
			for name, spec := range netnsSpecs {
				flows[name].Rejoin()
				// Left and joined at once, the group's leave does not get out.
				join, leave := change(spec)
				wires[name].Wait(name+": the join of a rejoin", join)
				if err := flows[name].Close(); err != nil {
					t.Error(err)
				}
				wires[name].Wait(name+": the leave", leave)
			}
		})
	})
}

func TestNetns_refresh(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		onEach(t, ReceiverConfig{Refresh: 150 * time.Millisecond}, func(t *testing.T, r Receiver) {
			for name, spec := range netnsSpecs {
				t.Run(name, func(t *testing.T) {
					wire := l.capture(7)
					f := open(t, r, spec)
					state, leave := byte(modeIsExclude), byte(nettest.ChangeToInclude)
					if spec.Source.IsValid() {
						state, leave = modeIsInclude, nettest.BlockOldSources
					}
					check := func(what string, to netip.Addr, wanted func(nettest.Packet) bool) {
						t.Helper()
						h, before := wire.Wait(what, wanted)
						if h.To.Addr() != to || h.Hops != 1 || !h.RouterAlert || !h.ChecksumOK {
							t.Errorf("%s: got %+v, want it to %s, 1 hop, router alert, checksum right", what, h, to)
						}
						if to.Is6() && !h.From.Addr().IsLinkLocalUnicast() {
							t.Errorf("%s: got it from %s, want a link-local address", what, h.From.Addr())
						}
						if slices.ContainsFunc(before, is(leave, spec)) {
							t.Errorf("%s: the group was left before it", what)
						}
					}
					group := spec.Group.Addr()
					for range 2 {
						if group.Is4() && !spec.Source.IsValid() {
							check("IGMPv2 report", group, func(p nettest.Packet) bool {
								return slices.ContainsFunc(p.Reports(), func(r nettest.Report) bool { return r.Kind == 0 && r.Group == group })
							})
						}
						to := allIGMPv3Routers
						if group.Is6() {
							to = allMLDv2Routers
						}
						check("state report", to, is(state, spec))
					}
					if got := status(f).Warnings; len(got) > 0 {
						t.Errorf("warnings: got %q, want none", got)
					}
				})
			}
		})
	})
}

// As after a re-dial: the same name, another index.
func TestNetns_interfaceComesBack(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
			flows := map[string]Flow{}
			for name, spec := range netnsSpecs {
				flows[name] = open(t, r, spec)
			}
			routed := FlowSpec{Group: netip.MustParseAddrPort("239.7.0.9:5000")}
			l.IP("rx", "route replace 239.7.0.9 dev eth7")
			flows["routed"] = open(t, r, routed)
			scoped := FlowSpec{Group: netip.MustParseAddrPort("[ff02::7:1]:5000"), Interface: "eth7"}
			flows["IPv6, of the link"] = open(t, r, scoped)
			specs := map[string]FlowSpec{"routed": routed, "IPv6, of the link": scoped}
			maps.Copy(specs, netnsSpecs)

			l.IP("rx", "link del eth7")
			for name, f := range flows {
				eventually(t, func() bool { return len(status(f).Warnings) > 0 }, name+": a warning while the interface is away")
			}
			l.Plug(7)
			l.IP("rx", "route add 239.7.0.9 dev eth7")
			back := time.Now()
			c4, c6 := l.sender(t, 7, "192.0.2.2"), l.sender(t, 7, "2001:db8:7::2")
			for name, f := range flows {
				c := c4
				if specs[name].Group.Addr().Is6() {
					c = c6
				}
				got := 0
				eventually(t, func() bool {
					send(t, c, specs[name].Group, "data")
					r.Begin(time.Now())
					datagrams, _ := f.Read(128)
					r.End()
					got += len(datagrams)
					return got > 0
				}, name+": data after the interface came back")
				if got := status(f).Warnings; len(got) > 0 {
					t.Errorf("%s: warnings %q, want none", name, got)
				}
			}
			if took := time.Since(back); took > 3*time.Second {
				t.Errorf("data again after %s, want within 3 s", took)
			}
		})
	})
}

func TestNetns_twoSenders(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
			group := netip.MustParseAddrPort("232.7.0.2:5000")
			a, b := l.sender(t, 7, "192.0.2.2"), l.sender(t, 7, "192.0.2.3")
			fromA := open(t, r, FlowSpec{Group: group, Source: netip.MustParseAddr("192.0.2.2"), Interface: "eth7"})
			fromB := open(t, r, FlowSpec{Group: group, Source: netip.MustParseAddr("192.0.2.3"), Interface: "eth7"})
			all := open(t, r, FlowSpec{Group: group, Interface: "eth7"})
			for range 3 {
				send(t, a, group, "a")
				send(t, b, group, "b")
			}
			for _, tt := range []struct {
				f    Flow
				want string
			}{{fromA, "aaa"}, {fromB, "bbb"}, {all, "ababab"}} {
				if got := strings.Join(receive(t, r, tt.f, len(tt.want)), ""); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			}
		})
	})
}

func TestNetns_routingTableChooses(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		l.IP("rx", "route add default via 192.0.2.2")
		l.IP("rx", "route add 239.8.0.1 dev eth8")
		// A preferred source that lives elsewhere must not mislead.
		l.IP("rx", "route add 239.8.0.2 dev eth8 src 192.0.2.1")
		onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
			f := func(group, iface, local string) {
				t.Helper()
				s := status(open(t, r, FlowSpec{Group: netip.MustParseAddrPort(group)}))
				if s.Interface != iface || s.Local != local {
					t.Errorf("%s: got %s (%s), want %s (%s)", group, s.Interface, s.Local, iface, local)
				}
			}
			f("239.7.0.1:5000", "eth7", "192.0.2.1")
			f("239.8.0.1:5000", "eth8", "198.51.100.1")
			f("239.8.0.2:5000", "eth8", "198.51.100.1")

			l.IP("rx", "-6 route replace ff0e::8:1/128 dev eth8 table local metric 10")
			f("[ff0e::8:1]:5000", "eth8", "2001:db8:8::1")

			spec := FlowSpec{Group: netip.MustParseAddrPort("239.8.0.1:5000")}
			flow := open(t, r, spec)
			wire := l.capture(7)
			send(t, l.sender(t, 8, "198.51.100.2"), spec.Group, "by eth8")
			send(t, l.sender(t, 7, "192.0.2.2"), spec.Group, "astray")
			if got := receive(t, r, flow, 1); !slices.Equal(got, []string{"by eth8"}) {
				t.Errorf("got %q, want what came by eth8", got)
			}
			l.IP("rx", "route replace 239.8.0.1 dev eth7")
			defer l.IP("rx", "route replace 239.8.0.1 dev eth8")
			eventually(t, func() bool { return status(flow).Interface == "eth7" }, "the flow follows the route")
			wire.Wait("the join on eth7", is(nettest.ChangeToExclude, spec))
			send(t, l.sender(t, 7, "192.0.2.2"), spec.Group, "by eth7")
			send(t, l.sender(t, 8, "198.51.100.2"), spec.Group, "astray")
			if got := receive(t, r, flow, 1); !slices.Equal(got, []string{"by eth7"}) {
				t.Errorf("got %q, want what came by eth7", got)
			}
		})
	})
}

func TestNetns_interfacesThatWillNotDo(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		l.IP("rx", "link add eth7.12 type veth peer name peer12 netns "+l.Name("tx"))
		l.IP("rx", "link set eth7.12 addrgenmode none up")
		l.IP("rx", "link add eth7.13 type veth peer name peer13 netns "+l.Name("tx"))
		l.IP("rx", "link set eth7.13 multicast off up")
		l.IP("rx", "link set eth8 down")
		onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
			group := netip.MustParseAddrPort("239.7.0.1:5000")
			refused := func(spec FlowSpec, want string) {
				t.Helper()
				if _, err := r.Open(spec); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want %q in it", err, want)
				}
			}
			refused(FlowSpec{Group: group, Interface: "eth9"}, "239.7.0.1:5000 on eth9: no such interface")
			refused(FlowSpec{Group: group}, "239.7.0.1:5000: no route to the group: name an interface with --interface")

			warned := func(iface, want string) Flow {
				t.Helper()
				f := open(t, r, FlowSpec{Group: group, Interface: iface})
				if got := strings.Join(status(f).Warnings, "; "); !strings.Contains(got, want) {
					t.Errorf("%s: got warnings %q, want %q", iface, got, want)
				}
				return f
			}
			warned("eth7.12", "interface eth7.12 has no IPv4 address")
			good := open(t, r, FlowSpec{Group: group, Interface: "eth7"})
			flagless := warned("eth7.13", "interface eth7.13 does not do multicast")
			if warnings := status(good).Warnings; len(warnings) > 0 {
				t.Errorf("eth7 beside it: got warnings %q, want none", warnings)
			}
			send(t, l.sender(t, 7, "192.0.2.2"), group, "data")
			if got := receive(t, r, good, 1); !slices.Equal(got, []string{"data"}) {
				t.Errorf("eth7 beside an interface without multicast: got %q, want data", got)
			}
			receive(t, r, flagless, 0)
			f := warned("eth8", "interface eth8 is down")
			l.IP("rx", "link set eth8 up")
			defer l.IP("rx", "link set eth8 down")
			eventually(t, func() bool { return len(status(f).Warnings) == 0 }, "the warning goes when the interface is up")
			c := l.sender(t, 8, "198.51.100.2")
			eventually(t, func() bool {
				send(t, c, group, "data")
				r.Begin(time.Now())
				defer r.End()
				datagrams, _ := f.Read(1)
				return len(datagrams) > 0
			}, "data once the interface is up")
		})
	})
}

func TestNetns_ipv6SwitchedOff(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/eth8/disable_ipv6", []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
		onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
			spec := FlowSpec{Group: netip.MustParseAddrPort("[ff0e::8:1]:5000"), Interface: "eth8"}
			f, err := r.Open(spec)
			if err == nil {
				if got := status(f).Warnings; len(got) == 0 {
					t.Error("IPv6 is off on the interface: got neither error nor warning")
				}
				f.Close()
				return
			}
			if !strings.Contains(err.Error(), "on eth8: ") {
				t.Errorf("got error %v, want it to name eth8", err)
			}
		})
	})
}

// A group that is joined on two interfaces is heard once on each.
func TestNetns_interfacesDoNotMix(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
			for _, group := range []string{"239.7.0.1:5000", "[ff02::7:1]:5000", "[ff05::7:1]:5000", "[ff0e::7:1]:5000", "[ff3e::7:1]:5000"} {
				to := netip.MustParseAddrPort(group)
				source7, source8 := "2001:db8:7::2", "2001:db8:8::2"
				if to.Addr().Is4() {
					source7, source8 = "192.0.2.2", "198.51.100.2"
				}
				f7, f8 := open(t, r, FlowSpec{Group: to, Interface: "eth7"}), open(t, r, FlowSpec{Group: to, Interface: "eth8"})
				send(t, l.sender(t, 7, source7), to, "seven")
				send(t, l.sender(t, 8, source8), to, "eight")
				if got := receive(t, r, f7, 1); !slices.Equal(got, []string{"seven"}) {
					t.Errorf("%s on eth7: got %q", group, got)
				}
				if got := receive(t, r, f8, 1); !slices.Equal(got, []string{"eight"}) {
					t.Errorf("%s on eth8: got %q", group, got)
				}
			}
		})
	})
}

func TestNetns_ipv6Loopback(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		l.IP("rx", "-6 route add local ff00::/8 dev lo table local metric 128")
		TestReceiver_ipv6(t)
	})
}
