package fec

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"zapcast/internal/captures"
)

// tsLength is the Check of a stream of TS packets behind a plain RTP header.
func tsLength(datagram []byte) int {
	n := rtpHeaderBytes
	for n+188 <= len(datagram) && datagram[n] == 0x47 {
		n += 188
	}
	for _, b := range datagram[n:] {
		if b != 0 {
			return 0
		}
	}
	return n
}

// capturedRS splits the capture into media and parity, in order of arrival.
func capturedRS(tb testing.TB) (list []captures.Datagram, media map[uint16][]byte) {
	media = map[uint16][]byte{}
	list = captures.Load(tb, captures.ReedSolomon)
	for _, d := range list {
		if d.To.Port() == 4056 {
			media[binary.BigEndian.Uint16(d.Payload[2:])] = d.Payload
		}
	}
	if len(media) != 1090 || len(list) != 1145 {
		tb.Fatalf("the capture has %d media datagrams of %d, want 1090 of 1145", len(media), len(list))
	}
	return list, media
}

// feed gives a decoder what is not lost, and returns what came back.
func feed(tb testing.TB, d *Decoder, list []captures.Datagram, lost map[uint16]bool) map[uint16][]byte {
	back := map[uint16][]byte{}
	for _, datagram := range list {
		b := datagram.Payload
		switch seq := binary.BigEndian.Uint16(b[2:]); {
		case b[1]&rtpPayloadType == RSPayloadType:
			h, parity, err := ParseRS(b[rtpHeaderBytes:])
			if err != nil {
				tb.Fatal(err)
			}
			d.RS(h, parity)
		case !lost[seq]:
			d.Media(seq, b)
		}
		for _, r := range d.Take() {
			if back[r.Sequence] != nil {
				tb.Errorf("%d came back twice", r.Sequence)
			}
			back[r.Sequence] = bytes.Clone(r.Datagram)
		}
	}
	return back
}

func TestCapture_everyLossUpToM(t *testing.T) {
	list, media := capturedRS(t)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 40 {
		d := NewDecoder(Config{Check: tsLength})
		lost := map[uint16]bool{}
		for begin := uint16(28377); begin < 29377; begin += 100 {
			for _, place := range random.Perm(100)[:1+round%5] {
				lost[begin+uint16(place)] = true
			}
		}
		if round == 39 { // at both ends of a group, and in one run
			lost = map[uint16]bool{28377: true, 28378: true, 28379: true, 28475: true, 28476: true}
		}
		back := feed(t, d, list, lost)
		if len(back) != len(lost) {
			t.Fatalf("round %d: %d of %d came back: %+v", round, len(back), len(lost), d.Stats())
		}
		for seq, got := range back {
			if !bytes.Equal(got, media[seq]) {
				t.Fatalf("round %d: %d: got % x …, want % x …", round, seq, got[:24], media[seq][:24])
			}
		}
		if code := d.Code(); code.String() != "Reed-Solomon 100+5 (integer)" {
			t.Fatalf("round %d: code %q", round, code)
		}
	}
}

func TestCapture_moreThanM(t *testing.T) {
	list, _ := capturedRS(t)
	lost := map[uint16]bool{}
	for i := range uint16(6) {
		lost[28377+7*i] = true // 6 of one group
		lost[28600+i] = i < 5  // 5 of another
	}
	d := NewDecoder(Config{Check: tsLength})
	back := feed(t, d, list, lost)
	for seq := uint16(28600); seq < 28605; seq++ {
		if back[seq] == nil {
			t.Errorf("%d did not come back", seq)
		}
	}
	if len(back) != 5 {
		t.Errorf("%d came back, want 5", len(back))
	}
	if d.Hope(28377) {
		t.Error("there is hope for a group with more lost than parity")
	}
	if len(d.groups) > 4 || d.rowsKept > 10 {
		t.Errorf("%d groups and %d rows are kept", len(d.groups), d.rowsKept)
	}
}

func TestCapture_dialectShowsItself(t *testing.T) {
	list, _ := capturedRS(t)
	d := NewDecoder(Config{Check: tsLength})
	d.Remember(Alpha) // wrongly
	feed(t, d, list, nil)
	if code := d.Code(); !code.Recognised || code.Dialect != Integer || code.Mismatch {
		t.Errorf("without loss: %+v, want the integer dialect", code)
	}
	if got := d.Stats().Useless; got != 50 {
		t.Errorf("%d rows of whole groups, want 50", got)
	}
}
