package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// patience is how long a test waits for what must come.
const patience = 3 * time.Second

// onBoth runs a test on each receiver that the system has.
func onBoth(t *testing.T, cfg ReceiverConfig, test func(t *testing.T, r Receiver)) {
	for _, plain := range []bool{false, true} {
		name := "sockets"
		if plain {
			name = "plain"
		}
		t.Run(name, func(t *testing.T) {
			cfg := cfg
			cfg.Plain = plain
			r, err := NewReceiver(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := r.Close(); err != nil {
					t.Errorf("close receiver: %v", err)
				}
			})
			test(t, r)
		})
	}
}

func loopback(tb testing.TB) string {
	tb.Helper()
	all, err := net.Interfaces()
	if err != nil {
		tb.Fatal(err)
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp != 0 {
			return i.Name
		}
	}
	tb.Skip("no loopback interface that is up")
	return ""
}

var groups atomic.Uint32

// newGroup returns a group and port that no other test uses.
func newGroup(tb testing.TB) netip.AddrPort {
	tb.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	port := c.LocalAddr().(*net.UDPAddr).Port
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{239, 255, byte(port), byte(groups.Add(1))}), uint16(port))
}

// sendFrom returns a connection that sends multicast by an interface.
func sendFrom(tb testing.TB, source, name string) *net.UDPConn {
	tb.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(source), 0)))
	if err != nil {
		tb.Skipf("no sender on %s: %v", source, err)
	}
	tb.Cleanup(func() { c.Close() })
	link, err := net.InterfaceByName(name)
	if err != nil {
		tb.Fatal(err)
	}
	if netip.MustParseAddr(source).Is4() {
		p := ipv4.NewPacketConn(c)
		err = errors.Join(p.SetMulticastInterface(link), p.SetMulticastLoopback(true))
	} else {
		p := ipv6.NewPacketConn(c)
		err = errors.Join(p.SetMulticastInterface(link), p.SetMulticastLoopback(true))
	}
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func send(tb testing.TB, c *net.UDPConn, to netip.AddrPort, datagrams ...string) {
	tb.Helper()
	for _, d := range datagrams {
		if _, err := c.WriteToUDPAddrPort([]byte(d), to); err != nil {
			tb.Fatalf("send to %s: %v", to, err)
		}
	}
}

func open(tb testing.TB, r Receiver, spec FlowSpec) Flow {
	tb.Helper()
	f, err := r.Open(spec)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Errorf("close flow: %v", err)
		}
	})
	return f
}

// receive reads in ticks until want datagrams have come, and a little longer to
// see that no more do.
func receive(tb testing.TB, r Receiver, f Flow, want int) (got []string) {
	tb.Helper()
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		r.Begin(time.Now())
		datagrams, _ := f.Read(128)
		for _, d := range datagrams {
			got = append(got, string(d))
		}
		r.End()
		if len(got) >= want && time.Until(end) > 30*time.Millisecond {
			end = time.Now().Add(30 * time.Millisecond)
		}
		time.Sleep(time.Millisecond)
	}
	return got
}

func status(f Flow) Status {
	var s Status
	f.Status(&s)
	return s
}

func TestReceiver_groupsThatShareAPortDoNotMix(t *testing.T) {
	lo := loopback(t)
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
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
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
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
			onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
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
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
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
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f := open(t, r, FlowSpec{Group: group, Interface: lo})
		c := sendFrom(t, "127.0.0.1", lo)
		const sent = 300
		var want []string
		for i := range sent {
			want = append(want, fmt.Sprint("datagram ", i))
		}
		send(t, c, group, want...)
		if datagrams, more := f.Read(0); len(datagrams) > 0 || more {
			t.Errorf("limit 0: got %d datagrams, more %t", len(datagrams), more)
		}
		var got []string
		for end := time.Now().Add(patience); len(got) < sent && time.Now().Before(end); {
			datagrams, more := f.Read(7)
			if len(datagrams) > 7 || (more && len(datagrams) < 7) {
				t.Fatalf("limit 7: got %d datagrams, more %t", len(datagrams), more)
			}
			for _, d := range datagrams {
				got = append(got, string(d))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %d datagrams, want the %d that were sent, in order", len(got), sent)
		}
	})
}

