package server

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"zapcast/fcc/wire"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

// One burst through real sockets: the group comes in by the loopback interface,
// the client is telecom's, and its burst runs on from a random-access point
// until it says stop.
func TestServer_burst(t *testing.T) {
	const patience = 5 * time.Second
	group := netip.MustParseAddrPort("239.255.77.9:5999")
	s, err := Open(Config{
		Listen:   netip.MustParseAddrPort("127.0.0.1:0"),
		Channels: []ingest.FlowSpec{{Group: group, Interface: "lo"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	// Bound to a loopback address, the group goes out by that interface.
	air, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, net.UDPAddrFromAddrPort(group))
	if err != nil {
		t.Skip("no multicast on the loopback interface: ", err)
	}
	defer air.Close()
	running.Go(func() {
		for n := uint32(0); ctx.Err() == nil; n++ {
			_, _ = air.Write(ingesttest.Datagram(uint16(n), 7, ingesttest.Video(n, 500)))
			time.Sleep(time.Millisecond)
		}
	})
	client, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	port := client.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	client.SetReadDeadline(time.Now().Add(2 * patience))
	request := &wire.TelecomRequest{Group: group, MediaPort: port}
	var next uint16
	got, synced := 0, false
	buf := make([]byte, 2048)
	asked := time.Time{}
	for end := time.Now().Add(patience); got < 1000 || !synced; {
		if time.Now().After(end) {
			t.Fatalf("got %d packets, sync notice %t, %+v", got, synced, s.Status())
		}
		if got == 0 && time.Since(asked) > 200*time.Millisecond {
			asked = time.Now()
			client.WriteToUDPAddrPort(request.Append(nil), s.Address())
		}
		client.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, from, err := client.ReadFromUDPAddrPort(buf)
		if err != nil {
			continue
		}
		if h, _, ok := ingest.PeekRTP(buf[:n]); ok && ingest.Classify(buf[:n]) == ingest.KindRTP {
			if got > 0 && h.Sequence != next || got == 0 && h.Sequence%500 != 0 {
				t.Fatalf("packet %d of the burst: got %d, want %d, or at first a random-access point", got, h.Sequence, next)
			}
			next = h.Sequence + 1
			got++
			continue
		}
		for p := range wire.Packets(buf[:n]) {
			if m, err := wire.ParseTelecomResponse(p); err == nil && m.Action == wire.TelecomBurst {
				client.WriteToUDPAddrPort(nil, netip.AddrPortFrom(from.Addr(), m.MediaPort))
			} else if _, err := wire.ParseTelecomSync(p); err == nil {
				synced = true
			}
		}
	}
	client.WriteToUDPAddrPort((&wire.TelecomTermination{Group: group.Addr(), Forced: true}).Append(nil), s.Address())
	for end := time.Now().Add(patience); s.Status().Sessions > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after the termination: %+v", s.Status())
		}
	}
}
