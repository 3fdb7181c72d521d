package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Tests of the whole program in network namespaces. Each has its own three:
//
//	tx: zapcast send, capture               rx: zapcast serve                     vw: viewers (others: on rx's loopback)
//	  peer7  192.0.2.2/24, 192.0.2.3/24 ────── eth7  192.0.2.1/24
//	         2001:db8:7::2/64                        2001:db8:7::1/64
//	  peer8  198.51.100.2/24, .3/24 ────────── eth8  198.51.100.1/24
//	         2001:db8:8::2/64                        2001:db8:8::1/64
//	                                           eth9  203.0.113.1/24 ───────────────── view9  203.0.113.2/24
//
// The test itself stays outside: inside starts what has to be in there. They
// need root. Without it they skip, or fail where ZAPCAST_TEST_NET=1.
type lab struct {
	t          *testing.T
	tx, rx, vw string
}

var labs atomic.Int32

func newLab(t *testing.T) *lab {
	t.Helper()
	unable := t.Skipf
	if os.Getenv("ZAPCAST_TEST_NET") == "1" {
		unable = t.Fatalf
	}
	if os.Geteuid() != 0 {
		unable("network namespaces need root")
	}
	t.Parallel()
	id := fmt.Sprint(os.Getpid(), "-", labs.Add(1))
	l := &lab{t, "zctx" + id, "zcrx" + id, "zcvw" + id}
	for _, name := range []string{l.tx, l.rx, l.vw} {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			unable("no network namespace: ip netns add: %v %s", err, out)
		}
		t.Cleanup(func() { l.ip("netns del " + name) })
		l.ip("-n " + name + " link set lo up")
	}
	l.plug(7)
	l.plug(8)
	l.ip("-n " + l.rx + " link add eth9 type veth peer name view9 netns " + l.vw)
	l.ip("-n " + l.rx + " addr add 203.0.113.1/24 dev eth9")
	l.ip("-n " + l.vw + " addr add 203.0.113.2/24 dev view9")
	l.ip("-n " + l.rx + " link set eth9 up")
	l.ip("-n " + l.vw + " link set view9 up")
	return l
}

// plug makes eth<n> with its peer and addresses.
func (l *lab) plug(n int) {
	l.t.Helper()
	net4 := map[int]string{7: "192.0.2", 8: "198.51.100"}[n]
	l.ip(fmt.Sprintf("-n %s link add eth%d type veth peer name peer%d netns %s", l.rx, n, n, l.tx))
	ends := []struct {
		ns, dev string
		host    int
	}{{l.rx, fmt.Sprint("eth", n), 1}, {l.tx, fmt.Sprint("peer", n), 2}}
	for _, end := range ends {
		l.ip(fmt.Sprintf("-n %s addr add %s.%d/24 dev %s", end.ns, net4, end.host, end.dev))
		l.ip(fmt.Sprintf("-n %s addr add 2001:db8:%d::%d/64 dev %s nodad", end.ns, n, end.host, end.dev))
	}
	l.ip(fmt.Sprintf("-n %s addr add %s.3/24 dev peer%d", l.tx, net4, n))
	for _, end := range ends {
		l.ip("-n " + end.ns + " link set " + end.dev + " up")
	}
	for _, end := range ends {
		eventually(l.t, func() bool {
			out, _ := exec.Command("ip", "-n", end.ns, "-6", "route", "show", "table", "local", "dev", end.dev).Output()
			return strings.Contains(string(out), "ff00::/8")
		}, "IPv6 is up on "+end.dev)
	}
}

func (l *lab) ip(arguments string) {
	l.t.Helper()
	if out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		l.t.Fatalf("ip %s: %v %s", arguments, err, out)
	}
}

// inside makes f run on a thread that is in the namespace and ends with it.
func (l *lab) inside(name string) within {
	return func(f func()) {
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlocked
			var fd int
			if fd, err = unix.Open("/run/netns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
				return
			}
			defer unix.Close(fd)
			if err = unix.Setns(fd, unix.CLONE_NEWNET); err == nil {
				f()
			}
		}()
		<-done
		if err != nil {
			l.t.Errorf("enter namespace %s: %v", name, err)
		}
	}
}

// serve starts the server in rx.
func (l *lab) serve(config string, args ...string) *service {
	l.t.Helper()
	return serve(l.t, l.inside(l.rx), "", config, args...)
}

