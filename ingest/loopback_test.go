package ingest

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// patience is how long a test waits for what must come.
const patience = 3 * time.Second

// ways are the receivers that the system has. Flows of the ring, which needs
// CAP_NET_RAW, are on it from the first datagram here.
func ways() map[string]ReceiverConfig {
	all := map[string]ReceiverConfig{
		"sockets": {Receive: ReceiveSockets},
		"plain":   {Plain: true},
	}
	if ringsPermitted() {
		all["ring"] = ReceiverConfig{Receive: ReceiveRing, atOnce: true}
	}
	return all
}

// onEach runs a test on each receiver that there is.
func onEach(t *testing.T, cfg ReceiverConfig, test func(t *testing.T, r Receiver)) {
	for name, way := range ways() {
		t.Run(name, func(t *testing.T) {
			cfg := cfg
			cfg.Plain, cfg.Receive, cfg.atOnce = way.Plain, way.Receive, way.atOnce
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

func eventually(tb testing.TB, is func() bool, what string) {
	tb.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("not within %s: %s", patience, what)
		}
	}
}
