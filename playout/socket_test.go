package playout

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
)

// loopback returns the name of the loopback interface.
func loopback(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, ifi := range all {
		if ifi.Flags&net.FlagLoopback != 0 && ifi.Flags&net.FlagUp != 0 {
			return ifi.Name
		}
	}
	t.Skip("no loopback interface")
	return ""
}

// listen joins a group on the interface named, or listens on a host's address,
// at a free port, and returns both.
func listen(t *testing.T, name string, addr netip.Addr) (*net.UDPConn, netip.AddrPort) {
	t.Helper()
	var (
		conn *net.UDPConn
		err  error
	)
	if at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)); addr.IsMulticast() {
		var ifi *net.Interface
		if ifi, err = net.InterfaceByName(name); err == nil {
			conn, err = net.ListenMulticastUDP("udp", ifi, at)
		}
	} else {
		conn, err = net.ListenUDP("udp", at)
	}
	if err != nil {
		t.Skipf("listen on %s: %v", addr, err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetReadBuffer(4 << 20)
	return conn, netip.AddrPortFrom(addr, uint16(conn.LocalAddr().(*net.UDPAddr).Port))
}

// receive reads n datagrams.
func receive(t *testing.T, conn *net.UDPConn, n int) (got [][]byte, from netip.Addr) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 2048)
	for len(got) < n {
		size, addr, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			t.Fatalf("after %d datagrams of %d: %v", len(got), n, err)
		}
		got, from = append(got, bytes.Clone(buf[:size])), addr.Addr().Unmap()
	}
	return got, from
}

// TestPlayer_overLoopback sends one file to receivers of several kinds at once.
func TestPlayer_overLoopback(t *testing.T) {
	throughSockets(t, loopback(t), "rtp://239.255.77.201", "udp://239.255.77.202", "rtp://127.0.0.1", "udp://[::1]")
}

// throughSockets sends a file to the destinations in one pass, on the interface
// given, and compares what arrives there.
func throughSockets(t *testing.T, name string, destinations ...string) {
	t.Helper()
	cfg := Config{Interface: name, Rate: Rate{Factor: 10}, Seed: 3}
	var receivers []*net.UDPConn
	for _, url := range destinations {
		d, err := ParseDestination(url)
		if err != nil {
			t.Fatal(err)
		}
		var conn *net.UDPConn
		conn, d.Addr = listen(t, name, d.Addr.Addr())
		receivers = append(receivers, conn)
		cfg.Destinations = append(cfg.Destinations, d)
	}
	p, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	file := steady(7, 0, 30) // 42 datagrams and a short one
	stats, err := p.Run(t.Context(), file.file())
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(43 * len(receivers)); stats.Sent != want || stats.Failed != 0 {
		t.Errorf("stats %+v, want %d sent", stats, want)
	}
	for i, to := range cfg.Destinations {
		got, from := receive(t, receivers[i], 43)
		if to.Source.IsValid() && from != to.Source {
			t.Errorf("%s: sent from %s", to, from)
		}
		var ts []byte
		for n, d := range got {
			if to.RTP {
				if d[0] != 0x80 || d[1] != 33 {
					t.Fatalf("%s: datagram %d begins with %x", to, n, d[:2])
				}
				d = d[rtpHeaderSize:]
			}
			ts = append(ts, d...)
		}
		if !bytes.Equal(ts, file.Bytes()) {
			t.Errorf("%s: %d bytes arrived that are not the file's %d", to, len(ts), file.Len())
		}
	}
}

// trial stands for a system that sends, or does not.
func trial(results ...error) (*socket, *[]int) {
	var sizes []int
	s := &socket{to: Destination{RTP: true, Addr: netip.MustParseAddrPort("239.1.1.1:5000")}, batch: make([]ipv4.Message, batchSize)}
	for i := range s.batch {
		s.batch[i].Buffers = make([][]byte, 1)
	}
	s.write = func(batch []ipv4.Message, _ int) (int, error) {
		sizes = append(sizes, len(batch))
		if len(results) == 0 {
			return len(batch), nil
		}
		err := results[0]
		results = results[1:]
		if err != nil {
			return 0, &net.OpError{Op: "write", Err: os.NewSyscallError("sendmmsg", err)}
		}
		return 1, nil
	}
	return s, &sizes
}

func TestSocket_passingFaultsDoNotEndIt(t *testing.T) {
	for _, fault := range []error{syscall.ENOBUFS, syscall.ECONNREFUSED} {
		s, sizes := trial(fault, nil, syscall.ENETUNREACH)
		if err := s.send(blank(5)); err != nil {
			t.Errorf("%v: send returned %v", fault, err)
		}
		// One failed, one sent, one failed, the rest sent together.
		if got, want := fmt.Sprint(*sizes), "[5 4 3 2]"; got != want || s.sent != 3 || s.failed != 2 {
			t.Errorf("%v: batches %v, want %v; %d sent and %d failed, want 3 and 2", fault, got, want, s.sent, s.failed)
		}
		if !errors.Is(s.last, syscall.ENETUNREACH) {
			t.Errorf("last error %v, want %v", s.last, syscall.ENETUNREACH)
		}
	}
}

func TestSocket_nothingEverSent(t *testing.T) {
	s, _ := trial(syscall.ENETUNREACH)
	err := s.send(blank(2))
	if want := "playout: send to rtp://239.1.1.1:5000: network is unreachable"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// blank makes n datagrams of zeros.
func blank(n int) []datagram {
	d := make([]datagram, n)
	for i := range d {
		d[i].data = make([]byte, maxDatagram)
	}
	return d
}

func TestSocket_plainTwin(t *testing.T) {
	conn, to := listen(t, "", netip.MustParseAddr("127.0.0.1"))
	s, err := openSocket(Destination{Addr: to, Source: netip.MustParseAddr("127.0.0.9")}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	s.write = s.writeOne
	datagrams := blank(batchSize)
	for i := range datagrams {
		datagrams[i].data[rtpHeaderSize] = byte(i)
	}
	if err := s.send(datagrams); err != nil || s.sent != batchSize {
		t.Fatalf("%d sent, error %v, want %d", s.sent, err, batchSize)
	}
	got, from := receive(t, conn, batchSize)
	for i, d := range got {
		if len(d) != maxDatagram-rtpHeaderSize || d[0] != byte(i) {
			t.Fatalf("datagram %d has %d bytes and begins with %d", i, len(d), d[0])
		}
	}
	if want := netip.MustParseAddr("127.0.0.9"); from != want {
		t.Errorf("sent from %s, want %s", from, want)
	}
}

func BenchmarkSocket(b *testing.B) {
	for _, plain := range []bool{false, true} {
		b.Run(map[bool]string{false: "batch", true: "plain"}[plain], func(b *testing.B) {
			s, err := openSocket(Destination{RTP: true, Addr: netip.MustParseAddrPort("127.0.0.1:9")}, nil, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer s.close()
			if plain {
				s.write = s.writeOne
			}
			datagrams := blank(8)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.send(datagrams); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/8, "ns/packet")
		})
	}
}
