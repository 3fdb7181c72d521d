package main

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zapcast/internal/nettest"
)

func TestNetns_viewersShareOneMembership(t *testing.T) {
	l := newLab(t)
	const linger = time.Second
	wire := l.Listen("tx", "peer7")
	s := l.serve("[multicast]\nlinger = \"1s\"\n", "--interface", "eth7")
	l.send(numberedFile(t, 1) + " --rate 2M --loop --interface peer7 --to rtp://239.7.0.1:5000")

	first := l.watch(s, "/rtp/239.7.0.1:5000", 1)
	wire.WaitReport(nettest.ChangeToExclude, "239.7.0.1")
	first.more(t, 100)
	wire.Quiet()
	joins := len(wire.Reports(nettest.ChangeToExclude, "239.7.0.1"))

	second := l.watch(s, "/udp/239.7.0.1:5000/", 1)
	second.more(t, 100)
	first.close()
	second.more(t, 100)
	wire.Quiet()
	if got := len(wire.Reports(nettest.ChangeToExclude, "239.7.0.1")); got != joins {
		t.Errorf("the second viewer: got %d more reports, want none", got-joins)
	}
	if got := wire.Reports(nettest.ChangeToInclude, "239.7.0.1"); len(got) > 0 {
		t.Errorf("the group was left while it was watched: %v", got)
	}
	second.whole(t, "the second viewer, when the first had left")

	left := time.Now()
	second.close()
	leave := wire.WaitReport(nettest.ChangeToInclude, "239.7.0.1")
	if after := leave.At.Sub(left); after < linger || after > linger+time.Second {
		t.Errorf("left %v after the last viewer, want %v", after, linger)
	}
	eventually(t, func() bool { return len(s.status().Channels) == 0 }, "the channel is gone")
}

// Zapping costs each group a join. What it costs in leaves, the linger decides.
func TestNetns_zappingIsBounded(t *testing.T) {
	l := newLab(t)
	wire := l.Listen("tx", "peer7")
	s := l.serve("", "--interface", "eth7")
	const groups = 10
	var args strings.Builder
	args.WriteString(numberedFile(t, 1) + " --rate 1M --loop --interface peer7")
	for i := range groups / 2 { // the others are silent
		args.WriteString(fmt.Sprintf(" --to rtp://239.7.1.%d:5000", i+1))
	}
	l.send(args.String())
	zap := func() {
		for i := range groups {
			r := l.watch(s, fmt.Sprintf("/rtp/239.7.1.%d:5000", i+1), 1)
			time.Sleep(300 * time.Millisecond) // as long as somebody looks who zaps on
			r.close()
		}
	}
	zap()
	zap() // all of them linger
	wire.Quiet()
	for i := range groups {
		group := fmt.Sprintf("239.7.1.%d", i+1)
		// The kernel says everything twice.
		if got := len(wire.Reports(nettest.ChangeToExclude, group)); got < 1 || got > 2 {
			t.Errorf("%s: got %d joins on the wire, want one, said twice", group, got)
		}
		if got := len(wire.Reports(nettest.ChangeToInclude, group)); got > 0 {
			t.Errorf("%s: got %d leaves while it lingers, want none", group, got)
		}
	}
	if got := len(s.status().Channels); got != groups {
		t.Errorf("got %d channels lingering, want %d", got, groups)
	}
	// A stop leaves each once.
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	wire.Quiet()
	for i := range groups {
		group := fmt.Sprintf("239.7.1.%d", i+1)
		if got := len(wire.Reports(nettest.ChangeToInclude, group)); got < 1 || got > 2 {
			t.Errorf("%s: got %d leaves after the stop, want one, said twice", group, got)
		}
	}
}

func TestNetns_groupsOnOnePortDoNotMix(t *testing.T) {
	l := newLab(t)
	s := l.serve("", "--interface", "eth7")
	l.send(numberedFile(t, 1) + " --rate 4M --loop --interface peer7 --to rtp://239.7.0.1:5000")
	l.send(numberedFile(t, 2) + " --rate 4M --loop --interface peer7 --to udp://239.7.0.2:5000")
	one, two := l.watch(s, "/rtp/239.7.0.1:5000", 1), l.watch(s, "/rtp/239.7.0.2:5000", 2)
	one.more(t, 4000)
	two.more(t, 4000)
	one.whole(t, "group one")
	two.whole(t, "group two")
	for _, c := range s.status().Channels {
		if c.Foreign != 0 || c.Lost != 0 || c.Resyncs != 0 {
			t.Errorf("got %+v, want nothing foreign or lost", c)
		}
	}
}