// watch watches on rx's loopback.
func (l *lab) watch(s *service, path string, mark byte) *reading {
	return s.begin(l.inside(l.rx), path, mark)
}

// send plays a numbered file out in tx, for ever or once.
func (l *lab) send(args string) *process {
	l.t.Helper()
	return runProgram(l.t, l.inside(l.tx), append([]string{"send"}, strings.Fields(args)...)...)
}

// A capture hears what comes in on an interface.
type capture struct {
	mu        sync.Mutex // guards the rest
	reports   []report
	datagrams map[netip.AddrPort][][]byte // UDP payload, by where it goes
}

// A report is a group record of an IGMPv3 report (RFC 3376 §4.2), or an IGMPv2
// report as a record of type 0.
type report struct {
	at      time.Time
	kind    byte
	group   netip.Addr
	sources []netip.Addr
}

// Types of group records.
const (
	modeIsExclude   = 2
	changeToInclude = 3
	changeToExclude = 4
	allowNewSources = 5
	blockOldSources = 6
)

// capture listens from now to the end of the test. If payloads is set it keeps
// the payload of UDP too.
func (l *lab) capture(ns, dev string, payloads bool) *capture {
	l.t.Helper()
	c := &capture{datagrams: map[netip.AddrPort][][]byte{}}
	var fd int
	var err error
	l.inside(ns)(func() {
		var link *net.Interface
		if link, err = net.InterfaceByName(dev); err != nil {
			return
		}
		protocol := binary.NativeEndian.Uint16([]byte{unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff})
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Index}),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}))
	})
	if err != nil {
		l.t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	l.t.Cleanup(func() { close(stop); <-done; unix.Close(fd) })
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, from, err := unix.Recvfrom(fd, buf, 0)
			select {
			case <-stop:
				return
			default:
			}
			if ll, ok := from.(*unix.SockaddrLinklayer); err == nil && ok && ll.Pkttype != unix.PACKET_OUTGOING {
				c.take(buf[:n], payloads)
			}
		}
	}()
	return c
}

func (c *capture) take(b []byte, payloads bool) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return
	}
	header := int(b[0]&0xf) * 4
	to, _ := netip.AddrFromSlice(b[16:20])
	body := b[header:binary.BigEndian.Uint16(b[2:])]
	c.mu.Lock()
	defer c.mu.Unlock()
	switch b[9] {
	case unix.IPPROTO_IGMP:
		switch body[0] {
		case 0x16:
			c.reports = append(c.reports, report{at: time.Now(), group: netip.AddrFrom4([4]byte(body[4:]))})
		case 0x22:
			records := body[8:]
			for range binary.BigEndian.Uint16(body[6:]) {
				r := report{at: time.Now(), kind: records[0], group: netip.AddrFrom4([4]byte(records[4:]))}
				n := int(binary.BigEndian.Uint16(records[2:]))
				for i := range n {
					r.sources = append(r.sources, netip.AddrFrom4([4]byte(records[8+4*i:])))
				}
				c.reports = append(c.reports, r)
				records = records[8+4*n:]
			}
		}
	case unix.IPPROTO_UDP:
		if payloads && len(body) > 8 {
			at := netip.AddrPortFrom(to, binary.BigEndian.Uint16(body[2:]))
			c.datagrams[at] = append(c.datagrams[at], slices.Clone(body[8:]))
		}
	}
}

// heard returns the reports of a kind for a group so far.
func (c *capture) heard(kind byte, group string) (out []report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reports {
		if r.kind == kind && r.group.String() == group {
			out = append(out, r)
		}
	}
	return out
}

// wait waits for a report.
func (c *capture) wait(t *testing.T, kind byte, group string) report {
	t.Helper()
	eventually(t, func() bool { return len(c.heard(kind, group)) > 0 }, fmt.Sprintf("report of type %d for %s", kind, group))
	return c.heard(kind, group)[0]
}

// quiet waits until the kernel has repeated the reports that it repeats: each
// a few times, within a second.
func (c *capture) quiet() {
	const while = 1200 * time.Millisecond
	for {
		c.mu.Lock()
		n := len(c.reports)
		c.mu.Unlock()
		time.Sleep(while)
		c.mu.Lock()
		same := n == len(c.reports)
		c.mu.Unlock()
		if same {
			return
		}
	}
}
