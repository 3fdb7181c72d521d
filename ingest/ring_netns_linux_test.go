package ingest

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"zapcast/internal/testlog"
)

// What the kernel used to do for a flow: every test here runs on each receiver,
// so that sockets say what is right.

// An injector puts frames on the cable as they are: nobody fills in checksums.
type injector struct {
	t     *testing.T
	fd    int
	index int
}

func (l lab) injector(t *testing.T, n int) *injector {
	t.Helper()
	i := &injector{t: t, fd: -1}
	l.Do("tx", func() {
		link, err := net.InterfaceByName(fmt.Sprint("peer", n))
		if err == nil {
			i.index = link.Index
			i.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if i.fd < 0 {
		t.FailNow()
	}
	t.Cleanup(func() { unix.Close(i.fd) })
	return i
}

// send sends IP packets, behind VLAN tags if there are any.
func (i *injector) send(tags []uint16, packets ...[]byte) {
	i.t.Helper()
	for _, p := range packets {
		kind, to := uint16(unix.ETH_P_IP), []byte{0x01, 0, 0x5e, p[17] & 0x7f, p[18], p[19]}
		if p[0]>>4 == 6 {
			kind, to = unix.ETH_P_IPV6, append([]byte{0x33, 0x33}, p[36:40]...)
		}
		frame := append(to, 0x02, 0, 0, 0, 0, 1)
		for _, tag := range tags {
			frame = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(frame, unix.ETH_P_8021Q), tag)
		}
		frame = append(binary.BigEndian.AppendUint16(frame, kind), p...)
		if err := unix.Sendto(i.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: i.index}); err != nil {
			i.t.Fatal(err)
		}
	}
}

// outcome is what a flow makes of packets.
func outcome(t *testing.T, r Receiver, f Flow, want ...string) {
	t.Helper()
	if got := receive(t, r, f, len(want)); !slices.Equal(got, want) {
		t.Errorf("got %.80q, want %.80q", got, want)
	}
}

func TestNetns_packetsThatAreNotPlain(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
			for _, spec := range []FlowSpec{
				{Group: netip.MustParseAddrPort("239.7.1.1:5000"), Interface: "eth7"},
				{Group: netip.MustParseAddrPort("[ff3e::7:101]:5000"), Interface: "eth7"},
			} {
				f, in := open(t, r, spec), l.injector(t, 7)
				src, dst, header := netip.MustParseAddr("192.0.2.2"), spec.Group.Addr(), ip4Header
				if dst.Is6() {
					src, header = netip.MustParseAddr("2001:db8:7::2"), ip6Header
				}
				whole := func(payload string) []byte { return udpPacket(src, dst, 5000, []byte(payload)) }
				edit := func(b []byte, at int, x byte) []byte { b[at] ^= x; return b }
				noChecksum := whole("no checksum")
				clear(noChecksum[header+6 : header+8])
				long := strings.Repeat("fragments ", 100)
				pieces := func(payload string, id uint16, order ...int) (all [][]byte) {
					body := udpPacket(src, dst, 5000, []byte(payload))[header:]
					for _, i := range order {
						end, part := min(400*i+400, len(body)), uint16(50*i)
						if end < len(body) {
							part |= 0x2000
						}
						all = append(all, ipPacket(src, dst, protocolUDP, id, part, body[400*i:end]))
					}
					return all
				}

				in.send(nil, whole("plain"), edit(whole("a bit is wrong"), header+udpHeader+5, 1), whole("after it"), noChecksum)
				if dst.Is4() {
					in.send(nil, fix4(append([]byte{0x46}, append(whole("")[1:20], append([]byte{0x94, 4, 0, 0}, whole("options")[20:]...)...)...)))
					in.send(nil, edit(whole("header checksum"), 8, 1))
				} else {
					p := whole("options")
					p = append(p[:40:40], append([]byte{protocolUDP, 0, 1, 4, 0, 0, 0, 0}, p[40:]...)...)
					p[6] = protocolDestination
					binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
					in.send(nil, p)
				}
				in.send(nil, edit(whole("UDP length"), header+5, 0x80), whole("the last"))
				want := []string{"plain", "after it", "no checksum", "options"}
				if dst.Is6() {
					want = slices.Delete(want, 2, 3)
				}
				want = append(want, "the last")
				outcome(t, r, f, want...)

				in.send(nil, pieces(long+"1", 1, 0, 1, 2)...)
				in.send(nil, pieces(long+"2", 2, 2, 0, 1)...)
				in.send(nil, pieces(long+"3", 3, 0, 2)...)
				in.send(nil, whole("between"))
				in.send(nil, pieces(long+"4", 4, 1, 2, 0)...)
				outcome(t, r, f, long+"1", long+"2", "between", long+"4")
				in.send(nil, whole("and on"))
				outcome(t, r, f, "and on")

				if ring, ok := r.(*ringReceiver); ok && len(ring.Report().Rings) > 0 {
					got := ring.Report().Rings[0]
					if got.BadChecksums == 0 || got.Reassembled != 3 {
						t.Errorf("ring: got %+v, want bad checksums and 3 reassembled", got)
					}
				}
			}
		})
	})
}

