package diagnose

import (
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"zapcast/ingest"
)

var (
	group  = netip.MustParseAddrPort("239.1.1.1:5000")
	sender = netip.MustParseAddr("10.0.0.1")
)

// joined are the facts of a channel that is joined as it should be, and of
// which nothing comes.
func joined(change ...func(*Facts)) Facts {
	f := Facts{
		Opened: true, Took: 3 * time.Second, Source: "rtp://239.1.1.1:5000", Group: group, Seen: "joined on eth1, received nothing", RandomAccess: -1,
		Link:    Link{Name: "eth1", Exists: Yes, Up: true, Carrier: Yes, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.7")}},
		Member:  Yes,
		Queries: Query{Listening: true, Since: time.Minute},
		Wire:    Wire{Looked: true, Time: 3 * time.Second},
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func arriving(f *Facts) {
	f.After = ingest.Status{Datagrams: 3000, Packets: 3000, ReceiveBuffer: 1 << 20}
	f.Wire.Packets, f.Wire.OnPort, f.Wire.Senders = 3000, 3000, []netip.Addr{sender}
	f.Codec, f.BitRate, f.RandomAccess = "h264", 8e6, time.Second
}

func onTheWire(f *Facts) {
	f.Wire.Packets, f.Wire.OnPort, f.Wire.Senders = 900, 900, []netip.Addr{sender}
}

func queried(f *Facts) {
	f.Queries.Heard, f.Queries.From, f.Queries.Version = 3, netip.MustParseAddr("10.0.0.254"), 2
}

func TestExplain_verdict(t *testing.T) {
	for _, tt := range []struct {
		want  string
		says  string
		facts Facts
	}{
		{"refused", "opened: too many groups", Facts{Refused: "too many groups"}},
		{"link_missing", "no interface eth9", joined(func(f *Facts) { f.Refused, f.Link = "unknown", Link{Name: "eth9", Exists: No} })},
		{"link_down", "`ip link set eth1 up`", joined(func(f *Facts) { f.Link.Up = false })},
		{"link_unplugged", "no carrier", joined(func(f *Facts) { f.Link.Carrier = No })},
		{"useless", "7 datagrams came", joined(onTheWire, func(f *Facts) { f.After.Datagrams, f.Seen = 7, "only FEC (7)" })},
		{"silent_source", "rtsp://", Facts{Opened: true, Source: "rtsp://192.0.2.1/live", Seen: "connected"}},
		{"not_joined", "does not list 239.1.1.1", joined(func(f *Facts) { f.Member = No })},
		{"other_port", "for port 5002, 5004, not 5000", joined(onTheWire, func(f *Facts) { f.Wire.OnPort, f.Wire.Ports = 0, []uint16{5002, 5004} })},
		{"other_sender", "from 10.0.0.1, not from 10.0.0.2", joined(onTheWire, func(f *Facts) { f.Sender = netip.MustParseAddr("10.0.0.2") })},
		{"path_filter", "net.ipv4.conf.eth1.rp_filter", joined(onTheWire, func(f *Facts) { f.Link.Filter = 1 })},
		{"path_filter", "back to 10.0.0.1", joined(onTheWire, func(f *Facts) { f.Path = 800 })},
		{"firewall", "UDP to 239.1.1.1 port 5000", joined(onTheWire, func(f *Facts) { f.Link.Filter = 2 })},
		{"old_querier", "version 2", joined(queried, func(f *Facts) { f.Sender = sender })},
		{"only_this", "4 other channels arrive on eth1", joined(queried, func(f *Facts) { f.Others = 4 })},
		{"elsewhere", "arrive on eth2", joined(func(f *Facts) { f.Elsewhere = "eth2" })},
		{"not_sent", "does not send", joined(queried)},
		{"no_querier", "in 200.0 s", joined(func(f *Facts) { f.Queries.Since = 200 * time.Second })},
		{"nothing", "Either this interface", joined()},
		{"overflow", "dropped 12 datagrams", joined(arriving, func(f *Facts) { f.After.Overflow, f.After.Lost = 12, 100 })},
		{"lossy", "61 packets (2.0 %)", joined(arriving, func(f *Facts) { f.After.Lost = 61 })},
		{"no_start", "no point yet", joined(arriving, func(f *Facts) { f.RandomAccess = -1 })},
		{"codec", "Its video is hevc", joined(arriving, func(f *Facts) { f.Codec = "hevc" })},
		{"slow_viewer", "of 2 of its viewers", joined(arriving, func(f *Facts) { f.Blocked = 2 })},
		{"fine", "8.0 Mbit/s", joined(arriving)},
	} {
		found := Explain(tt.facts)
		if got := found[0]; got.Level != Verdict || got.Code != tt.want || !strings.Contains(got.Text, tt.says) {
			t.Errorf("got %s %s %q, want %s with %q", got.Level, got.Code, got.Text, tt.want, tt.says)
		}
		for _, f := range found {
			if strings.ContainsAny(f.Text, "{}") {
				t.Errorf("%s: a figure is missing: %q", f.Code, f.Text)
			}
		}
		for _, f := range found[1:] {
			if f.Level == Verdict {
				t.Errorf("%s: a second verdict %s", tt.want, f.Code)
			}
		}
	}
}

func TestExplain_evidence(t *testing.T) {
	codes := func(f Facts) (out []string) {
		for _, found := range Explain(f)[1:] {
			out = append(out, found.Level+" "+found.Code)
		}
		return out
	}
	for _, tt := range []struct {
		facts Facts
		want  []string
	}{
		{joined(), []string{"good link", "good joined", "warn no_query", "bad wire_empty", "bad seen", "bad kinds"}},
		{joined(arriving, queried), []string{"good link", "good joined", "good query", "good wire", "good seen", "good kinds", "good picture", "good whole"}},
		{
			joined(arriving, func(f *Facts) {
				f.Queries, f.Wire, f.Link.Addresses, f.Path, f.RandomAccess = Query{}, Wire{}, nil, 5, -1
				f.After.Lost, f.After.Warnings = 3, []string{"two senders"}
			}),
			[]string{"warn link_bare", "good joined", "warn deaf", "warn blind", "bad path_dropped", "warn warning", "good seen", "good kinds", "warn no_picture", "warn lost"},
		},
	} {
		if got := codes(tt.facts); !slices.Equal(got, tt.want) {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
	if got := kindsOf(ingest.Status{Datagrams: 10, FEC: 1}, ingest.Status{Datagrams: 110, Packets: 80, FEC: 11, RTCP: 10}); got != "100 (MPEG-TS 80, RTCP 10, FEC 10)" {
		t.Errorf("kinds: got %s", got)
	}
}

// The page says the same in Chinese, with the same figures.
func TestSentences_inChinese(t *testing.T) {
	b, err := os.ReadFile("../httpout/page/assets/zh.js")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  find_(\w+): "(.*)",$`).FindAllStringSubmatch(string(b), -1) {
		said[m[1]] = m[2]
	}
	figures := func(s string) []string {
		all := regexp.MustCompile(`\{\w+\}`).FindAllString(s, -1)
		slices.Sort(all)
		return slices.Compact(all)
	}
	for code, text := range sentences {
		if got, want := figures(said[code]), figures(text); !slices.Equal(got, want) {
			t.Errorf("%s: got the figures %q in %q, want %q", code, got, said[code], want)
		}
		delete(said, code)
	}
	for code := range said {
		t.Errorf("%s: nothing finds that", code)
	}
}

// What came of fast channel change is said once it is decided.
func TestExplain_fastChange(t *testing.T) {
	for want, fcc := range map[string]ingest.FCCStatus{
		"10.0.0.9:8027 answered after 12.0 ms, and the stream began with its burst.": {Kind: ingest.StartBurst, Server: "10.0.0.8:8027", Asked: "10.0.0.9:8027", ReplyTime: 12 * time.Millisecond},
		"the burst of 10.0.0.8:8027 began and did not lead into the multicast: it":   {Kind: ingest.StartBurst, Server: "10.0.0.8:8027", Reason: "it ended early"},
		"no burst came from 10.0.0.8:8027, so the stream began with the multicast":   {Kind: ingest.StartMulticast, Server: "10.0.0.8:8027", Reason: "no answer"},
		"": {Server: "10.0.0.8:8027"},
	} {
		facts := joined(arriving, func(f *Facts) { f.After.FCC = &fcc })
		var said strings.Builder
		for _, f := range Explain(facts) {
			if strings.HasPrefix(f.Code, "fcc_") {
				said.WriteString(f.Text)
			}
		}
		if want == "" && said.String() != "" || !strings.Contains(said.String(), want) {
			t.Errorf("%+v: got %q, want %q", fcc, said.String(), want)
		}
	}
}

// So is what parity there is.
func TestExplain_parity(t *testing.T) {
	facts := joined(arriving, func(f *Facts) {
		f.After.Repair = &ingest.RepairStatus{Code: "Reed-Solomon 100+5", Where: "port 4055", State: "It repairs", Parity: 15}
	})
	const want = "Parity (Reed-Solomon 100+5, port 4055): 15 datagrams of it came. It repairs."
	if !slices.ContainsFunc(Explain(facts), func(f Finding) bool { return f.Text == want && f.Level == Good }) {
		t.Errorf("got %+v, want %q", Explain(facts), want)
	}
}