func TestNetns_sourceChoosesTheSender(t *testing.T) {
	l := newLab(t)
	wire := l.Listen("tx", "peer7")
	s := l.serve("", "--interface", "eth7")
	l.send(numberedFile(t, 1) + " --rate 4M --loop --interface peer7 --to rtp://192.0.2.2@232.7.0.1:5000")
	l.send(numberedFile(t, 2) + " --rate 4M --loop --interface peer7 --to rtp://192.0.2.3@232.7.0.1:5000")
	l.send(numberedFile(t, 3) + " --rate 1M --loop --interface peer7 --to rtp://192.0.2.3@239.7.0.9:5000")
	one, two := l.watch(s, "/rtp/192.0.2.2@232.7.0.1:5000", 1), l.watch(s, "/rtp/192.0.2.3:9@232.7.0.1:5000", 2)
	one.more(t, 4000)
	two.more(t, 4000)
	one.whole(t, "sender one")
	two.whole(t, "sender two")
	eventually(t, func() bool {
		var sources []netip.Addr
		for _, r := range wire.Reports(nettest.AllowNewSources, "232.7.0.1") {
			sources = append(sources, r.Sources...)
		}
		return slices.Contains(sources, netip.MustParseAddr("192.0.2.2")) && slices.Contains(sources, netip.MustParseAddr("192.0.2.3"))
	}, "reports that allow both sources")
	for _, c := range s.status().Channels {
		if !strings.HasPrefix(c.ID, c.Sender[:strings.LastIndex(c.Sender, ":")]+"@") {
			t.Errorf("channel %s is sent by %s", c.ID, c.Sender)
		}
	}

	// A plain group afterwards is joined from anybody.
	l.watch(s, "/rtp/239.7.0.9:5000", 3).more(t, 100)
	if got := wire.WaitReport(nettest.ChangeToExclude, "239.7.0.9"); len(got.Sources) > 0 {
		t.Errorf("a plain group after source-specific ones: joined with sources %v", got.Sources)
	}
}

func TestNetns_ipv6(t *testing.T) {
	l := newLab(t)
	s := l.serve("", "--interface", "eth7")
	s.addr = strings.Replace(s.addr, "127.0.0.1", "[::1]", 1)
	l.send(numberedFile(t, 1) + " --rate 4M --loop --interface peer7 --to rtp://[ff0e::7:1]:5000")
	l.send(numberedFile(t, 2) + " --rate 4M --loop --interface peer7 --to rtp://[2001:db8:7::2]@[ff3e::7:1]:5000")
	one, two := l.watch(s, "/rtp/[ff0e::7:1]:5000", 1), l.watch(s, "/rtp/[2001:db8:7::2]@[ff3e::7:1]:5000", 2)
	one.more(t, 4000)
	two.more(t, 4000)
	one.whole(t, "any source")
	two.whole(t, "one source")
	for _, c := range s.status().Channels {
		if c.Interface != "eth7" || c.Local != "2001:db8:7::1" {
			t.Errorf("%s: got %s (%s), want eth7 (2001:db8:7::1)", c.ID, c.Interface, c.Local)
		}
	}
}

func TestNetns_interfaceOfTheRoutingTable(t *testing.T) {
	l := newLab(t)
	l.IP("rx", "route add default via 192.0.2.2")
	l.IP("rx", "route add 239.8.0.0/16 dev eth8")
	s := l.serve("")
	file := numberedFile(t, 1)
	for _, tt := range []struct{ group, peer, iface, local string }{
		{"239.7.0.1:5000", "peer7", "eth7", "192.0.2.1"},
		{"239.8.0.1:5000", "peer8", "eth8", "198.51.100.1"},
	} {
		l.send(file + " --rate 1M --loop --interface " + tt.peer + " --to rtp://" + tt.group)
		l.watch(s, "/rtp/"+tt.group, 1).more(t, 10)
		channels := s.status().Channels
		at := slices.IndexFunc(channels, func(c statusChannel) bool { return strings.HasPrefix(c.ID, tt.group) })
		if at < 0 || channels[at].Interface != tt.iface || channels[at].Local != tt.local {
			t.Errorf("%s: got %+v, want %s (%s)", tt.group, channels, tt.iface, tt.local)
		}
	}

	refused := func(s *service, path string, status int, names string) {
		t.Helper()
		if got, body := s.fetch(path); got != status || !strings.Contains(body, names) {
			t.Errorf("%s: got %d (%s), want %d and the name %s", path, got, body, status, names)
		}
	}
	refused(s, "/rtp/239.7.0.2:5000?r2h-ifname=eth0.12", http.StatusBadRequest, "eth0.12")
	missing := l.serve("", "--interface", "eth0.13")
	refused(missing, "/rtp/239.7.0.2:5000", http.StatusServiceUnavailable, "eth0.13")
	refused(missing, "/api/status", http.StatusOK, "eth0.13")
	missing.says(&missing.stderr, "level=WARN.*eth0\\.13")
}

