package ingest

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// split makes fragments of a packet's UDP datagram, size bytes each.
func split(id uint16, v6 bool, payload []byte, size int) (all [][]byte) {
	src, dst, header := testSource4, testGroup4, ip4Header
	if v6 {
		src, dst, header = testSource6, testGroup6, ip6Header
	}
	body := udpPacket(src, dst, 5000, payload)[header:]
	for at := 0; at < len(body); at += size {
		end, more := min(at+size, len(body)), uint16(0)
		if end < len(body) {
			more = 0x2000
		}
		all = append(all, ipPacket(src, dst, protocolUDP, id, uint16(at/8)|more, body[at:end]))
	}
	return all
}

func TestFragments_anyOrderAndTwice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var f fragments
	for round := range 200 {
		v6 := round%2 == 1
		payload := make([]byte, 100+rng.IntN(1300))
		for i := range payload {
			payload[i] = byte(rng.Uint32())
		}
		pieces := split(uint16(round), v6, payload, 8*(1+rng.IntN(30)))
		if len(pieces) < 2 {
			continue
		}
		pieces = append(pieces, pieces[:len(pieces)/2]...)
		rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		done := 0
		for _, b := range pieces {
			p, ok := parsePacket(b, false)
			if !ok || !p.fragment {
				t.Fatalf("round %d: %x is no fragment", round, b)
			}
			slot := f.add(&p)
			if slot < 0 {
				continue
			}
			done++
			whole := f.packet(slot)
			d, ok := whole.udp()
			if !ok || !whole.intact(&d) || !bytes.Equal(d.payload, payload) {
				t.Fatalf("round %d: the datagram is not what was sent", round)
			}
			f.release(slot)
			break // what comes again begins a datagram that stays incomplete
		}
		if done != 1 {
			t.Errorf("round %d: put together %d times, want once", round, done)
		}
	}
}

func TestFragments_refused(t *testing.T) {
	payload := bytes.Repeat([]byte("x"), 1000)
	pieces := split(1, false, payload, 400)
	overlap := ipPacket(testSource4, testGroup4, protocolUDP, 1, 0x2000|25, make([]byte, 400))
	longer := ipPacket(testSource4, testGroup4, protocolUDP, 1, 125, make([]byte, 100))
	for name, all := range map[string][][]byte{
		"overlap":                 {pieces[0], overlap, pieces[1], pieces[2]},
		"two ends":                {pieces[2], longer, pieces[0], pieces[1]},
		"an end before a piece":   {longer, ipPacket(testSource4, testGroup4, protocolUDP, 1, 10, make([]byte, 8)), pieces[0]},
		"a piece of odd size":     {ipPacket(testSource4, testGroup4, protocolUDP, 1, 0x2000, make([]byte, 401)), pieces[1], pieces[2]},
		"beyond what there is":    {ipPacket(testSource4, testGroup4, protocolUDP, 1, 8000, make([]byte, 8)), pieces[0], pieces[1]},
		"incomplete":              {pieces[0], pieces[2]},
		"pieces of two datagrams": {pieces[0], split(2, false, payload, 400)[1], pieces[2]},
	} {
		var f fragments
		for _, b := range all {
			p, _ := parsePacket(b, false)
			if slot := f.add(&p); slot >= 0 {
				t.Errorf("%s: put together", name)
			}
		}
	}
}

// Datagrams that stay incomplete take no room for ever, and those that are read
// are not touched.
func TestFragments_roomIsBounded(t *testing.T) {
	var f fragments
	payload := bytes.Repeat([]byte("y"), 800)
	whole := -1
	for _, b := range split(1, false, payload, 400) {
		p, _ := parsePacket(b, false)
		whole = f.add(&p)
	}
	if whole < 0 {
		t.Fatal("not put together")
	}
	for id := range uint16(3 * fragmentSlots) {
		p, _ := parsePacket(split(id+2, false, payload, 400)[0], false)
		f.add(&p)
	}
	p := f.packet(whole)
	if d, ok := p.udp(); !ok || !bytes.Equal(d.payload, payload) {
		t.Error("a datagram that is being read was overwritten")
	}
	last := split(3*fragmentSlots+1, false, payload, 400)
	slot := -1
	for _, b := range last[1:] {
		p, _ := parsePacket(b, false)
		slot = f.add(&p)
	}
	if slot < 0 {
		t.Error("the newest datagram was given up before the oldest")
	}
}
