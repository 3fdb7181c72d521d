package ingest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReceiver_groupsThatShareAPortDoNotMix(t *testing.T) {
	lo := loopback(t)
	onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		one := newGroup(t)
		two := netip.AddrPortFrom(one.Addr().Next(), one.Port())
		f1 := open(t, r, FlowSpec{Group: one, Interface: lo})
		f2 := open(t, r, FlowSpec{Group: two, Interface: lo})
		c := sendFrom(t, "127.0.0.1", lo)
		send(t, c, one, "one", "uno")
		send(t, c, two, "two")
		send(t, c, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), one.Port()), "unicast")
		if got, want := receive(t, r, f1, 2), []string{"one", "uno"}; !slices.Equal(got, want) {
			t.Errorf("first group: got %q, want %q", got, want)
		}
		if got, want := receive(t, r, f2, 1), []string{"two"}; !slices.Equal(got, want) {
			t.Errorf("second group: got %q, want %q", got, want)
		}
	})
}

// An any-source flow beside and after source-specific ones hears everybody;
// they hear their sender only.
func TestReceiver_anySourceAfterSourceSpecific(t *testing.T) {
	lo := loopback(t)
	onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		a, b := sendFrom(t, "127.0.0.1", lo), sendFrom(t, "127.0.0.2", lo)
		onlyB := open(t, r, FlowSpec{Group: group, Source: netip.MustParseAddr("127.0.0.2"), Interface: lo})
		all := open(t, r, FlowSpec{Group: group, Interface: lo})
		send(t, a, group, "a1")
		send(t, b, group, "b1")
		send(t, a, group, "a2")
		if got, want := receive(t, r, onlyB, 1), []string{"b1"}; !slices.Equal(got, want) {
			t.Errorf("source-specific: got %q, want %q", got, want)
		}
		if got, want := receive(t, r, all, 3), []string{"a1", "b1", "a2"}; !slices.Equal(got, want) {
			t.Errorf("any source: got %q, want %q", got, want)
		}
		if got, want := status(onlyB).Sender, b.LocalAddr().String(); got != want {
			t.Errorf("sender: got %s, want %s", got, want)
		}
	})
}

func TestReceiver_ipv6(t *testing.T) {
	lo := loopback(t)
	for _, group := range []string{"ff01::7a:1", "ff02::7a:1", "ff05::7a:1", "ff0e::7a:1"} {
		t.Run(group, func(t *testing.T) {
			onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
				c := sendFrom(t, "::1", lo)
				to := netip.AddrPortFrom(netip.MustParseAddr(group), newGroup(t).Port())
				f := open(t, r, FlowSpec{Group: to, Interface: lo})
				only := open(t, r, FlowSpec{Group: to, Source: netip.MustParseAddr("::1"), Interface: lo})
				other := open(t, r, FlowSpec{Group: to, Source: netip.MustParseAddr("2001:db8::1"), Interface: lo})
				if _, err := c.WriteToUDPAddrPort([]byte("six"), to); err != nil {
					t.Skipf("no IPv6 multicast on %s: %v", lo, err)
				}
				for _, f := range []Flow{f, only} {
					if got, want := receive(t, r, f, 1), []string{"six"}; !slices.Equal(got, want) {
						t.Errorf("got %q, want %q", got, want)
					}
				}
				if got := receive(t, r, other, 0); len(got) > 0 {
					t.Errorf("source-specific flow of another sender: got %q", got)
				}
				s := status(f)
				if s.Sender != c.LocalAddr().String() || s.Local != "::1" || s.Interface != lo {
					t.Errorf("sender, local, interface: got %s, %s, %s", s.Sender, s.Local, s.Interface)
				}
			})
		})
	}
}

func TestReceiver_status(t *testing.T) {
	lo := loopback(t)
	onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f := open(t, r, FlowSpec{Group: group, Interface: lo})
		if got := f.Interval(); got != 0 {
			t.Errorf("interval before data: got %s, want 0", got)
		}
		s := status(f)
		if s.Interface != lo || s.Local != "127.0.0.1" || s.Sender != "" || s.Datagrams != 0 || len(s.Warnings) > 0 {
			t.Errorf("status before data: got %+v", s)
		}
		send(t, sendFrom(t, "127.0.0.1", lo), group, "a", "", "b")
		if got, want := receive(t, r, f, 3), []string{"a", "", "b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := status(f).Datagrams; got != 3 {
			t.Errorf("datagrams: got %d, want 3", got)
		}
		if got := f.Interval(); got < minInterval {
			t.Errorf("interval after data: got %s, want at least %s", got, minInterval)
		}
	})
}

func TestReceiver_readsNoMoreThanAsked(t *testing.T) {
	lo := loopback(t)
	onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f := open(t, r, FlowSpec{Group: group, Interface: lo})
		c := sendFrom(t, "127.0.0.1", lo)
		const sent = 300
		var want []string
		for i := range sent {
			want = append(want, fmt.Sprint("datagram ", i))
		}
		send(t, c, group, want...)
		r.Begin(time.Now())
		if datagrams, more := f.Read(0); len(datagrams) > 0 || more {
			t.Errorf("limit 0: got %d datagrams, more %t", len(datagrams), more)
		}
		r.End()
		var got []string
		for end := time.Now().Add(patience); len(got) < sent && time.Now().Before(end); {
			r.Begin(time.Now())
			datagrams, more := f.Read(7)
			if len(datagrams) > 7 || (more && len(datagrams) < 7) {
				t.Fatalf("limit 7: got %d datagrams, more %t", len(datagrams), more)
			}
			for _, d := range datagrams {
				got = append(got, string(d))
			}
			r.End()
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %d datagrams, want the %d that were sent, in order", len(got), sent)
		}
	})
}

