package ingest

import (
	"encoding/hex"
	"net/netip"
	"testing"
)

func TestReport_bytes(t *testing.T) {
	anySource4 := report{group: netip.MustParseAddr("239.1.2.3")}
	oneSource4 := report{group: netip.MustParseAddr("232.1.2.3"), source: netip.MustParseAddr("198.51.100.7")}
	anySource6 := report{group: netip.MustParseAddr("ff0e::1:2")}
	oneSource6 := report{group: netip.MustParseAddr("ff3e::1:2"), source: netip.MustParseAddr("2001:db8::7")}
	f := func(name string, got []byte, want string) {
		t.Helper()
		if hex.EncodeToString(got) != want {
			t.Errorf("%s: got %x, want %s", name, got, want)
		}
	}
	f("IGMPv2", anySource4.igmpV2(), "1600"+"f8fa"+"ef010203")
	f("IGMPv3, any source", anySource4.igmpV3(), "2200"+"eaf9"+"00000001"+"02000000"+"ef010203")
	f("IGMPv3, one source", oneSource4.igmpV3(), "2200"+"c8bd"+"00000001"+"01000001"+"e8010203"+"c6336407")
	f("MLDv2, any source", anySource6.mldV2(), "8f000000"+"00000001"+"02000000"+"ff0e0000000000000000000000010002")
	f("MLDv2, one source", oneSource6.mldV2(), "8f000000"+"00000001"+"01000001"+"ff3e0000000000000000000000010002"+"20010db8000000000000000000000007")
	for _, b := range [][]byte{anySource4.igmpV2(), anySource4.igmpV3(), oneSource4.igmpV3()} {
		if got := onesSum(b); got != 0xffff {
			t.Errorf("sum over %x: got %#x, want 0xffff", b, got)
		}
	}
}

func TestReport_needed(t *testing.T) {
	for group, want := range map[string]bool{
		"224.0.0.251": false, "224.0.1.1": true, "239.1.1.1": true,
		"ff01::1:1": false, "ff02::1": false, "ff02::1:1": true, "ff0e::1": true,
	} {
		if got := (report{group: netip.MustParseAddr(group)}).needed(); got != want {
			t.Errorf("%s: got %t, want %t", group, got, want)
		}
	}
}