// As after a re-dial: the same name, another index.
func TestNetns_interfaceComesBackUnderAViewer(t *testing.T) {
	l := newLab(t)
	s := l.serve("", "--interface", "eth7")
	file := numberedFile(t, 1)
	play := func() *process {
		return l.send(file + " --rate 4M --loop --interface peer7 --to rtp://239.7.0.1:5000")
	}
	sender := play()
	viewer := l.watch(s, "/rtp/239.7.0.1:5000", 1)
	viewer.more(t, 2000)
	if err := sender.stop(); err != nil {
		t.Error(err)
	}
	l.IP("rx", "link del eth7")
	eventually(t, func() bool { return len(s.channel().Warnings) > 0 }, "a warning while the interface is away")
	time.Sleep(time.Second)
	l.Plug(7)
	play()
	viewer.more(t, 2000)
	viewer.mu.Lock()
	defer viewer.mu.Unlock()
	if len(viewer.breaks) > 1 || viewer.gap > 5*time.Second {
		t.Errorf("got a pause of %v and breaks %v, want one, within the silence setting", viewer.gap, viewer.breaks)
	}
	if got := s.channel(); len(got.Warnings) > 0 || got.State != "live" {
		t.Errorf("afterwards: got %+v, want no warnings", got)
	}
}

// The refreshing reports are the only ones, and nothing is lost by them.
func TestNetns_refresh(t *testing.T) {
	l := newLab(t)
	const interval = 5 * time.Second // the shortest
	wire := l.Listen("tx", "peer7")
	const config = "[multicast]\nrefresh = \"5s\"\n"
	s := l.serve(config, "--interface", "eth7")
	l.send(numberedFile(t, 1) + " --rate 8M --loop --interface peer7 --to rtp://239.7.0.1:5000")
	viewer := l.watch(s, "/rtp/239.7.0.1:5000", 1)

	// Without the right it says so loudly, and serves.
	weak := serve(t, l.withoutRawSockets("rx"), "", config, "--interface", "eth7")
	weak.says(&weak.stderr, "level=WARN.*CAP_NET_RAW")
	there := l.watch(weak, "/rtp/239.7.0.1:5000", 1)
	there.more(t, 100)
	page := weak.status()
	if !strings.Contains(strings.Join(page.Warnings, "\n"), "CAP_NET_RAW") || len(page.Channels) != 1 ||
		!strings.Contains(strings.Join(page.Channels[0].Warnings, "\n"), "CAP_NET_RAW") {
		t.Errorf("status without CAP_NET_RAW: got %+v, want warnings that name it", page)
	}
	there.whole(t, "the viewer of the server without CAP_NET_RAW")
	if err := weak.stop(); err != nil { // the kernel keeps the group for the other server
		t.Error(err)
	}

	eventually(t, func() bool { return len(wire.Reports(nettest.ModeIsExclude, "239.7.0.1")) >= 2 }, "two refreshes")
	got := wire.Reports(nettest.ModeIsExclude, "239.7.0.1")
	if apart := got[1].At.Sub(got[0].At); apart < interval-time.Second || apart > interval+time.Second {
		t.Errorf("refreshes: got them %v apart, want %v", apart, interval)
	}
	if got := len(wire.Reports(0, "239.7.0.1")); got < 2 {
		t.Errorf("IGMPv2 reports: got %d, want 2", got)
	}
	if got := wire.Reports(nettest.ChangeToInclude, "239.7.0.1"); len(got) > 0 {
		t.Errorf("the group was left: %v", got)
	}
	viewer.more(t, 1000)
	viewer.whole(t, "the viewer")
	if c := s.channel(); len(c.Warnings) > 0 || c.Lost > 0 {
		t.Errorf("got %+v, want no warnings and no losses", c)
	}
}

// withoutRawSockets is inside, for programs that are not to have CAP_NET_RAW.
func (l *lab) withoutRawSockets(name string) within {
	return func(f func()) {
		l.Do(name, func() {
			// Out of the bounding set, execve gives it to nobody (capabilities(7)).
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_NET_RAW, 0, 0, 0); err != nil {
				l.t.Errorf("drop CAP_NET_RAW: %v", err)
			}
			f()
		})
	}
}