func TestReceiver_largeDatagrams(t *testing.T) {
	lo := loopback(t)
	onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f, small := open(t, r, FlowSpec{Group: group, Interface: lo}), open(t, r, FlowSpec{Group: group, Interface: lo})
		c := sendFrom(t, "127.0.0.1", lo)
		size := func(n int) string { return strings.Repeat("x", n) }
		_, plain := r.(*plainReceiver)
		plain = plain || beginsOnRing(r) // which take them as large as they come

		send(t, c, group, size(1316), size(2048), size(2049), size(188))
		want := []string{size(1316), size(2048), size(188)}
		cut := int64(1)
		if plain {
			want = slices.Insert(want, 2, size(2049))
			cut = 0
		}
		if got := receive(t, r, f, len(want)); !slices.Equal(got, want) {
			t.Errorf("first call: got lengths %v, want %v", lengths(got), lengths(want))
		}
		if got := status(f); got.Malformed != cut || got.Datagrams != 4 {
			t.Errorf("got %d cut of %d, want %d of 4", got.Malformed, got.Datagrams, cut)
		}
		want = []string{size(2049), size(9000), size(60000), size(188)}
		send(t, c, group, want...)
		if got := receive(t, r, f, len(want)); !slices.Equal(got, want) {
			t.Errorf("later calls: got lengths %v, want %v", lengths(got), lengths(want))
		}
		if got := status(f).Malformed; got != cut {
			t.Errorf("later calls: %d cut, want %d as before", got, cut)
		}
		receive(t, r, small, 0)
	})
}

func lengths(datagrams []string) (all []int) {
	for _, d := range datagrams {
		all = append(all, len(d))
	}
	return all
}

func TestReceiver_twoSendersAreWarnedOf(t *testing.T) {
	lo := loopback(t)
	onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f := open(t, r, FlowSpec{Group: group, Interface: lo})
		a, b := sendFrom(t, "127.0.0.1", lo), sendFrom(t, "127.0.0.2", lo)
		for range 3 {
			send(t, a, group, "a")
			receive(t, r, f, 1)
			send(t, b, group, "b")
			receive(t, r, f, 1)
		}
		if got := status(f).Warnings; len(got) != 1 || !strings.Contains(got[0], "127.0.0.1") || !strings.Contains(got[0], "127.0.0.2") {
			t.Errorf("warnings: got %q, want one that names both senders", got)
		}
	})
}

func TestReceiver_rejoinKeepsReceiving(t *testing.T) {
	lo := loopback(t)
	onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		for _, source := range []netip.Addr{{}, netip.MustParseAddr("127.0.0.1")} {
			group := newGroup(t)
			f := open(t, r, FlowSpec{Group: group, Source: source, Interface: lo})
			c := sendFrom(t, "127.0.0.1", lo)
			send(t, c, group, "waits")
			f.Rejoin()
			eventually(t, func() bool { return !membershipOf(f).rejoinAsked.Load() }, "the keeper rejoins")
			send(t, c, group, "after")
			if got, want := receive(t, r, f, 2), []string{"waits", "after"}; !slices.Equal(got, want) {
				t.Errorf("source %v: got %q, want %q", source, got, want)
			}
		}
	})
}

func TestReceiver_refusesWhatCannotBeJoined(t *testing.T) {
	lo := loopback(t)
	onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f := func(spec FlowSpec, want string) error {
			t.Helper()
			_, err := r.Open(spec)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("open %v: got error %v, want %q in it", spec, err, want)
			}
			return err
		}
		err := f(FlowSpec{Group: group, Interface: "eth0.4095"}, "on eth0.4095: no such interface")
		if !errors.Is(err, ErrInterface) {
			t.Errorf("missing interface: got %v, want ErrInterface", err)
		}
		f(FlowSpec{}, "no group address")
		f(FlowSpec{Group: netip.MustParseAddrPort("192.0.2.1:5000"), Interface: lo}, "not multicast")
		f(FlowSpec{Group: netip.MustParseAddrPort("[::ffff:239.1.1.1]:5000"), Interface: lo}, "IPv4 address written as IPv6")
		f(FlowSpec{Group: netip.AddrPortFrom(group.Addr(), 0), Interface: lo}, "port 0")
		f(FlowSpec{Group: group, Source: netip.MustParseAddr("2001:db8::1"), Interface: lo}, "different families")
		f(FlowSpec{Group: group, Source: netip.MustParseAddr("239.1.1.1"), Interface: lo}, "not a unicast address")
		f(FlowSpec{Group: group, Source: netip.IPv4Unspecified(), Interface: lo}, "not a unicast address")
	})
}

func TestReceiver_portOfAnotherProgram(t *testing.T) {
	lo := loopback(t)
	onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		port := uint16(c.LocalAddr().(*net.UDPAddr).Port)
		_, err = r.Open(FlowSpec{Group: netip.AddrPortFrom(newGroup(t).Addr(), port), Interface: lo})
		if err == nil {
			t.Error("a port that is not shared: got no error")
		}
	})
}
