package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var (
	group  = netip.MustParseAddr("239.11.0.65")
	server = netip.MustParseAddr("192.0.2.7")
	client = netip.MustParseAddr("198.51.100.9")

	addresses = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})
)

// messages is one of each kind, with its bytes where the tables give them.
var messages = []struct {
	name  string
	m     Message
	bytes string // hexadecimal; spaces do not count
	parse func(Packet) (Message, error)
}{
	{
		"telecom request", &TelecomRequest{Group: netip.AddrPortFrom(group, 5140), MediaPort: 40032},
		"82CD0009 00000000 EF0B0041 00000000 9C601414 EF0B0041 00000000 00000000 00000000 00000000", ParseClient,
	},
	{
		"FiberHome's request", &TelecomRequest{Client: client, Group: netip.AddrPortFrom(group, 5140), MediaPort: 40032, Reserved: 0xFF, ID: [16]byte{1, 2, 15: 9}},
		"82CD0009 C6336409 EF0B0041 00FFFFFF 9C601414 EF0B0041 01020000 00000000 00000000 00000009", ParseClient,
	},
	{
		"telecom response", &TelecomResponse{
			Group: group, Action: TelecomBurst, SignallingPort: 60927, MediaPort: 60926, Punch: true, Server: server,
			Valid: 30 * time.Second, Rate: 12_000_000, RateAfter: 9_200_000,
		},
		"83CD0008 00000000 EF0B0041 0002EDFF EDFE8000 C0000207 0000001E 00B71B00 008C6180",
		func(p Packet) (Message, error) { return keep(ParseTelecomResponse(p)) },
	},
	{
		"telecom sync", &TelecomSync{Group: group}, "84CD0002 00000000 EF0B0041",
		func(p Packet) (Message, error) { return keep(ParseTelecomSync(p)) },
	},
	{"telecom termination", &TelecomTermination{Group: group, First: 0x1234}, "85CD0003 00000000 EF0B0041 00001234", ParseClient},
	{"telecom termination, forced", &TelecomTermination{Group: group, Forced: true}, "85CD0003 00000000 EF0B0041 01000000", ParseClient},
	{
		"FiberHome's punch", &TelecomPunch{Client: client, Group: group, ID: [16]byte{7}},
		"9FCD0014 C6336409 EF0B0041 07000000 00000000 00000000 00000000 00000000", ParseClient,
	},
	{
		"Huawei request", &HuaweiRequest{Group: group, Client: client, SignallingPort: 40033, Redirects: true, NAT: true},
		"85CD0007 00000000 EF0B0041 00000000 00000000 C6336409 9C618000 20000000", ParseClient,
	},
	{
		"Huawei response", &HuaweiResponse{
			Group: group, Result: HuaweiOK, Type: HuaweiBurst, First: 65534, Rate: 13_000, NAT: true, Port: 8130, Session: 0xA1B2C3D4, Server: server,
		},
		"86CD0008 00000000 EF0B0041 01000002 FFFE0000 32C80000 20001FC2 A1B2C3D4 C0000207",
		func(p Packet) (Message, error) { return keep(ParseHuaweiResponse(p)) },
	},
	{
		"Huawei response, short", &HuaweiResponse{Short: true, Group: group, Result: HuaweiOK, Type: HuaweiBurst, First: 7, Rate: 9},
		"86CD0005 00000000 EF0B0041 01000002 00070000 00090000",
		func(p Packet) (Message, error) { return keep(ParseHuaweiResponse(p)) },
	},
	{
		"Huawei sync", &HuaweiSync{Group: group}, "88CD0002 00000000 EF0B0041",
		func(p Packet) (Message, error) { return keep(ParseHuaweiSync(p)) },
	},
	{"Huawei termination", &HuaweiTermination{Group: group, First: 0x1234}, "89CD0003 00000000 EF0B0041 01001234", ParseClient},
	{"Huawei termination, forced", &HuaweiTermination{Group: group, Forced: true}, "89CD0003 00000000 EF0B0041 02000000", ParseClient},
	{
		"Huawei request in TLVs",
		&HuaweiRequest{TLV: true, Group: group, Source: server, Client: client, SignallingPort: 40033, Redirects: true, NAT: true},
		`8ACD000F 00000000 00000000 01000000 80000004 EF0B0041 81000004 C0000207 82000004 C6336409
		 83000002 9C610000 8C000001 01000000 8D000002 00010000`, ParseClient,
	},
	{
		"Huawei response in TLVs",
		&HuaweiResponse{
			TLV: true, Group: group, Result: HuaweiTLVOK, Type: HuaweiBurst, First: 3, Rate: 9000, NAT: true, Port: 8130,
			Session: 5, Server: server, Valid: time.Hour,
		}, "", func(p Packet) (Message, error) { return keep(ParseHuaweiResponse(p)) },
	},
	{
		"Huawei response in TLVs, IPv6",
		&HuaweiResponse{TLV: true, Result: HuaweiTLVOK, Type: HuaweiRedirect, Port: 1, Server: netip.MustParseAddr("2001:db8::7")}, "",
		func(p Packet) (Message, error) { return keep(ParseHuaweiResponse(p)) },
	},
	{
		"Huawei sync in TLVs", &HuaweiSync{TLV: true}, "8ACD0003 00000000 00000000 03000000",
		func(p Packet) (Message, error) { return keep(ParseHuaweiSync(p)) },
	},
	{
		"Huawei termination in TLVs", &HuaweiTermination{TLV: true, Group: group, First: 0x1234},
		"8ACD0009 00000000 00000000 04000000 80000004 EF0B0041 3D000004 00001234 86000001 01000000", ParseClient,
	},
	{"Huawei punch in TLVs", &HuaweiPunch{TLV: true, Session: 5}, "8ACD0007 00000000 00000000 0C000000 96000001 03000000 97000004 00000005", ParseClient},
	{
		"RAMS request", &RAMSRequest{Client: 9, MinFill: 200 * time.Millisecond, MaxFill: 2 * time.Second, MaxRate: 1 << 33},
		"86CD000B 00000009 00000009 01000000 01000000 02000004 000000C8 03000004 000007D0 04000008 00000002 00000000", ParseClient,
	},
	{
		"RAMS request, everything",
		&RAMSRequest{Client: 9, Media: []uint32{0, 7}, MaxRate: 1, PreambleOnly: true, Group: netip.AddrPortFrom(group, 5140)}, "", ParseClient,
	},
	{
		"RAMS information", &RAMSInformation{
			Server: 1, Media: 2, MSN: 3, Code: RAMSAccepted, Sender: new(uint32(0)), First: new(uint16(65535)),
			Join: new(time.Duration(0)), Duration: 1200 * time.Millisecond, BurstRate: 1 << 40,
		},
		`86CD000E 00000001 00000002 020300C8 1F000004 00000000 20000002 FFFF0000 21000004 00000000 22000004 000004B0
		 23000008 00000100 00000000`,
		func(p Packet) (Message, error) { return keep(ParseRAMSInformation(p)) },
	},
	{
		"RAMS information, refusal", &RAMSInformation{Server: 1, Code: RAMSDenied}, "86CD0003 00000001 00000000 02000200",
		func(p Packet) (Message, error) { return keep(ParseRAMSInformation(p)) },
	},
	{"RAMS termination", &RAMSTermination{Client: 9, Media: 2, First: new(uint32(1 << 16))}, "86CD0005 00000009 00000002 03000000 3D000004 00010000", ParseClient},
	{"RAMS termination, at once", &RAMSTermination{Client: 9, Media: 2}, "86CD0003 00000009 00000002 03000000", ParseClient},
	{"NACK", &NACK{Client: 1, Media: 2, Lost: []Lost{{65535, 1}, {9, 0}}}, "81CD0004 00000001 00000002 FFFF0001 00090000", ParseClient},
}