// A trunk: what is tagged for a VLAN that this host is not in is not heard, a
// tag that only holds a priority does no harm.
func TestNetns_vlanTrunk(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
			group := netip.MustParseAddrPort("239.7.1.2:5000")
			f, in := open(t, r, FlowSpec{Group: group, Interface: "eth7"}), l.injector(t, 7)
			p := func(s string) []byte { return udpPacket(testSource4, group.Addr(), 5000, []byte(s)) }
			in.send(nil, p("untagged"))
			in.send([]uint16{12}, p("VLAN 12"))
			in.send([]uint16{5 << 13}, p("priority"))
			in.send([]uint16{12, 13}, p("VLAN 13 in 12"))
			outcome(t, r, f, "untagged", "priority")
		})
	})
}

// A link without a link header, as PPP and tunnels have.
func TestNetns_noLinkHeader(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
		if err != nil {
			t.Skip(err)
		}
		defer tun.Close()
		request, err := unix.NewIfreq("tun7")
		if err != nil {
			t.Fatal(err)
		}
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(int(tun.Fd()), unix.TUNSETIFF, request); err != nil {
			t.Skip(err)
		}
		l.IP("rx", "addr add 10.7.0.1/24 dev tun7")
		l.IP("rx", "link set tun7 multicast on up")
		onEach(t, ReceiverConfig{}, func(t *testing.T, r Receiver) {
			group := netip.MustParseAddrPort("239.7.1.3:5000")
			f := open(t, r, FlowSpec{Group: group, Interface: "tun7"})
			for _, s := range []string{"one", "two"} {
				if _, err := tun.Write(udpPacket(netip.MustParseAddr("10.7.0.2"), group.Addr(), 5000, []byte(s))); err != nil {
					t.Fatal(err)
				}
			}
			outcome(t, r, f, "one", "two")
		})
	})
}

