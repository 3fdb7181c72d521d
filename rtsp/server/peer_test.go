package server

import (
	"bufio"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// A peer is gortsplib's client, which shares no code with the server.
type peer struct {
	gortsplib.Client
	base    *base.URL
	packets chan *rtp.Packet
	reports chan rtcp.Packet
}

// play starts a peer on a URL.
func play(t *testing.T, url string, transport gortsplib.Transport) *peer {
	t.Helper()
	u, err := base.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{packets: make(chan *rtp.Packet, 1<<16), reports: make(chan rtcp.Packet, 100)}
	p.Client = gortsplib.Client{Transport: &transport, Scheme: u.Scheme, Host: u.Host}
	if err := p.Start2(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	desc, _, err := p.Describe(u)
	if err != nil {
		t.Fatal(err)
	}
	var mpegts *format.MPEGTS
	medi := desc.FindFormat(&mpegts)
	if medi == nil {
		t.Fatalf("no MPEG-TS in %+v", desc)
	}
	p.base = desc.BaseURL
	if err := p.SetupAll(desc.BaseURL, desc.Medias); err != nil {
		t.Fatal(err)
	}
	p.OnPacketRTP(medi, mpegts, func(packet *rtp.Packet) { p.packets <- packet })
	p.OnPacketRTCPAny(func(_ *description.Media, packet rtcp.Packet) {
		select {
		case p.reports <- packet:
		default:
		}
	})
	if _, err := p.Play(nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// take returns the TS of n packets, which must be in order.
func (p *peer) take(t *testing.T, n int) (ts []byte) {
	t.Helper()
	var last *rtp.Packet
	for range n {
		select {
		case packet := <-p.packets:
			if last != nil && (packet.SequenceNumber != last.SequenceNumber+1 || int32(packet.Timestamp-last.Timestamp) < 0 || packet.SSRC != last.SSRC) {
				t.Fatalf("packet %+v after %+v", packet.Header, last.Header)
			}
			last = packet
			ts = append(ts, packet.Payload...)
		case <-time.After(10 * time.Second):
			t.Fatalf("%d bytes, then nothing for 10 s", len(ts))
		}
	}
	return ts
}

func TestPeer_interleaved(t *testing.T) { peersPlay(t, gortsplib.TransportTCP) }

func TestPeer_datagrams(t *testing.T) { peersPlay(t, gortsplib.TransportUDP) }

// peersPlay has several clients play, pause and go on.
func peersPlay(t *testing.T, transport gortsplib.Transport) {
	r := newRig(t, Config{})
	var peers sync.WaitGroup
	for range 3 {
		peers.Go(func() {
			p := play(t, r.url(), transport)
			r.isOurs(p.take(t, 1500))
			if got := p.Stats().Conn.BytesReceived; transport == gortsplib.TransportTCP && got < 1500*1316 {
				t.Errorf("received %d", got)
			}
			select {
			case <-p.reports:
			case <-time.After(10 * time.Second):
				t.Error("no sender report")
			}
			if _, err := p.Pause(); err != nil {
				t.Error(err)
			}
			for len(p.packets) > 0 {
				<-p.packets
			}
			if _, err := p.Play(nil); err != nil {
				t.Error(err)
			}
			ts := p.take(t, 300)
			if ts[1]&0x1f != 0 || ts[2] != 0 {
				t.Error("no tables after the pause")
			}
		})
	}
	peers.Wait()
}

// Clients who ask for multicast get a group, and one relay of the channel.
func TestRelay(t *testing.T) {
	lo := loopback(t)
	r := newRig(t, Config{Groups: Groups{Prefix: netip.MustParsePrefix("239.255.99.0/30"), Port: freePort(t), Interface: lo.Name}})
	type client struct {
		talker
		b       *bufio.Reader
		session string
	}
	var clients []client
	var group netip.AddrPort
	for i := range 3 {
		c := client{talker: r.dial()}
		c.b = bufio.NewReader(c)
		c.say(ask("SETUP", r.url(), 1, "Transport: RTP/AVP;multicast,RTP/AVP/TCP"))
		answer := c.read(c.b)
		c.session = sessionOf(answer)
		m := regexp.MustCompile(`Transport: RTP/AVP;multicast;destination=([0-9.]+);port=(\d+)-\d+;ttl=0;`).FindStringSubmatch(answer)
		if m == nil {
			t.Fatalf("SETUP: %q", answer)
		}
		at := netip.MustParseAddrPort(m[1] + ":" + m[2])
		if i > 0 && at != group {
			t.Errorf("client %d: group %v, the first had %v", i, at, group)
		}
		group = at
		clients = append(clients, c)
	}
	packets, err := net.ListenMulticastUDP("udp4", lo, net.UDPAddrFromAddrPort(group))
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	packets.SetReadBuffer(4 << 20)
	reports, err := net.ListenMulticastUDP("udp4", lo, net.UDPAddrFromAddrPort(netip.AddrPortFrom(group.Addr(), group.Port()+1)))
	if err != nil {
		t.Fatal(err)
	}
	defer reports.Close()
	for i, c := range clients {
		c.say(ask("PLAY", r.url(), 2, c.session))
		if answer := c.read(c.b); !strings.HasPrefix(answer, "RTSP/1.0 200 ") || strings.Contains(answer, "RTP-Info") != (i == 0) {
			t.Errorf("PLAY of client %d: %q", i, answer)
		}
	}
	if v := r.engine.Status().Viewers; len(v) != 1 || v[0].Client != group.String() {
		t.Errorf("viewers: got %+v, want the relay alone", v)
	}
	var ts []byte
	b := make([]byte, 2000)
	var last rtp.Packet
	packets.SetDeadline(time.Now().Add(10 * time.Second))
	for n := range 800 {
		size, err := packets.Read(b)
		if err != nil {
			t.Fatalf("after %d packets: %v", n, err)
		}
		var p rtp.Packet
		if err := p.Unmarshal(b[:size]); err != nil || n > 0 && p.SequenceNumber != last.SequenceNumber+1 {
			t.Fatalf("packet %+v after %+v: %v", p.Header, last.Header, err)
		}
		last = p
		ts = append(ts, p.Payload...)
	}
	r.isOurs(ts)
	clients[0].say(ask("TEARDOWN", r.url(), 3, clients[0].session)) // who opened it is not who keeps it
	clients[1].Close()
	if _, err := packets.Read(b); err != nil {
		t.Errorf("the relay ended with its first client: %v", err)
	}
	clients[2].Close()
	eventually(t, "the relay is over", func() bool { return len(r.engine.Status().Viewers) == 0 })
	reports.SetDeadline(time.Now().Add(10 * time.Second))
	for bye := false; !bye; {
		size, err := reports.Read(b)
		if err != nil {
			t.Fatalf("no BYE: %v", err)
		}
		list, err := rtcp.Unmarshal(b[:size])
		if err != nil {
			t.Fatal(err)
		}
		_, bye = list[len(list)-1].(*rtcp.Goodbye)
	}
}

// Four groups serve four channels, and a channel gets its own again.
func TestRelays_groups(t *testing.T) {
	for _, prefix := range []string{"239.255.99.4/30", "ff15::4/126"} {
		groups := Groups{Prefix: netip.MustParsePrefix(prefix), Port: 5004}
		var all relays
		seen := map[netip.AddrPort]*relay{}
		for i := range uint32(4) {
			r, err := all.join(strconv.Itoa(int(i)), 7*i, groups)
			if err != nil || seen[r.group] != nil || !groups.Prefix.Contains(r.group.Addr()) {
				t.Fatalf("%v: channel %d: %v, %v", prefix, i, r, err)
			}
			seen[r.group] = r
		}
		if _, err := all.join("more", 5, groups); err == nil {
			t.Errorf("%v: want no group for a fifth channel", prefix)
		}
		again, err := all.join("2", 14, groups)
		if err != nil || again != seen[again.group] {
			t.Errorf("%v: want the same relay for the same channel, %v", prefix, err)
		}
		again.leave()
		again.leave()
		if r, err := all.join("more", 14, groups); err != nil || r.group != again.group {
			t.Errorf("%v: want the group that is free, %v", prefix, err)
		}
	}
}

// loopback is the loopback interface.
func loopback(t *testing.T) *net.Interface {
	t.Helper()
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, dev := range list {
		if dev.Flags&net.FlagLoopback != 0 {
			return &dev
		}
	}
	t.Skip("no loopback interface")
	return nil
}

// freePort is an even UDP port that was free a moment ago.
func freePort(t *testing.T) uint16 {
	t.Helper()
	packets, reports := listenPair(t)
	packets.Close()
	reports.Close()
	return uint16(packets.LocalAddr().(*net.UDPAddr).Port)
}
