package fanout

import (
	"bytes"
	"net"
	"testing"
	"time"
)

// udpPair returns a socket connected to another, which has room for a megabyte.
func udpPair(t *testing.T) (from, to *net.UDPConn) {
	t.Helper()
	to, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { to.Close() })
	to.SetReadBuffer(4 << 20)
	to.SetReadDeadline(time.Now().Add(10 * time.Second))
	if from, err = net.DialUDP("udp4", nil, to.LocalAddr().(*net.UDPAddr)); err != nil {
		t.Fatal(err)
	}
	return from, to
}

// Every way of sending makes the same datagrams out of the same parts.
func TestPackets_boundaries(t *testing.T) {
	const size = 1328
	for _, way := range []string{"segmented", "several", "portable"} {
		from, to := udpPair(t)
		var c conn = &packetConn{nc: from, size: size}
		if way != "portable" {
			u, ok, err := newUDPConn(from, &scratch{}, size)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue // not on this system
			}
			if setSegments(u, way == "segmented") {
				c = u
			} else {
				t.Logf("%s: not on this system", way)
				continue
			}
		}
		read := func(n int) (all [][]byte) {
			b := make([]byte, 1<<16)
			for len(all) < n {
				m, err := to.Read(b)
				if err != nil {
					t.Fatalf("%s: after %d of %d datagrams: %v", way, len(all), n, err)
				}
				all = append(all, bytes.Clone(b[:m]))
			}
			return all
		}
		for _, n := range []int{1, 2, 63, 64, 65, 150} {
			var parts [][]byte
			for i := range n { // a header, and what it heads in two pieces
				parts = append(parts, bytes.Repeat([]byte{byte(i)}, 12), bytes.Repeat([]byte{byte(i) + 1}, 188), bytes.Repeat([]byte{byte(i) + 2}, size-200))
			}
			if sent, err := c.writev(parts); sent != n*size || err != nil {
				t.Fatalf("%s: %d datagrams: sent %d, %v", way, n, sent, err)
			}
			for i, got := range read(n) {
				if want := bytes.Join(parts[3*i:3*i+3], nil); !bytes.Equal(got, want) {
					t.Fatalf("%s: datagram %d of %d: got %d bytes, want %d", way, i, n, len(got), len(want))
				}
			}
		}
		if sent, err := c.write(bytes.Repeat([]byte{7}, 2*size+100)); sent != 2*size+100 || err != nil {
			t.Errorf("%s: write: %d, %v", way, sent, err)
		}
		if got := read(3); len(got[0]) != size || len(got[1]) != size || len(got[2]) != 100 {
			t.Errorf("%s: write: got datagrams of %d, %d, %d", way, len(got[0]), len(got[1]), len(got[2]))
		}
		c.close()
	}
}

// A history goes out no faster than twice the rate, and never in a burst that
// receivers have no room for; what follows is not late.
func TestPackets_arePaced(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := &testStream{gop: 400, size: 20}
		r := live(Config{Plain: plain}, s, 0)
		rate := 7 * packetBytes * 100 * 8 // bits a second, as r.play feeds
		play := func(d time.Duration) {
			for end := r.now.Add(d); r.now.Before(end); {
				r.src.queue = append(r.src.queue, s.packets(7))
				r.turn(10 * time.Millisecond)
			}
		}
		w := &waiter{ready: make(chan error, 1)}
		r.loop.join("test", w)
		play(11 * time.Second)
		c := &framedViewer{testViewer: testViewer{room: lots}}
		v := &viewer{conn: c, fd: -1, control: c, announce: true, packets: true, info: Viewer{Requested: r.now, Framing: testFraming{testPayload}}}
		r.loop.attach(r.ch, w, v)
		if first := c.total * packetBytes; first > paceBurst || r.ch.chain.bytes() < 4*paceBurst {
			t.Errorf("plain=%v: at once: %d bytes of a history of %d", plain, first, r.ch.chain.bytes())
		}
		for range 100 {
			before := c.total
			play(10 * time.Millisecond)
			if got := (c.total - before) * packetBytes; got > max(paceFactor*int64(rate)/8, paceMin)/100+2*testPayload {
				t.Fatalf("plain=%v: %d bytes in 10 ms", plain, got)
			}
		}
		r.turn(10 * time.Millisecond)
		reached(t, "after a second", s, c)
		if d := r.ch.patience(); d > tickPackets {
			t.Errorf("plain=%v: the channel may wait %v", plain, d)
		}
		r.loop.shutdown()
	}
}
