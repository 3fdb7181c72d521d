package playout

import (
	"bytes"
	"testing"
	"time"

	"github.com/pion/rtp"
)

// TestPacker_headers has another implementation read what the packer writes.
func TestPacker_headers(t *testing.T) {
	const packets = 7*70_000 + 3 // the sequence number wraps
	var (
		n     int
		first rtp.Packet
		want  = bytes.Repeat([]byte{syncByte}, packetsPerDatagram*packetSize)
	)
	pack := newPacker(42, func(d datagram) error {
		var p rtp.Packet
		if err := p.Unmarshal(d.data); err != nil {
			t.Fatalf("datagram %d: %v", n, err)
		}
		if n == 0 {
			first = p
		}
		if p.Version != 2 || p.Padding || p.Extension || p.Marker || p.PayloadType != 33 || len(p.CSRC) != 0 {
			t.Fatalf("datagram %d: header %+v", n, p.Header)
		}
		if got, want := p.SequenceNumber, first.SequenceNumber+uint16(n); got != want {
			t.Fatalf("datagram %d: sequence number %d, want %d", n, got, want)
		}
		// 7 ms and so 630 ticks to a datagram.
		if got, want := p.Timestamp, first.Timestamp+uint32(n)*630; got != want || d.due != time.Duration(n)*7*time.Millisecond {
			t.Fatalf("datagram %d: timestamp %d, want %d; due at %v", n, got, want, d.due)
		}
		if p.SSRC != first.SSRC {
			t.Fatalf("datagram %d: SSRC %d, want %d", n, p.SSRC, first.SSRC)
		}
		size := len(want)
		if n == packets/packetsPerDatagram {
			size = packets % packetsPerDatagram * packetSize
		}
		if !bytes.Equal(p.Payload, want[:size]) {
			t.Fatalf("datagram %d: payload of %d bytes, want %d", n, len(p.Payload), size)
		}
		n++
		return nil
	})
	for i := range packets {
		pack.add(want[:packetSize], time.Duration(i)*time.Millisecond)
	}
	pack.flush()
	pack.flush()
	if n != packets/packetsPerDatagram+1 {
		t.Errorf("%d datagrams, want %d", n, packets/packetsPerDatagram+1)
	}
}

func TestPacker_randomBySeed(t *testing.T) {
	header := func(seed uint64) (got [rtpHeaderSize]byte) {
		pack := newPacker(seed, func(d datagram) error { copy(got[:], d.data); return nil })
		pack.add(make([]byte, packetSize), 0)
		pack.flush()
		return got
	}
	if a, b := header(1), header(1); a != b {
		t.Errorf("headers %x and %x with the same seed", a, b)
	}
	a, b := header(1), header(2)
	for _, f := range []struct {
		name     string
		from, to int
	}{{"sequence number", sequenceAt, timestampAt}, {"timestamp", timestampAt, ssrcAt}, {"SSRC", ssrcAt, rtpHeaderSize}} {
		if bytes.Equal(a[f.from:f.to], b[f.from:f.to]) {
			t.Errorf("the same %s with different seeds", f.name)
		}
	}
}
