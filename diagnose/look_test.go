package diagnose

import (
	"net/netip"
	"testing"
)

func TestGroupOf(t *testing.T) {
	for source, want := range map[string][2]string{
		"rtp://239.1.1.1:5000":                     {"239.1.1.1:5000", "invalid IP"},
		"rtp://192.0.2.9@232.1.1.1:5000":           {"232.1.1.1:5000", "192.0.2.9"},
		"rtp://[2001:db8::1]@[ff3e::1]:5000":       {"[ff3e::1]:5000", "2001:db8::1"},
		"udp://[ff15::1]:5000?fcc=192.0.2.1:15970": {"[ff15::1]:5000", "invalid IP"},
		"rtsp://192.0.2.1:554/live":                {"invalid AddrPort", "invalid IP"},
		"http://239.1.1.1.example/":                {"invalid AddrPort", "invalid IP"},
		"":                                         {"invalid AddrPort", "invalid IP"},
	} {
		group, sender := GroupOf(source)
		if got := [2]string{group.String(), sender.String()}; got != want {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}

func TestQueries_versions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parse func([]byte) int
		b     []byte
		want  int
	}{
		{"IGMPv1 (RFC 1112)", igmpQuery, []byte{0x11, 0, 0xee, 0xff, 0, 0, 0, 0}, 1},
		{"IGMPv2 (RFC 2236 §2)", igmpQuery, []byte{0x11, 100, 0xee, 0x9b, 0, 0, 0, 0}, 2},
		{"IGMPv3 (RFC 3376 §4.1)", igmpQuery, []byte{0x11, 100, 0xec, 0x1e, 0, 0, 0, 0, 2, 125, 0, 0}, 3},
		{"a report", igmpQuery, []byte{0x16, 0, 0, 0, 239, 1, 1, 1}, 0},
		{"cut", igmpQuery, []byte{0x11, 100, 0xee}, 0},
		{"MLDv1", mldQuery, append([]byte{130}, make([]byte, 23)...), 1},
		{"MLDv2", mldQuery, append([]byte{130}, make([]byte, 27)...), 2},
		{"no MLD", mldQuery, append([]byte{131}, make([]byte, 23)...), 0},
	} {
		if got := tt.parse(tt.b); got != tt.want {
			t.Errorf("%s: got version %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestQueries_closedOrNeverOpened(t *testing.T) {
	var q *Queries
	if got := q.last("lo", netip.MustParseAddr("239.1.1.1")); got.Listening {
		t.Error("nobody listens, and it says so")
	}
	q.Close()
	q = Listen()
	q.Close()
	q.Close()
}
