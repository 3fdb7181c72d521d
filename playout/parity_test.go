package playout

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"zapcast/fec"
)

func TestParseParity(t *testing.T) {
	for s, want := range map[string]Parity{
		"rs:100,5":       {Media: 100, Count: 5},
		"rs:48,3,alpha":  {Media: 48, Count: 3, Dialect: fec.Alpha},
		"2022-1:10,10":   {Columns: 10, Rows: 10},
		"rs:250,6":       {Media: 250, Count: 6},
		"rs:1,1":         {Media: 1, Count: 1},
		"2022-1:1,1":     {Columns: 1, Rows: 1},
		"rs:250,5,alpha": {Media: 250, Count: 5, Dialect: fec.Alpha},
	} {
		if got, err := ParseParity(s); err != nil || got != want {
			t.Errorf("ParseParity(%q) = %+v, %v, want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "rs", "rs:", "rs:5", "rs:0,5", "rs:5,0", "rs:-1,2", "rs:252,5", "rs:251,5,alpha", "rs:5,5,beta", "rs:5,5,alpha,1",
		"2022-1:0,5", "2022-1:5", "2022-1:256,1", "2022-1:100,100", "xor:5,5", "rs:x,1",
	} {
		if got, err := ParseParity(s); err == nil {
			t.Errorf("ParseParity(%q) = %+v, want an error", s, got)
		}
	}
}

// TestProtection_spreads checks that all parity goes out, behind its media, and
// Reed-Solomon's never two at a time.
func TestProtection_spreads(t *testing.T) {
	for _, tt := range []struct {
		parity   Parity
		media    int
		want     map[uint16]int // by port shift
		together int            // at most
	}{
		{Parity{Media: 20, Count: 4}, 200, map[uint16]int{2: 40}, 1},
		{Parity{Media: 2, Count: 6}, 20, map[uint16]int{2: 60}, 6},
		{Parity{Columns: 10, Rows: 5}, 200, map[uint16]int{2: 30, 4: 20}, 2},
		{Parity{Columns: 1, Rows: 1}, 20, map[uint16]int{2: 19, 4: 20}, 2},
	} {
		encoder, err := tt.parity.encoder()
		if err != nil {
			t.Fatal(err)
		}
		p := protection{encoder: encoder}
		got := map[uint16]int{}
		d := datagram{data: make([]byte, maxDatagram)}
		d.data[0], d.data[1] = rtpVersion2, rtpPayloadMP2T
		count := func(made datagram) {
			if made.due != d.due {
				t.Errorf("%+v: due at %v behind media of %v", tt.parity, made.due, d.due)
			}
			got[made.shift]++
		}
		for n := range tt.media {
			binary.BigEndian.PutUint16(d.data[sequenceAt:], uint16(65_500+n))
			d.due++
			before := p.sent
			if p.add(d, count); int(p.sent-before) > tt.together {
				t.Errorf("%+v: %d datagrams of parity at once, want %d at most", tt.parity, p.sent-before, tt.together)
			}
		}
		p.flush(d, count)
		for shift, n := range tt.want {
			if got[shift] != n {
				t.Errorf("%+v: %d datagrams on port + %d, want %d", tt.parity, got[shift], shift, n)
			}
		}
	}
}

func TestOpen_refusesParityWithoutSequenceNumbers(t *testing.T) {
	for want, to := range map[string]Destination{
		"playout: parity needs sequence numbers, want a destination rtp://GROUP:PORT":      {Addr: netip.MustParseAddrPort("239.255.77.9:5001")},
		"playout: port 65532 has no room for ports of parity above it, want 65531 at most": {RTP: true, Addr: netip.MustParseAddrPort("239.255.77.9:65532")},
	} {
		_, err := Open(Config{Destinations: []Destination{to}, Parity: Parity{Media: 10, Count: 2}})
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
