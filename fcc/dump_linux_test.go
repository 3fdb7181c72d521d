package fcc

import (
	"encoding/binary"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zapcast/fcc/wire"
	"zapcast/ingest"
	"zapcast/internal/nettest"
)

var update = flag.Bool("update", false, "rewrite the zaps in docs/fcc.md")

const (
	zapsPage  = "../docs/fcc.md"
	updateEnv = "ZAPCAST_TEST_UPDATE"
	pcapEnv   = "ZAPCAST_TEST_PCAP" // folder for captures of these zaps

	eachTime = " (varies)"
)

// One zap in each dialect, as it is on the wire: the tables in docs/fcc.md are
// what the program sends and what a server answers.
func TestNetns_zapOnTheWire(t *testing.T) {
	if *update {
		t.Setenv(updateEnv, "1") // for the process in the namespace
	}
	for _, dialect := range Dialects {
		t.Run(dialect, func(t *testing.T) {
			snooped(t, func(t *testing.T, l *nettest.Lab) {
				page, err := os.ReadFile(zapsPage)
				if err != nil {
					t.Fatal(err)
				}
				ear := l.Overhear("rx", "eth")
				const tries = 4 // a busy machine may ask again, or give up
				for try := range tries {
					client := "192.0.2.1"
					if try > 0 { // one that the server has not heard of
						client = fmt.Sprint("192.0.2.1", try)
						l.IP("rx", "addr flush dev eth")
						l.IP("rx", "addr add "+client+"/24 dev eth")
					}
					packets, first := wiredZap(t, ear, dialect)
					table, err := zapTable(dialect, client, packets, first)
					writePCAP(t, dialect, packets)
					switch {
					case err == nil && os.Getenv(updateEnv) != "":
						replaceZap(t, string(page), table)
						return
					case err == nil && strings.Contains(withoutVariations(string(page)), withoutVariations(table)):
						return
					case try == tries-1:
						t.Errorf("%v; seen, and not in %s:\n%s", err, zapsPage, table)
					}
				}
			})
		})
	}
}

// replaceZap puts a table in the place of the one with the same title, or at the end.
func replaceZap(t *testing.T, page, table string) {
	title, _, _ := strings.Cut(table, "\n")
	before, old, _ := strings.Cut(page, title+"\n")
	after := ""
	if i := strings.Index(old, "\n### "); i >= 0 {
		after = old[i:]
	}
	if err := os.WriteFile(zapsPage, []byte(strings.TrimRight(before, "\n")+"\n\n"+table+after), 0o644); err != nil {
		t.Error(err)
	}
}

// snooped runs body at the near end of a line that brings the group when it was
// joined. The server has heard nothing of the client yet.
func snooped(t *testing.T, body func(t *testing.T, l *nettest.Lab)) {
	var joined atomic.Bool
	up := nettest.Line{Match: func(p nettest.Packet) bool {
		for _, r := range p.Reports() {
			if r.Group == farGroup.Addr() {
				joined.Store(r.Kind == nettest.ChangeToExclude)
			}
		}
		return false
	}}
	down := nettest.Line{Match: func(p nettest.Packet) bool { return p.To == farGroup && !joined.Load() }, Loss: 1}
	onLine(t, 950, down, up, body)
}