func TestReceiver_largeDatagrams(t *testing.T) {
	lo := loopback(t)
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f, small := open(t, r, FlowSpec{Group: group, Interface: lo}), open(t, r, FlowSpec{Group: group, Interface: lo})
		c := sendFrom(t, "127.0.0.1", lo)
		size := func(n int) string { return strings.Repeat("x", n) }
		_, plain := r.(*plainReceiver)

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
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
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
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
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

func eventually(tb testing.TB, is func() bool, what string) {
	tb.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func TestReceiver_refusesWhatCannotBeJoined(t *testing.T) {
	lo := loopback(t)
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
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
		f(FlowSpec{}, "not a multicast group")
		f(FlowSpec{Group: netip.MustParseAddrPort("192.0.2.1:5000"), Interface: lo}, "not a multicast group")
		f(FlowSpec{Group: netip.MustParseAddrPort("[::ffff:239.1.1.1]:5000"), Interface: lo}, "not a multicast group")
		f(FlowSpec{Group: netip.AddrPortFrom(group.Addr(), 0), Interface: lo}, "port 0")
		f(FlowSpec{Group: group, Source: netip.MustParseAddr("2001:db8::1"), Interface: lo}, "cannot be its sender")
		f(FlowSpec{Group: group, Source: netip.MustParseAddr("239.1.1.1"), Interface: lo}, "cannot be its sender")
		f(FlowSpec{Group: group, Source: netip.IPv4Unspecified(), Interface: lo}, "cannot be its sender")
	})
}

func TestReceiver_portOfAnotherProgram(t *testing.T) {
	lo := loopback(t)
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
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

// The mixture of sizes and the bursts of a sender that a receive block counted
// in TS packets would trip over, with a buffer of the usual
// net.core.rmem_default. The sockets are real, the time is not: a busy machine
// must not fail it.
func TestReceiver_burstsWithASmallBuffer(t *testing.T) {
	lo := loopback(t)
	const (
		rmemDefault = 212992
		bursts      = 200
		perBurst    = 64
		bitRate     = 40e6
		longestTick = 16 * time.Millisecond
	)
	onBoth(t, ReceiverConfig{ReadBuffer: rmemDefault / 2}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f := open(t, r, FlowSpec{Group: group, Interface: lo})
		if got := status(f).ReceiveBuffer; got != 0 && got != rmemDefault {
			t.Logf("receive buffer: got %d, wanted %d for this test", got, rmemDefault)
		}
		c := sendFrom(t, "127.0.0.1", lo)
		sizes := []int{188, 376, 940, 1316}
		buf := bytes.Repeat([]byte{0x47}, 1316)
		sent, sentBytes := 0, 0
		burst := func() {
			for range perBurst {
				size := sizes[sent%len(sizes)]
				buf[1], buf[2] = byte(sent>>8), byte(sent)
				if _, err := c.WriteToUDPAddrPort(buf[:size], group); err != nil {
					t.Fatalf("send: %v", err)
				}
				sent++
				sentBytes += size
			}
			if p, ok := f.(*plainFlow); ok { // its goroutine knows no tick
				eventually(t, func() bool { return int(p.tail.Load())+int(p.overflow.Load()) == sent }, "the ring is filled")
			}
		}
		start := time.Unix(1, 0)
		now, nextBurst, next := start, start, 0
		var longest time.Duration
		for sent < bursts*perBurst {
			for ; !nextBurst.After(now); nextBurst = start.Add(time.Duration(float64(sentBytes) * 8 / bitRate * float64(time.Second))) {
				burst()
			}
			r.Begin(now)
			for end := time.Now().Add(patience); next < sent && time.Now().Before(end); {
				datagrams, _ := f.Read(128)
				for _, d := range datagrams {
					if got := int(d[1])<<8 | int(d[2]); got != next&0xffff || len(d) != sizes[next%len(sizes)] {
						t.Fatalf("datagram %d: got number %d and %d bytes (%+v)", next, got, len(d), status(f))
					}
					next++
				}
			}
			r.End()
			pause := min(f.Interval(), longestTick)
			longest = max(longest, pause)
			now = now.Add(pause)
		}
		if s := status(f); next != sent || s.Overflow != 0 || s.Malformed != 0 {
			t.Errorf("got %d datagrams, overflow %d, cut %d; want %d, 0, 0", next, s.Overflow, s.Malformed, sent)
		}
		t.Logf("longest interval %s, at the end %s", longest, f.Interval())
	})
}