func TestNetns_ringWithoutTheRight(t *testing.T) {
	inNamespaces(t, func(t *testing.T, _ lab) {
		var log testlog.Log
		reports := map[string]ReceiverStatus{}
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // the thread ends without the right
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var sets [2]unix.CapUserData
			err := unix.Capget(&header, &sets[0])
			sets[0].Effective &^= 1 << unix.CAP_NET_RAW
			if err == nil {
				err = unix.Capset(&header, &sets[0])
			}
			for _, how := range []string{ReceiveAuto, ReceiveRing} {
				if err == nil {
					r := newReceiver(ReceiverConfig{Receive: how, Logger: slog.New(slog.NewTextHandler(&log, nil))}.withDefaults())
					reports[how] = r.Report()
					err = r.Close()
				}
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for how, got := range reports {
			if got.Receive != ReceiveSockets || !strings.Contains(got.Reason, "CAP_NET_RAW") {
				t.Errorf("%s: got %+v, want sockets for want of CAP_NET_RAW", how, got)
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 {
			t.Errorf("got %d warnings, want one, for the ring that was asked for:\n%s", n, log.String())
		}
	})
}

func (l lab) stream(t *testing.T, log io.Writer, from, dev string) *stream {
	t.Helper()
	r, err := NewReceiver(ReceiverConfig{Receive: ReceiveRing, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	s := &stream{t: t, r: r, to: netip.MustParseAddrPort("239.7.1.4:5000"), now: time.Now()}
	l.Do(from, func() { s.c = sendFrom(t, "0.0.0.0", dev) })
	s.f = open(t, r, FlowSpec{Group: s.to, Interface: "eth7"}).(*ringFlow)
	return s
}

// Datagrams that Ethernet has to cut in pieces: a source that always sends such
// stays on its socket, one that begins to goes back to it.
func TestNetns_fragmentedSources(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		var log testlog.Log
		s := l.stream(t, &log, "tx", "peer7")
		s.send(4000) // is cut: a socket learns by it
		s.tick(3 * time.Millisecond)
		s.got = s.sent
		eventually(t, func() bool {
			s.send(188, 4000)
			s.tick(3 * time.Millisecond)
			return strings.HasPrefix(status(s.f).Receive, "socket: ")
		}, "the ring is given up")
		s.settled()

		s = l.stream(t, &log, "tx", "peer7")
		s.until(byRing, 188, 1316)
		s.send(1316, 4000, 188, 1316)
		s.tick(3 * time.Millisecond)
		s.until(bySocket, 1316, 4000)
		if got := status(s.f).Receive; got != "socket: "+reasonTooLarge {
			t.Errorf("in pieces later: receives by %q", got)
		}
		if !strings.Contains(log.String(), reasonTooLarge) {
			t.Errorf("the log does not say why:\n%s", &log)
		}
	})
}

// What a program on the same host sends comes back from the kernel, past the
// rings: it is received by the socket, once.
func TestNetns_ownPackets(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		var log testlog.Log
		s := l.stream(t, &log, "rx", "eth7")
		eventually(t, func() bool {
			s.send(188, 1316)
			s.tick(3 * time.Millisecond)
			return status(s.f).Receive != receiveSocket
		}, "the ring is given up")
		s.settled()
		if got := status(s.f).Receive; got != "socket: "+reasonNotSeen || !strings.Contains(log.String(), reasonNotSeen) {
			t.Errorf("receives by %q; the log:\n%s", got, &log)
		}
	})
}

func TestNetns_ringOfAnInterfaceThatComesBack(t *testing.T) {
	inNamespaces(t, func(t *testing.T, l lab) {
		var log testlog.Log
		s := l.stream(t, &log, "tx", "peer7")
		s.until(byRing, 188, 1316)
		before := s.f.ring.index
		l.IP("rx", "link del eth7")
		eventually(t, func() bool { return len(status(s.f).Warnings) > 0 }, "a warning while the interface is away")
		l.Plug(7)
		l.Do("tx", func() { s.c = sendFrom(t, "0.0.0.0", "peer7") })
		eventually(t, func() bool { s.tick(time.Millisecond); return len(status(s.f).Warnings) == 0 }, "the group is joined again")
		s.until(byRing, 188, 1316)
		if s.f.ring.index == before {
			t.Error("the ring is the old interface's")
		}
		eventually(t, func() bool { s.tick(time.Millisecond); return len(s.r.Report().Rings) == 1 }, "the old ring is let go")
	})
}

// A packet ring is what the kernel says it is.
func TestRing_layout(t *testing.T) {
	if got := unsafe.Sizeof(unix.Tpacket2Hdr{}); got != 32 {
		t.Errorf("tpacket2_hdr: got %d bytes, want 32", got)
	}
	if frameSize%unix.TPACKET_ALIGNMENT != 0 || blockSize%os.Getpagesize() != 0 {
		t.Errorf("frames of %d bytes and blocks of %d", frameSize, blockSize)
	}
}
