package nettest

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

const (
	left, right = "l eth1 192.0.2.1/24 2001:db8::1/64", "r eth2 192.0.2.2/24 2001:db8::2/64"
	port        = 5000
)

var (
	good   = Line{}
	target = netip.MustParseAddrPort("192.0.2.2:5000")
)

// numbered sends n datagrams from l to r and returns the numbers that arrive,
// in order, and how long the first took. over is what they go over; nil: a link.
func numbered(t *testing.T, lab *Lab, over *Wire, n int) (got []int, first time.Duration) {
	t.Helper()
	var in, out *net.UDPConn
	lab.Do("r", func() {
		var err error
		if in, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(target)); err != nil {
			t.Fatal(err)
		}
	})
	lab.Do("l", func() {
		var err error
		if out, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(target)); err != nil {
			t.Fatal(err)
		}
	})
	defer in.Close()
	defer out.Close()
	begun := time.Now()
	for i := range n {
		if _, err := out.Write(binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
			t.Fatal(err)
		}
	}
	if over != nil {
		lab.eventually("all of it has gone over the wire", func() bool {
			over.AtoB.mu.Lock()
			defer over.AtoB.mu.Unlock()
			return over.AtoB.counted >= n && len(over.AtoB.waiting) == 0
		})
	}
	buf := make([]byte, 64)
	for {
		in.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		if _, err := in.Read(buf); err != nil {
			return got, first
		}
		if got == nil {
			first = time.Since(begun)
		}
		got = append(got, int(binary.BigEndian.Uint32(buf)))
	}
}

func numbersOf(packets []Packet) (out []int) {
	for _, p := range packets {
		out = append(out, int(binary.BigEndian.Uint32(p.Body)))
	}
	return out
}