// wiredZap makes a zap by the book of an operator's box, and returns what was on
// the wire and the first sequence number of the group.
func wiredZap(t *testing.T, ear *nettest.Ear, dialect string) (packets []nettest.Packet, first uint16) {
	r, err := ingest.NewReceiver(ingest.ReceiverConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	began := time.Now()
	config := Config{Join: OnSync, FirstPort: 40032, LastPort: 40032}
	if dialectOf(dialect).twin() {
		config.LastPort++
	}
	source, err := Open(r, ingest.FlowSpec{Group: farGroup, Interface: "eth"}, Request{farServer, dialect}, config, NewBook())
	if err != nil {
		t.Fatal(err)
	}
	source.machine.joinAt = began.Add(time.Minute) // by the server's word only, however slow the machine
	drive(t, r, source, began, func(*listing) bool { s := source.Status().FCC; return s.HandOver > 0 && s.State == "" })
	first = source.seam.first
	if err := source.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range ear.Packets() {
		if !p.At.Before(began) {
			packets = append(packets, p)
		}
	}
	return packets, first
}

// A row is a part of a message.
type row struct {
	offset  int
	bytes   []byte
	meaning string
	varies  bool // from zap to zap
}

// zapTable writes what was on the wire as a table. Of the copies of a message
// there is one row, of the streams the first packet. The client appears as 192.0.2.1.
func zapTable(dialect, client string, packets []nettest.Packet, first uint16) (table string, err error) {
	copies := map[string]int{}
	key := func(p nettest.Packet) string { return fmt.Sprint(p.From, p.To, p.Body) }
	for _, p := range packets {
		copies[key(p)]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n| ms | from, to | offset | bytes | meaning |\n|---|---|---|---|---|\n", dialect)
	var burst, joined, group bool
	for _, p := range packets {
		media := p.Protocol == unix.IPPROTO_UDP && ingest.Classify(p.Body) == ingest.KindRTP
		header, _, _ := ingest.PeekRTP(p.Body)
		where := "client → " + portOf(p.To)
		switch {
		case p.Protocol == unix.IPPROTO_IGMP:
			reports := p.Reports()
			if joined || len(reports) == 0 || reports[0].Group != farGroup.Addr() {
				continue
			}
			joined, where = true, "client → routers"
		case p.To == farGroup:
			if group {
				continue
			}
			if !joined || header.Sequence != first {
				err = fmt.Errorf("the group begins with %d on the wire, joined: %t, and with %d in the window", header.Sequence, joined, first)
			}
			group, where = true, "→ group"
		case p.Protocol != unix.IPPROTO_UDP, onlyReports(p.Body):
			continue
		case media:
			if burst {
				continue
			}
			burst = true
		}
		if p.From.Addr() == farServer.Addr() && p.To != farGroup {
			where = portOf(p.From) + " → client's " + portOf(p.To)
		}
		n := copies[key(p)]
		if n == 0 {
			continue // a copy
		}
		delete(copies, key(p))
		if n > 1 {
			where += fmt.Sprintf(", %d ×", n)
		}
		ms := fmt.Sprintf("%.0f", p.At.Sub(packets[0].At).Seconds()*1000)
		rows, ok := decode(p, media)
		if !ok {
			err = fmt.Errorf("not all of a message to %v is explained", p.To)
		}
		for _, r := range rows {
			fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", ms, where, r.offset, spell(r.bytes), strings.TrimSuffix(r.meaning+map[bool]string{true: eachTime}[r.varies], " "))
			ms, where = "", ""
		}
	}
	if !group || !burst {
		err = fmt.Errorf("seen on the wire: group %t, burst %t", group, burst)
	}
	own := netip.MustParseAddr(client).As4()
	table = strings.ReplaceAll(b.String(), fmt.Sprintf("% X", own), "C0 00 02 01")
	return strings.ReplaceAll(table, client, "192.0.2.1"), err
}

// onlyReports reports whether RTCP says no more than that its sender is there.
func onlyReports(b []byte) bool {
	n := 0
	for p := range wire.Packets(b) {
		if n++; p.Type == wire.TypeFeedback {
			return false
		}
	}
	return n > 0
}

func portOf(a netip.AddrPort) string { return fmt.Sprint(a.Port()) }

// spell writes bytes in hexadecimal, long ones in part.
func spell(b []byte) string {
	const most = 16
	switch {
	case len(b) == 0:
		return "none"
	case len(b) > 4 && slices.Max(b) == 0:
		return fmt.Sprintf("`00` × %d", len(b))
	case len(b) > most:
		return fmt.Sprintf("`% X …` %d in all", b[:8], len(b))
	}
	return fmt.Sprintf("`% X`", b)
}

var (
	variation = regexp.MustCompile(`(?m)\| [^|]* \| [^|]*` + regexp.QuoteMeta(eachTime) + ` \|$`)
	number    = regexp.MustCompile(`\d+`)
	often     = regexp.MustCompile(`(?m)^\| \d* \| ([^|]*?)(, \d+ ×)? \|`)
)

// withoutVariations leaves out what differs from zap to zap.
func withoutVariations(table string) string {
	table = variation.ReplaceAllStringFunc(table, func(row string) string {
		return number.ReplaceAllString(row[strings.Index(row[1:], "|")+1:], "")
	})
	return often.ReplaceAllString(table, "| $1 |")
}

// A decoder takes a message apart.
type decoder struct {
	b    []byte
	at   int
	rows []row
}

func (d *decoder) take(n int, meaning string, arguments ...any) *row {
	n = min(n, len(d.b)-d.at)
	d.rows = append(d.rows, row{d.at, d.b[d.at : d.at+n], fmt.Sprintf(meaning, arguments...), false})
	d.at += n
	return &d.rows[len(d.rows)-1]
}

// number, address and varying take what is a number, an address, or another each time.
func (d *decoder) number(n int, meaning string) *row {
	v := uint64(0)
	for _, c := range d.b[d.at:min(d.at+n, len(d.b))] {
		v = v<<8 | uint64(c)
	}
	return d.take(n, meaning, v)
}

func (d *decoder) address(meaning string) *row {
	return d.take(4, meaning, netip.AddrFrom4([4]byte(d.b[d.at:])))
}

func (d *decoder) varying(n int, meaning string) {
	if strings.Contains(meaning, "%d") {
		d.number(n, meaning).varies = true
		return
	}
	d.take(n, "%s", meaning).varies = true
}

func decode(p nettest.Packet, media bool) (rows []row, all bool) {
	d := &decoder{b: p.Body}
	switch {
	case p.Protocol == unix.IPPROTO_IGMP:
		d.take(8, "IGMPv3 report, one record: **join**")
		d.take(4, "to the group from any source")
		d.address("%s")
	case len(d.b) == 0:
		d.take(0, "**empty**: opens the way for the burst")
	case string(d.b[:4]) == "\x00\x03\x00\x00":
		d.take(4, "**punch**")
		d.varying(4, "session")
	case media:
		d.media(p.To == farGroup)
	default:
		for p := range wire.Packets(p.Body) {
			d.control(p)
		}
	}
	return d.rows, media || d.at == len(d.b)
}

func (d *decoder) media(group bool) {
	what := map[bool]string{false: "**burst**", true: "**multicast**"}[group]
	retransmission := d.b[1]&0x7f != 33
	d.take(2, "%s: RTP, payload type %d", what, d.b[1]&0x7f)
	d.varying(2, map[bool]string{false: "sequence number %d", true: "number within the burst: %d"}[retransmission])
	d.varying(4, "timestamp")
	d.take(4, "SSRC of the stream")
	if retransmission {
		d.varying(2, "original sequence number %d")
	}
	d.take(1, "seven TS packets, each of which begins so")
}

// control explains an RTCP packet.
func (d *decoder) control(p wire.Packet) {
	switch {
	case p.Type == wire.TypeReceiverReport:
		d.take(4, "receiver report without blocks")
		d.sender(p)
		return
	case p.Type == wire.TypeSDES:
		d.take(4, "source description")
		d.sender(p)
		d.take(len(p.Bytes)-8, "canonical name `%s`, zeros", strings.TrimRight(string(p.Bytes[10:]), "\x00"))
		return
	case p.Format == 6 && p.Sender != 0:
		d.rams(p)
		return
	case p.Format == 10:
		d.take(4, "**%s**: format 10, %d bytes", huaweiKinds[p.Bytes[12]], len(p.Bytes))
		d.take(8, "")
		d.number(1, "kind %d")
		d.take(1, "")
		d.number(2, "code %d")
		d.tlvs(p.Bytes[16:], huaweiTLVs)
		return
	}
	body := p.Bytes[12:]
	// Telecom's request and Huawei's termination, and so on, differ by length.
	name := formats[[2]int{int(p.Format), len(p.Bytes)}]
	d.take(4, "**%s**: format %d, %d bytes", name, p.Format, len(p.Bytes))
	d.take(4, "")
	d.address("group %s")
	switch {
	case p.Format == 2:
		d.take(4, "version 0")
		d.number(2, "port that the burst is to go to: %d")
		d.number(2, "group's port: %d")
		d.address("group %s")
		d.take(16, "box id")
	case p.Format == 3:
		d.take(1, "result: well")
		d.take(1, "action: burst")
		d.take(2, "signalling port: unchanged")
		d.number(2, "media port: %d")
		d.take(2, "no punch")
		d.take(4, "server: unchanged")
		d.take(4, "valid time")
		d.varying(4, "rate of the burst, %d bit/s")
		d.varying(4, "rate after sync, %d bit/s")
	case p.Format == 5 && len(body) == 4:
		d.take(2, "not at once")
		d.varying(2, "the burst is needed up to here: %d, the group's first packet + 2")
	case p.Format == 5:
		d.take(8, "")
		d.address("client %s")
		d.number(2, "signalling port: %d; the burst is to go to the one below")
		d.take(2, "")
		d.take(4, "follows redirects")
	case p.Format == 6:
		d.take(2, "result 1: well")
		d.take(2, "type 2: burst")
		d.varying(2, "first sequence number: %d")
		d.take(2, "")
		d.varying(2, "rate, %d kbit/s")
		d.take(2, "")
		d.take(2, "punch wanted")
		d.number(2, "media port: %d")
		d.varying(4, "session")
		d.address("server %s")
	case p.Format == 9:
		d.take(2, "joined")
		d.varying(2, "the burst is needed up to here: %d, the group's first packet + 2")
	}
}

// formats are the operators' messages, by format and length.
var formats = map[[2]int]string{
	{2, 40}: "request", {3, 36}: "response", {4, 12}: "sync", {5, 16}: "termination",
	{5, 32}: "request", {6, 36}: "response", {8, 12}: "sync", {9, 16}: "termination",
}

var (
	huaweiKinds = map[byte]string{1: "request", 2: "response", 3: "sync", 4: "termination", 12: "punch"}
	ramsKinds   = map[byte]string{1: "request", 2: "information", 3: "termination"}
)

// Values of TLVs: their meaning, with eachTime at the end where they vary.
var (
	huaweiTLVs = map[byte]string{
		32: "first sequence number: %d" + eachTime, 61: "the burst is needed up to here: %d, the group's first packet + 2" + eachTime,
		128: "group", 130: "client", 131: "signalling port: %d; the burst is to go to the one below", 132: "rate, %d kbit/s" + eachTime,
		133: "type %d: burst", 134: "joined", 139: "server", 140: "follows redirects", 141: "punch",
		148: "media port: %d", 150: "punch", 151: "session" + eachTime,
	}
	ramsTLVs = map[byte]string{
		1: "streams: all", 2: "receive buffer, at least %d ms", 3: "at most %d ms", 31: "SSRC of the stream",
		32: "number of the burst's first packet: %d", 33: "join this much after it: %d ms" + eachTime, 34: "the burst lasts %d ms" + eachTime,
		35: "rate of the burst, %d bit/s" + eachTime, 61: "the burst is needed up to here: %d, the group's first packet + 2" + eachTime,
		128: "group, behind an enterprise number (32473) and the port",
	}
)

func (d *decoder) tlvs(b []byte, meanings map[byte]string) {
	for len(b) >= 4 {
		kind, length := b[0], int(binary.BigEndian.Uint16(b[2:]))
		meaning, varies := strings.CutSuffix(meanings[kind], eachTime)
		value := uint64(0)
		for _, c := range b[4 : 4+length] {
			value = value<<8 | uint64(c)
		}
		if strings.Contains(meaning, "%d") {
			meaning = fmt.Sprintf(meaning, value)
		}
		padded := (length + 3) &^ 3
		d.take(4+padded, "TLV %d, length %d: %s", kind, length, meaning).varies = varies
		b = b[4+padded:]
	}
}

// sender takes the SSRC of an RTCP packet's sender.
func (d *decoder) sender(p wire.Packet) {
	const server = 0x7A617063 // as fccd calls itself
	if p.Sender == server {
		d.take(4, "SSRC of the server")
		return
	}
	d.varying(4, "SSRC of the client")
}

func (d *decoder) rams(p wire.Packet) {
	kind := p.Bytes[12]
	d.take(4, "**%s**: format 6, %d bytes", ramsKinds[kind], len(p.Bytes))
	d.sender(p)
	if kind == 1 {
		d.varying(4, "SSRC of the client")
	} else {
		d.take(4, "SSRC of the stream")
	}
	d.number(1, "kind %d")
	d.take(1, "MSN")
	d.number(2, "code %d")
	d.tlvs(p.Bytes[16:], ramsTLVs)
}

// writePCAP writes packets as a capture, if that is wanted.
func writePCAP(t *testing.T, name string, packets []nettest.Packet) {
	folder := os.Getenv(pcapEnv)
	if folder == "" {
		return
	}
	const magic, rawIP, longest = 0xa1b2c3d4, 101, 1 << 16 // libpcap's file format, LINKTYPE_RAW
	le := binary.LittleEndian
	b := le.AppendUint32(nil, magic)
	b = le.AppendUint16(le.AppendUint16(b, 2), 4)
	for _, v := range []uint32{0, 0, longest, rawIP} {
		b = le.AppendUint32(b, v)
	}
	for _, p := range packets {
		for _, v := range []uint32{uint32(p.At.Unix()), uint32(p.At.Nanosecond() / 1000), uint32(len(p.Bytes)), uint32(len(p.Bytes))} {
			b = le.AppendUint32(b, v)
		}
		b = append(b, p.Bytes...)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".pcap"), b, 0o644); err != nil {
		t.Error(err)
	}
}
