package diagnose

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestListed(t *testing.T) {
	const igmp = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n" +
		"1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n" +
		"2\teth1      :     2      V2\n\t\t\t\t010101EF     1 0:00000000\t\t0\n\t\t\t\t010000E0     1 0:00000000\t\t0\n" +
		"3\teth1.85   :     1      V3\n\t\t\t\t020101EF     1 0:00000000\t\t0\n"
	for _, tt := range []struct {
		name, group string
		want        bool
	}{
		{"eth1", "239.1.1.1", true},
		{"eth1", "239.1.1.2", false},
		{"eth1.85", "239.1.1.2", true},
		{"lo", "239.1.1.1", false},
	} {
		if got := listed4(igmp, tt.name, netip.MustParseAddr(tt.group)); got != tt.want {
			t.Errorf("%s on %s: got %v, want %v", tt.group, tt.name, got, tt.want)
		}
	}
	const igmp6 = "1    lo              ff020000000000000000000000000001     1 0000000C 0\n2    eth1            ff150000000000000000000000000001     1 00000004 0\n"
	if !listed6(igmp6, "eth1", netip.MustParseAddr("ff15::1")) || listed6(igmp6, "lo", netip.MustParseAddr("ff15::1")) {
		t.Error("/proc/net/igmp6 is misread")
	}
}

func TestCounter(t *testing.T) {
	const netstat = "TcpExt: SyncookiesSent IPReversePathFilter TCPTimeouts\nTcpExt: 0 42 7\nIpExt: InMcastPkts\nIpExt: 9\n"
	if got, known := counter(netstat, "TcpExt", "IPReversePathFilter"); got != 42 || !known {
		t.Errorf("got %d, %v, want 42", got, known)
	}
	if _, known := counter(netstat, "TcpExt", "Nothing"); known {
		t.Error("a counter that is not there is known")
	}
	if _, known := (system{}).pathDrops(); !known {
		t.Error("this machine's /proc/net/netstat is misread")
	}
}

// rawSockets skips a test that may not open them.
func rawSockets(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	if err != nil {
		if os.Getenv("ZAPCAST_TEST_NET") == "1" {
			t.Fatal(err)
		}
		t.Skipf("needs CAP_NET_RAW: %v", err)
	}
	unix.Close(fd)
}

// Packets for the group are seen although nobody has joined it or listens on
// the port, and those of other groups are not.
func TestWire(t *testing.T) {
	rawSockets(t)
	for _, tt := range []struct{ network, group, other string }{
		{"udp4", "239.255.77.8:5000", "239.255.77.7:5000"},
		{"udp6", "[ff11::4d:8%lo]:5000", "[ff11::4d:7%lo]:5000"},
	} {
		conns := []net.Conn{}
		for _, to := range []string{tt.group, strings.Replace(tt.group, ":5000", ":5002", 1), tt.other} {
			c, err := dialOnLoopback(tt.network, to)
			if err != nil {
				t.Skipf("%s: %v", tt.network, err)
			}
			defer c.Close()
			conns = append(conns, c)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan Wire)
		group := netip.MustParseAddrPort(strings.Replace(tt.group, "%lo", "", 1))
		go func() { done <- system{}.wire(ctx, "lo", group, 20*time.Second) }()
		const each = 50
		for range each {
			time.Sleep(time.Millisecond) // while the look begins, and goes on
			for _, c := range conns {
				_, _ = c.Write([]byte("a packet"))
			}
		}
		cancel()
		w := <-done
		if !w.Looked || w.OnPort == 0 || w.Packets != 2*w.OnPort && w.Packets != 2*w.OnPort+1 && w.Packets != 2*w.OnPort-1 || w.Packets > 2*each {
			t.Errorf("%s: got %+v, want as many for the port as for another, %d at most", tt.network, w, each)
		}
		if len(w.Ports) != 1 || w.Ports[0] != 5002 || len(w.Senders) != 1 {
			t.Errorf("%s: got the ports %v and senders %v", tt.network, w.Ports, w.Senders)
		}
	}
	if w := (system{}).wire(t.Context(), "nope", netip.MustParseAddrPort("239.1.1.1:5000"), time.Millisecond); w.Looked {
		t.Error("an interface that is not there was looked at")
	}
}

func dialOnLoopback(network, to string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		c.Control(func(fd uintptr) {
			if network == "udp4" {
				err = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: 1})
			} else {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, 1)
			}
		})
		return err
	}}
	return d.Dial(network, to)
}

// A querier on the loopback interface is heard, with its version.
func TestQueries_heard(t *testing.T) {
	rawSockets(t)
	q := Listen()
	defer q.Close()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_IGMP)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: 1}); err != nil {
		t.Fatal(err)
	}
	report := []byte{0x16, 0, 0xf9, 0xfe, 0, 0, 0, 0}
	query := []byte{0x11, 100, 0xec, 0x1e, 0, 0, 0, 0, 2, 125, 0, 0} // version 3
	to := &unix.SockaddrInet4{Addr: [4]byte{224, 0, 0, 1}}
	group := netip.MustParseAddr("239.1.1.1")
	var last Query
	for end := time.Now().Add(10 * time.Second); last.Heard == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, message := range [][]byte{report, query} {
			if err := unix.Sendto(fd, message, 0, to); err != nil {
				t.Fatal(err)
			}
		}
		last = q.last("lo", group)
	}
	if !last.Listening || last.Heard == 0 || last.Version != 3 || !last.From.Is4() || last.Ago > time.Minute {
		t.Errorf("got %+v, want a query of version 3", last)
	}
	if other := q.last("lo", netip.MustParseAddr("ff15::1")); other.Heard != 0 {
		t.Errorf("IPv6: got %+v, want nothing heard", other)
	}
}

func FuzzUDPOf(f *testing.F) {
	f.Add([]byte{0x45, 0, 0, 29, 0, 0, 0, 0, 1, 17, 0, 0, 10, 0, 0, 1, 239, 1, 1, 1, 0, 1, 0x13, 0x88, 0, 9, 0, 0, 7})
	f.Add(append([]byte{0x60, 0, 0, 0, 0, 9, 17, 1}, make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		sender, port, ok := udpOf(b)
		if ok && !sender.IsValid() {
			t.Errorf("port %d of nobody", port)
		}
		igmpMessage(b, nil, nil)
		mldMessage(b, b, nil)
	})
}