func TestReceiver_readDoesNotAllocate(t *testing.T) {
	lo := loopback(t)
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		group := newGroup(t)
		f := open(t, r, FlowSpec{Group: group, Interface: lo})
		c := sendFrom(t, "127.0.0.1", lo)
		payload := bytes.Repeat([]byte{0x47}, 1316)
		now := time.Now()
		round := func() {
			for range 32 {
				if _, err := c.WriteToUDPAddrPort(payload, group); err != nil {
					t.Fatal(err)
				}
			}
			now = now.Add(100 * time.Millisecond)
			r.Begin(now)
			for n := 0; n < 32; {
				datagrams, _ := f.Read(128)
				n += len(datagrams)
				if len(datagrams) == 0 {
					runtime.Gosched()
				}
			}
			r.End()
			f.Interval()
		}
		for range 2 * plainSlots / 32 { // every slot of the ring gets its memory
			round()
		}
		if got := testing.AllocsPerRun(50, round); got != 0 {
			t.Errorf("got %v allocations for 32 datagrams, want 0", got)
		}
	})
}

func TestReceiver_openedFromManyGoroutines(t *testing.T) {
	lo := loopback(t)
	onBoth(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
		flows := make(chan Flow, 64)
		var wg sync.WaitGroup
		for i := range cap(flows) {
			group := newGroup(t)
			wg.Go(func() {
				spec := FlowSpec{Group: group, Interface: lo}
				if i%2 == 1 {
					spec.Source = netip.MustParseAddr("127.0.0.1")
				}
				f, err := r.Open(spec)
				if err != nil {
					t.Error(err)
					return
				}
				flows <- f
			})
		}
		go func() { wg.Wait(); close(flows) }()
		for f := range flows { // the loop: takes what is opened, reads, closes
			r.Begin(time.Now())
			f.Read(128)
			f.Rejoin()
			status(f)
			r.End()
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestReceiver_closeLeavesNothingOpen(t *testing.T) {
	lo := loopback(t)
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprint("plain=", plain), func(t *testing.T) {
			round := func() {
				r, err := NewReceiver(ReceiverConfig{Plain: plain, Refresh: time.Hour, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				for range 8 {
					f, err := r.Open(FlowSpec{Group: newGroup(t), Interface: lo})
					if err != nil {
						t.Fatal(err)
					}
					if err := f.Close(); err != nil {
						t.Error(err)
					}
				}
				for range 8 {
					if _, err := r.Open(FlowSpec{Group: newGroup(t), Interface: "none"}); err == nil {
						t.Error("open on a missing interface: got no error")
					}
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			round() // the runtime's own descriptors come with the first
			goroutines, descriptors := runtime.NumGoroutine(), countDescriptors(t)
			for range 5 {
				round()
			}
			eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines }, "goroutines end")
			if got := countDescriptors(t); got > descriptors {
				t.Errorf("descriptors: got %d, want %d as before", got, descriptors)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	lo := loopback(b)
	for _, plain := range []bool{false, true} {
		b.Run(fmt.Sprint("plain=", plain), func(b *testing.B) {
			r, err := NewReceiver(ReceiverConfig{Plain: plain})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			group := newGroup(b)
			f, err := r.Open(FlowSpec{Group: group, Interface: lo})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			c := sendFrom(b, "127.0.0.1", lo)
			payload := bytes.Repeat([]byte{0x47}, 1328)
			const batch = 64
			var spent time.Duration
			datagrams, calls := 0, 0
			b.ReportAllocs()
			b.SetBytes(batch * int64(len(payload)))
			for b.Loop() {
				for range batch {
					if _, err := c.WriteToUDPAddrPort(payload, group); err != nil {
						b.Fatal(err)
					}
				}
				start := time.Now()
				r.Begin(start)
				for n := 0; n < batch; {
					got, _ := f.Read(128)
					n += len(got)
					datagrams += len(got)
					calls++
				}
				r.End()
				spent += time.Since(start)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(datagrams), "read-ns/packet")
			b.ReportMetric(float64(datagrams)/float64(calls), "packets/batch")
		})
	}
}