func TestNetns_wireDropsWhatItSays(t *testing.T) {
	lab := New(t, "l", "r")
	wire := lab.Wire(left, right, good, good)
	const n = 200
	numbered(t, lab, wire, 1) // what waits for ARP's answer is overtaken by what comes right after it
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if got, _ := numbered(t, lab, wire, n); !slices.Equal(got, all) {
		t.Errorf("a good wire: got %d datagrams, want %d in order", len(got), n)
	}
	var drawn [2][]int
	for name, line := range map[string]Line{
		"by number":      {Drop: []int{0, 7, 8, 199}},
		"three of fifty": {Lose: 3, Of: 50},
		"at random":      {Loss: 0.1, Seed: 3},
		"once more":      {Loss: 0.1, Seed: 3},
	} {
		line.Match = Port(port)
		wire.AtoB.Set(line)
		before := len(wire.AtoB.Dropped())
		got, _ := numbered(t, lab, wire, n)
		dropped := numbersOf(wire.AtoB.Dropped()[before:])
		var want []int
		for _, i := range all {
			if !slices.Contains(dropped, i) {
				want = append(want, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d datagrams, want the %d that were not dropped", name, len(got), len(want))
		}
		switch name {
		case "by number":
			if !slices.Equal(dropped, line.Drop) {
				t.Errorf("%s: dropped %v, want %v", name, dropped, line.Drop)
			}
		case "three of fifty":
			if len(dropped) != 12 || !slices.Equal(dropped[:6], []int{0, 1, 2, 50, 51, 52}) {
				t.Errorf("%s: dropped %v", name, dropped)
			}
		case "at random":
			drawn[0] = dropped
		case "once more":
			drawn[1] = dropped
		}
	}
	if len(drawn[0]) < 8 || len(drawn[0]) > 40 || !slices.Equal(drawn[0], drawn[1]) {
		t.Errorf("one seed: dropped %v and %v, want the same, about 20", drawn[0], drawn[1])
	}
}

func TestNetns_wireDelaysReordersAndRepeats(t *testing.T) {
	lab := New(t, "l", "r")
	wire := lab.Wire(left, right, Line{Delay: 30 * time.Millisecond}, good)
	numbered(t, lab, wire, 1) // ARP, as above
	got, first := numbered(t, lab, wire, 100)
	if len(got) != 100 || !slices.IsSorted(got) || first < 30*time.Millisecond {
		t.Errorf("delay: got %d datagrams, the first after %v, want 100 in order after 30 ms", len(got), first)
	}
	wire.AtoB.Set(Line{Match: UDP, Jitter: 20 * time.Millisecond})
	if got, _ = numbered(t, lab, wire, 100); len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("jitter: got %v, want 100 in order", got)
	}
	wire.AtoB.Set(Line{Match: UDP, Jitter: 20 * time.Millisecond, Reorder: true})
	if got, _ = numbered(t, lab, wire, 100); len(got) != 100 || slices.IsSorted(got) {
		t.Errorf("reordering: got %v, want 100 out of order", got)
	}
	wire.AtoB.Set(Line{Match: UDP, Duplicate: 0.5})
	got, _ = numbered(t, lab, wire, 100)
	if different := slices.Compact(slices.Clone(got)); len(different) != 100 || len(got) < 120 || len(got) > 180 {
		t.Errorf("duplicates: got %d of %d datagrams, want about 150 of 100", len(got), len(different))
	}
	if len(wire.AtoB.Dropped()) > 0 {
		t.Errorf("dropped %v, want nothing", wire.AtoB.Dropped())
	}
}

// TCP cuts its segments and sums them up before the wire, and repeats what is
// lost.
func TestNetns_wireCarriesTCP(t *testing.T) {
	lab := New(t, "l", "r")
	wire := lab.Wire(left, right, Line{Loss: 0.02, Seed: 1}, good)
	sent := make([]byte, 2<<20)
	for i := range sent {
		sent[i] = byte(i * 7 >> 3)
	}
	for _, addr := range []string{"192.0.2.2:80", "[2001:db8::2]:80"} {
		var l net.Listener
		var c net.Conn
		var err error
		lab.Do("r", func() { l, err = net.Listen("tcp", addr) })
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		lab.Do("l", func() { c, err = net.DialTimeout("tcp", addr, patience) })
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c.Write(sent)
			c.Close()
		}()
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		far.SetDeadline(time.Now().Add(patience))
		got, err := io.ReadAll(far)
		if err != nil || sha256.Sum256(got) != sha256.Sum256(sent) {
			t.Errorf("%s: got %d bytes and %v, want the %d that were sent", addr, len(got), err, len(sent))
		}
	}
	if len(wire.AtoB.Dropped()) == 0 {
		t.Error("nothing was lost: the test shows nothing")
	}
}

func TestNetns_earHearsWhatComesIn(t *testing.T) {
	lab := New(t, "l", "r")
	lab.Link(left, right)
	ear, deaf := lab.Listen("r", "eth2"), lab.Listen("l", "eth1")
	numbered(t, lab, nil, 3)
	p, _ := ear.Wait("the datagram", func(p Packet) bool { return p.To == target })
	if p.From.Addr().String() != "192.0.2.1" || p.Hops != 64 || len(p.Body) != 4 {
		t.Errorf("got %+v, want 4 bytes from 192.0.2.1", p)
	}
	for _, p := range deaf.Packets() {
		if p.To == target {
			t.Errorf("the sender's side heard its own %+v", p)
		}
	}
	var c *net.UDPConn
	lab.Do("l", func() {
		link, err := net.InterfaceByName("eth1")
		if err != nil {
			t.Fatal(err)
		}
		c, err = net.ListenMulticastUDP("udp4", link, &net.UDPAddr{IP: net.IPv4(239, 7, 0, 1), Port: port})
		if err != nil {
			t.Fatal(err)
		}
	})
	ear.WaitReport(ChangeToExclude, "239.7.0.1")
	c.Close()
	ear.WaitReport(ChangeToInclude, "239.7.0.1")
}
