package ingest

import (
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"zapcast/internal/testlog"
)

// A stream sends numbered datagrams to a flow and checks that they come out
// whole, each once and in order.
type stream struct {
	t    *testing.T
	r    Receiver
	f    *ringFlow
	c    *net.UDPConn
	to   netip.AddrPort
	sent uint32
	got  uint32
	now  time.Time
}

func needRing(t *testing.T) {
	t.Helper()
	if fault := probeRing(); fault != "" {
		t.Skip(fault)
	}
}

func newStream(t *testing.T, cfg ReceiverConfig) *stream {
	t.Helper()
	needRing(t)
	lo := loopback(t)
	r, err := NewReceiver(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	s := &stream{t: t, r: r, to: newGroup(t), c: sendFrom(t, "127.0.0.1", lo), now: time.Now()}
	s.f = open(t, r, FlowSpec{Group: s.to, Interface: lo}).(*ringFlow)
	return s
}

func (s *stream) send(sizes ...int) {
	s.t.Helper()
	for _, size := range sizes {
		b := make([]byte, size)
		s.sent++
		binary.BigEndian.PutUint32(b, s.sent)
		send(s.t, s.c, s.to, string(b))
	}
}

// tick reads once as a loop does, a while of the receiver's time later.
func (s *stream) tick(while time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(while)
	s.r.Begin(s.now)
	for more := true; more; {
		var datagrams [][]byte
		datagrams, more = s.f.Read(7)
		for _, d := range datagrams {
			s.got++
			if n := binary.BigEndian.Uint32(d); n != s.got {
				s.t.Fatalf("got datagram %d, want %d (way %d)", n, s.got, s.f.way)
			}
		}
	}
	s.r.End()
}

// until sends and reads until the flow is where it is wanted.
func (s *stream) until(way flowWay, sizes ...int) {
	s.t.Helper()
	for end := time.Now().Add(patience); s.f.way != way; {
		if time.Now().After(end) {
			s.t.Fatalf("the flow stays at %d, want %d: %+v", s.f.way, way, s.r.Report())
		}
		s.send(sizes...)
		s.tick(3 * time.Millisecond)
		s.send(sizes...)
	}
	s.settled()
}

// settled reads what is left.
func (s *stream) settled() {
	s.t.Helper()
	for end := time.Now().Add(patience); s.got < s.sent && time.Now().Before(end); {
		s.tick(3 * time.Millisecond)
	}
	if s.got != s.sent {
		s.t.Fatalf("got %d datagrams, want %d", s.got, s.sent)
	}
}

func TestRingFlow_thereAndBack(t *testing.T) {
	var log testlog.Log
	s := newStream(t, ReceiverConfig{Receive: ReceiveRing, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	usual := []int{188, 1316, 1328, 940}
	s.until(byRing, usual...)
	if got := status(&s.f.socketFlow).Receive; got != receiveSocket {
		t.Errorf("a socket's own status: got %q", got)
	}
	if got := status(s.f); got.Receive != ReceiveRing || got.Datagrams != int64(s.sent) || got.Sender != s.c.LocalAddr().String() {
		t.Errorf("on the ring: got %+v", got)
	}
	for range 500 { // around the ring a few times
		s.send(usual...)
		s.send(usual...)
		s.tick(3 * time.Millisecond)
	}
	s.settled()
	if queued, _ := s.f.socket.memory(); queued > 0 {
		t.Errorf("the muted socket holds %d bytes, want none", queued)
	}

	// A pause: the socket is asked, and the ring is trusted anew.
	s.tick(2 * ringSilence)
	if s.f.way != toSocket {
		t.Fatalf("after a silence: got way %d, want %d", s.f.way, toSocket)
	}
	s.until(inTandem, 188)
	s.until(byRing, usual...)

	// Larger than a frame: the same source stays on its socket from now on.
	s.send(1316, 3000, 188, 2000, 2001, 188, 9000)
	s.send(usual...)
	s.tick(3 * time.Millisecond)
	s.until(bySocket, 1316, 3000)
	for range 100 {
		s.send(1316, 3000)
		s.tick(3 * time.Millisecond)
	}
	s.settled()
	if got := status(s.f); got.Receive != "socket: "+reasonTooLarge || got.Overflow != 0 || got.Malformed != 0 {
		t.Errorf("back on the socket: got %+v", got)
	}
	if !strings.Contains(log.String(), reasonTooLarge) {
		t.Errorf("the log does not say why:\n%s", log.String())
	}
	eventually(t, func() bool { s.tick(time.Millisecond); return len(s.r.Report().Rings) == 0 }, "the ring is let go")
}

// What is not read in one turn stays, and holds up nobody else.
func TestRingFlow_turnsAreFair(t *testing.T) {
	s := newStream(t, ReceiverConfig{Receive: ReceiveRing, atOnce: true})
	other := s.f.spec
	other.Group = netip.AddrPortFrom(s.to.Addr().Next(), s.to.Port())
	o := open(t, s.r, other)
	for range 300 {
		s.send(188)
	}
	send(t, s.c, other.Group, "b")
	s.r.Begin(s.now)
	first, more := s.f.Read(256)
	if len(first) != 256 || !more {
		t.Errorf("first turn: got %d datagrams, more %t", len(first), more)
	}
	s.got = 256
	if got, _ := o.Read(256); len(got) != 1 {
		t.Errorf("the other flow: got %d datagrams, want 1", len(got))
	}
	s.r.End()
	s.settled()
}

func TestRingFlow_sameGroupTwice(t *testing.T) {
	s := newStream(t, ReceiverConfig{Receive: ReceiveRing, atOnce: true})
	twin := open(t, s.r, s.f.spec)
	s.send(188, 188, 188)
	s.tick(time.Millisecond)
	if got := receive(t, s.r, twin, 3); len(got) != 3 || s.got != 3 {
		t.Errorf("got %d and %d datagrams, want 3 each", s.got, len(got))
	}
	ring := s.r.Report().Rings
	if len(ring) != 1 || ring[0].Flows != 2 || ring[0].Packets != 3 || ring[0].Drops != 0 || ring[0].Unclaimed != 0 {
		t.Errorf("rings: %+v", ring)
	}
}

// A loop that stops: the ring runs over, what it lost is counted, and the stream
// goes on.
func TestRing_overrun(t *testing.T) {
	s := newStream(t, ReceiverConfig{Receive: ReceiveRing, RingBytes: 128 << 10, atOnce: true})
	for range 5 { // so that there is a rate
		s.send(188)
		s.tick(100 * time.Millisecond)
	}
	frames := uint32(2 * framesPerBlock)
	for range frames + 50 {
		s.send(1316)
	}
	s.tick(2 * time.Second)
	if s.got != frames+5 {
		t.Errorf("got %d datagrams, want the %d that had room", s.got-5, frames)
	}
	rings := s.r.Report().Rings
	if len(rings) != 1 || rings[0].Drops != 50 {
		t.Errorf("rings: got %+v, want 50 drops", rings)
	}
	if got := status(s.f).Warnings; len(got) != 1 || !strings.Contains(got[0], "overflowed") {
		t.Errorf("warnings: got %q", got)
	}
	if got := s.f.Interval(); got != minInterval {
		t.Errorf("interval: got %s, want %s", got, minInterval)
	}
	s.got = s.sent
	s.send(188, 1316)
	s.settled()
}

// Where the choice is the receiver's, a ring that overflowed is not trusted with
// the same source again: a socket has more room.
func TestRingFlow_leavesARingThatOverflowed(t *testing.T) {
	var log testlog.Log
	s := newStream(t, ReceiverConfig{RingBytes: 128 << 10, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.until(byRing, 188)
	for range 2*framesPerBlock + 50 {
		s.send(1316)
	}
	s.tick(3 * time.Millisecond) // the frames that had room are in order
	if lost := s.sent - s.got; lost != 50 {
		t.Fatalf("lost %d datagrams, want 50", lost)
	}
	s.got = s.sent
	s.until(bySocket, 188)
	for range 2 * framesPerBlock {
		s.send(188, 188)
	}
	s.settled()
	if got := status(s.f).Receive; got != "socket: "+reasonOverflow || !strings.Contains(log.String(), reasonOverflow) {
		t.Errorf("receives by %q; the log:\n%s", got, log.String())
	}
}

// A ring of 80 frames holds 100 ms of 800 datagrams a second.
func TestRingFlow_staysOutOfARingThatIsCrowded(t *testing.T) {
	for _, c := range []struct {
		how   string
		sizes []int // twice in 3 ms
		want  string
	}{
		{ReceiveAuto, []int{188}, ReceiveRing},
		{ReceiveAuto, []int{188, 188}, "socket: " + reasonCrowded},
		{ReceiveRing, []int{188, 188}, ReceiveRing},
	} {
		s := newStream(t, ReceiverConfig{Receive: c.how, RingBytes: 128 << 10})
		for end := time.Now().Add(patience); status(s.f).Receive == "socket" && time.Now().Before(end); {
			s.send(c.sizes...)
			s.tick(3 * time.Millisecond)
			s.send(c.sizes...)
		}
		s.settled()
		if got := status(s.f).Receive; got != c.want {
			t.Errorf("%s, %d datagrams: got %q, want %q", c.how, len(c.sizes), got, c.want)
		}
	}
}
