package server

import (
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

func TestPeer_interleaved(t *testing.T) {
	r := newRig(t, Config{})
	var peers sync.WaitGroup
	for range 3 {
		peers.Go(func() {
			p := play(t, r.url(), gortsplib.TransportTCP)
			r.isOurs(p.take(t, 1500))
			if got := p.Stats().Conn.BytesReceived; got < 1500*1316 {
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

func TestPeer_datagrams(t *testing.T) {
	r := newRig(t, Config{})
	var peers sync.WaitGroup
	for range 3 {
		peers.Go(func() {
			p := play(t, r.url(), gortsplib.TransportUDP)
			r.isOurs(p.take(t, 1500))
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