func TestMessages_roundTrip(t *testing.T) {
	for _, m := range messages {
		t.Run(m.name, func(t *testing.T) {
			b := m.m.Append([]byte("before"))
			b, ok := bytes.CutPrefix(b, []byte("before"))
			if want := strings.Join(strings.Fields(m.bytes), ""); !ok || want != "" && !strings.EqualFold(hex.EncodeToString(b), want) {
				t.Errorf("bytes: got %X, want %s", b, want)
			}
			p, rest, err := Next(b)
			if err != nil || len(rest) != 0 {
				t.Fatalf("Next: got %d bytes left, error %v, want a packet and nothing else", len(rest), err)
			}
			got, err := m.parse(p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m.m, got, addresses); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// Every message that is cut is refused, or is a shorter one of its kind.
func TestMessages_cut(t *testing.T) {
	for _, m := range messages {
		b := m.m.Append(nil)
		for n := range len(b) {
			p, _, err := Next(b[:n])
			if err != nil {
				if n >= leastPacket {
					t.Errorf("%s of %d bytes: got %v, want a packet", m.name, n, err)
				}
				continue
			}
			if got, err := m.parse(p); err != nil {
				if !errors.Is(err, ErrShort) && !errors.Is(err, ErrMessage) {
					t.Errorf("%s of %d bytes: got error %v, want ErrShort or ErrMessage", m.name, n, err)
				}
			} else if got == nil {
				t.Errorf("%s of %d bytes: got neither message nor error", m.name, n)
			}
		}
	}
}

func TestPackets_twiceInOneDatagram(t *testing.T) {
	response := &TelecomResponse{Group: group, Action: TelecomRedirect, Server: server}
	b := response.Append(response.Append(nil)) // 72 bytes, as captured
	n := 0
	for p := range Packets(append(b, 0, 1, 2)) {
		got, err := ParseTelecomResponse(p)
		if diff := cmp.Diff(*response, got, addresses); err != nil || diff != "" {
			t.Errorf("packet %d: error %v, message (-want +got):\n%s", n, err, diff)
		}
		n++
	}
	if n != 2 {
		t.Errorf("got %d packets, want 2", n)
	}
}

func TestAppendCompound(t *testing.T) {
	for _, name := range []string{"", "a", "ab", "abc", "zapcast@192.0.2.1", strings.Repeat("x", 300)} {
		b := AppendCompound(nil, 0xABCD, name)
		if len(b)%4 != 0 {
			t.Errorf("%q: got %d bytes, want a multiple of four", name, len(b))
		}
		b = (&RAMSTermination{Client: 0xABCD}).Append(b)
		var types []byte
		for p := range Packets(b) {
			types = append(types, p.Type)
			if p.Sender != 0xABCD {
				t.Errorf("%q: got sender %x in type %d", name, p.Sender, p.Type)
			}
		}
		if diff := cmp.Diff([]byte{TypeReceiverReport, TypeSDES, TypeFeedback}, types); diff != "" {
			t.Errorf("%q: types (-want +got):\n%s", name, diff)
		}
		if last := b[len(b)-16-1]; last != 0 {
			t.Errorf("%q: source description ends with %x, want zero", name, last)
		}
	}
}

func TestParseTelecomSync_isFree(t *testing.T) {
	for _, b := range []string{"84CD0002 00000000 EF0B0041", "84CD0003 00000000 EF0B0041 00000000", "84CD0001 00000000", "84CC0002 00000000 EF0B0041"} {
		p := packet(t, b)
		if _, err := ParseTelecomSync(p); err != nil {
			t.Errorf("%s: got %v, want a sync notice", b, err)
		}
	}
}

func TestParseHuaweiResponse_lengths(t *testing.T) {
	long := (&HuaweiResponse{Group: group, Result: HuaweiOK, Port: 5, Server: server}).Append(nil)
	for _, c := range []struct {
		result, kind byte
		size         int
		good, short  bool
	}{
		{2, HuaweiJoin, 16, true, true},
		{2, HuaweiBurst, 16, true, true},
		{HuaweiOK, HuaweiJoin, 16, true, true},
		{HuaweiOK, HuaweiJoin, 15, false, false},
		{HuaweiOK, HuaweiBurst, 20, false, false},
		{HuaweiOK, HuaweiBurst, 24, true, true},
		{HuaweiOK, HuaweiBurst, 35, true, true},
		{HuaweiOK, HuaweiBurst, 36, true, false},
		{HuaweiOK, HuaweiRedirect, 35, false, false},
		{HuaweiOK, HuaweiRedirect, 36, true, false},
	} {
		long[12], long[15] = c.result, c.kind
		p, _, err := Next(long[:c.size])
		if err != nil {
			t.Fatal(err)
		}
		m, err := ParseHuaweiResponse(p)
		if (err == nil) != c.good || m.Short != c.short {
			t.Errorf("result %d, type %d, %d bytes: got short %t, error %v, want good %t, short %t", c.result, c.kind, c.size, m.Short, err, c.good, c.short)
		}
	}
}

func TestParseHuaweiPunch(t *testing.T) {
	punch := &HuaweiPunch{Session: 0xA1B2C3D4}
	b := punch.Append(nil)
	if want := []byte{0, 3, 0, 0, 0xA1, 0xB2, 0xC3, 0xD4}; !bytes.Equal(b, want) {
		t.Errorf("bytes: got % x, want % x", b, want)
	}
	if got, err := ParseHuaweiPunch(b); err != nil || got != *punch {
		t.Errorf("got %v, error %v, want %v", got, err, *punch)
	}
	for _, b := range [][]byte{nil, b[:7], append(b, 0), {1, 3, 0, 0, 0, 0, 0, 0}} {
		if got, err := ParseHuaweiPunch(b); !errors.Is(err, ErrMessage) {
			t.Errorf("% x: got %v, error %v, want ErrMessage", b, got, err)
		}
	}
}

func TestParseTLVs_bounds(t *testing.T) {
	many := bytes.Repeat([]byte{1, 0, 0, 1, 9, 0, 0, 0}, 100)
	if got := parseTLVs(many); len(got) != 1 || got[1][0] != 9 {
		t.Errorf("a repeated type: got %v, want the first alone", got)
	}
	var all []byte
	for i := range 200 {
		all = appendTLV(all, byte(i))
	}
	if got := parseTLVs(all); len(got) != maxTLVs {
		t.Errorf("200 types: got %d, want %d", len(got), maxTLVs)
	}
	// The last value is cut short, its padding left out: real servers do both.
	if got := parseTLVs([]byte{1, 0, 0, 1, 7}); len(got) != 1 {
		t.Errorf("no padding: got %v, want one value", got)
	}
	if got := parseTLVs([]byte{1, 0, 0, 2, 7}); len(got) != 0 {
		t.Errorf("cut value: got %v, want none", got)
	}
}

func TestParseNACK_tooMany(t *testing.T) {
	b := (&NACK{Lost: make([]Lost, maxLost)}).Append(nil)
	p, _, _ := Next(b)
	if m, err := ParseNACK(p); err != nil || len(m.Lost) != maxLost {
		t.Errorf("%d pairs: got %d, error %v", maxLost, len(m.Lost), err)
	}
	b = resize(append(b, 0, 0, 0, 0), 0)
	p, _, _ = Next(b)
	if _, err := ParseNACK(p); !errors.Is(err, ErrMessage) {
		t.Errorf("one pair more: got error %v, want ErrMessage", err)
	}
}

func packet(t *testing.T, text string) Packet {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := Next(b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// FuzzParse gives any bytes to every parser. What one of them accepts comes
// back the same after another trip.
func FuzzParse(f *testing.F) {
	for _, m := range messages {
		f.Add(m.m.Append(nil))
		f.Add(m.m.Append(AppendCompound(nil, 1, "name")))
	}
	parsers := []func(Packet) (Message, error){ParseClient}
	for _, m := range messages {
		parsers = append(parsers, m.parse)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = ParseHuaweiPunch(b)
		n := 0
		for p := range Packets(b) {
			n++
			for _, parse := range parsers {
				m, err := parse(p)
				if err != nil {
					continue
				}
				again, _, err := Next(m.Append(nil))
				if err != nil {
					t.Fatalf("%#v: its own bytes are no packet: %v", m, err)
				}
				got, err := parse(again)
				if err != nil {
					t.Fatalf("%#v: its own bytes are not parsed: %v", m, err)
				}
				if diff := cmp.Diff(m, got, addresses); diff != "" {
					t.Fatalf("second trip (-first +second):\n%s", diff)
				}
			}
		}
		if n > maxPackets {
			t.Fatalf("got %d packets, want at most %d", n, maxPackets)
		}
	})
}
