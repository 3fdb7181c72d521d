package ingest_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

const group = "239.1.1.1:5000"

// stand is a multicast source on a receiver in memory.
type stand struct {
	*ingest.Multicast
	t        *testing.T
	receiver *ingesttest.Receiver
	sink     ingesttest.Sink
	now      time.Time
}

func open(t *testing.T, spec ingest.FlowSpec) *stand {
	t.Helper()
	s := &stand{t: t, receiver: ingesttest.NewReceiver(), sink: ingesttest.Sink{T: t}, now: epoch}
	var err error
	if s.Multicast, err = ingest.OpenMulticast(s.receiver, spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: got %v, want nil", err)
		}
		if joined := s.receiver.Joined(); len(joined) > 0 {
			t.Errorf("after Close: still joined to %v", joined)
		}
	})
	return s
}

func openGroup(t *testing.T) *stand {
	return open(t, ingest.FlowSpec{Group: netip.MustParseAddrPort(group)})
}

func (s *stand) send(datagrams ...[]byte) {
	for _, b := range datagrams {
		s.receiver.Send(group, b)
	}
}

// tick drains as a loop does, 5 ms later.
func (s *stand) tick() {
	s.now = s.now.Add(5 * time.Millisecond)
	s.receiver.Begin(s.now)
	for s.Drain(s.now, 64, &s.sink) {
	}
	s.receiver.End()
}

// settle drains until nothing waits for its time any more.
func (s *stand) settle() {
	for range 20 {
		s.tick()
	}
}

func (s *stand) expect(want ...[]byte) {
	s.t.Helper()
	if got, want := s.sink.Bytes, bytes.Join(want, nil); !bytes.Equal(got, want) {
		s.t.Errorf("stream: got %d bytes, want %d, or others", len(got), len(want))
	}
}

func TestMulticast_suite(t *testing.T) {
	for name, frame := range map[string]func(seq uint16, ts []byte) []byte{
		"RTP":  func(seq uint16, ts []byte) []byte { return ingesttest.Datagram(seq, 7, ts) },
		"bare": func(_ uint16, ts []byte) []byte { return ts },
	} {
		t.Run(name, func(t *testing.T) {
			ingesttest.TestSource(t, func(t *testing.T) (ingest.Source, func([]byte)) {
				s := openGroup(t)
				seq := uint16(65500)
				return s.Multicast, func(ts []byte) {
					s.send(frame(seq, ts))
					seq++
				}
			})
		})
	}
}

func TestOpenMulticast_refuses(t *testing.T) {
	r := ingesttest.NewReceiver()
	if _, err := ingest.OpenMulticast(r, ingest.FlowSpec{Group: netip.MustParseAddrPort("192.0.2.1:5000")}); err == nil || !strings.Contains(err.Error(), "not multicast") {
		t.Errorf("unicast group: got error %v, want one that says so", err)
	}
	refusal := errors.New("no such device")
	r.Refuse(group, refusal)
	if _, err := ingest.OpenMulticast(r, ingest.FlowSpec{Group: netip.MustParseAddrPort(group)}); !errors.Is(err, refusal) {
		t.Errorf("refused join: got error %v, want %v", err, refusal)
	}
	if joined := r.Joined(); len(joined) != 0 {
		t.Errorf("still joined to %v", joined)
	}
}

// Whatever the URL said, each datagram shows what it is.
func TestMulticast_kindsMixed(t *testing.T) {
	s := openGroup(t)
	ts := func(n uint32) []byte { return ingesttest.TS(n, 7) }
	s.send(ingesttest.Datagram(10, 1, ts(0)), ingesttest.Datagram(11, 1, ts(1)))
	s.send(ts(2)) // nothing of the RTP before it may come after it
	s.send(ingesttest.Datagram(12, 1, ts(3)), ingesttest.Datagram(14, 1, ts(4)))
	s.send(ts(5))
	s.send(ingesttest.Datagram(15, 1, ts(6)))
	s.settle()
	s.expect(ts(0), ts(1), ts(2), ts(3), ts(4), ts(5), ts(6))
	if got := s.Status(); got.Payload != "mp2t-rtp" || got.Packets != 7 || got.Lost != 1 {
		t.Errorf("got payload %q, %d packets, %d lost, want mp2t-rtp, 7, 1", got.Payload, got.Packets, got.Lost)
	}
}

// 84 bytes of a set-top box's greeting between the packets. With it
// come the other kinds that are never part of the stream.
func TestMulticast_strangers(t *testing.T) {
	s := openGroup(t)
	strangers := [][]byte{
		append([]byte("ZXV10STB"), make([]byte, 76)...),
		{},
		{0x80},
		append([]byte{0x80, 200, 0, 6}, make([]byte, 24)...),    // RTCP
		append([]byte{0x80, 127, 0, 9}, make([]byte, 1336)...),  // FEC
		append([]byte{0x80, 97, 0, 9}, make([]byte, 1336)...),   // FEC
		append([]byte("GET / HTTP/1.1"), make([]byte, 1400)...), // begins like TS
	}
	var want [][]byte
	for seq := range uint16(200) {
		ts := ingesttest.TS(uint32(seq), 7)
		want = append(want, ts)
		s.send(ingesttest.Datagram(seq, 1, ts), strangers[int(seq)%len(strangers)])
	}
	s.settle()
	s.expect(want...)
	got := s.Status()
	if got.Foreign != 29+29+28 || got.Lost != 0 || got.BadTS != 0 || got.Malformed != 0 || got.Packets != 200 {
		t.Errorf("got %+v, want 86 foreign, 200 packets and nothing lost", got)
	}
}

// Headers whose lengths contradict each other.
func TestMulticast_malformed(t *testing.T) {
	s := openGroup(t)
	bad := [][]byte{
		append([]byte{0x8f, 33, 0, 7}, make([]byte, 16)...),
		append([]byte{0x90, 33, 0, 8}, append(make([]byte, 8), 0, 0, 0xff, 0xff, 0, 0, 0, 0)...),
		append([]byte{0xa0, 33, 0, 9}, make([]byte, 16)...),
	}
	var want [][]byte
	for seq := range uint16(60) {
		ts := ingesttest.TS(uint32(seq), 7)
		want = append(want, ts)
		s.send(ingesttest.Datagram(seq, 1, ts), bad[int(seq)%len(bad)])
	}
	s.settle()
	s.expect(want...)
	if got := s.Status(); got.Malformed != 60 || got.Lost != 0 {
		t.Errorf("got %d malformed, %d lost, want 60, 0", got.Malformed, got.Lost)
	}
}

// A payload that is not TS is not forwarded, and nobody waits for it.
func TestMulticast_payloadIsNotTS(t *testing.T) {
	s := openGroup(t)
	var want [][]byte
	for seq := range uint16(20) {
		ts := ingesttest.TS(uint32(seq), 7)
		s.send(ingesttest.Datagram(seq, 1, ts))
		want = append(want, ts)
	}
	s.settle()
	bad := ingesttest.TS(20, 7)
	bad[188*3] = 0
	s.send(ingesttest.Datagram(20, 1, bad), ingesttest.Datagram(21, 1, ingesttest.TS(21, 7)[:1315]), ingesttest.Datagram(22, 1, ingesttest.TS(22, 7)))
	want = append(want, ingesttest.TS(22, 7))
	s.tick()
	s.expect(want...)
	if got := s.Status(); got.BadTS != 2 || got.Lost != 0 {
		t.Errorf("got %d bad, %d lost, want 2, 0", got.BadTS, got.Lost)
	}
}

func TestMulticast_anyPayloadTypeWithTS(t *testing.T) {
	s := openGroup(t)
	var want [][]byte
	for seq := range uint16(20) {
		ts := ingesttest.TS(uint32(seq), 7)
		b := ingesttest.Datagram(seq, 1, ts)
		b[1] = 96
		s.send(b)
		want = append(want, ts)
	}
	s.settle()
	s.expect(want...)
}

// Bare TS, then RTP, then bare TS on the same group.
func TestMulticast_changesItsKind(t *testing.T) {
	s := openGroup(t)
	var want [][]byte
	for i := range uint32(150) {
		ts := ingesttest.TS(i, 7)
		want = append(want, ts)
		if i/50 == 1 {
			s.send(ingesttest.Datagram(uint16(i), 1, ts))
		} else {
			s.send(ts)
		}
		if i%10 == 9 {
			s.tick()
		}
	}
	s.settle()
	s.expect(want...)
	if got := s.Status().Payload; got != "mp2t-direct" {
		t.Errorf("got payload %q, want mp2t-direct, the first one", got)
	}
}

// Keep-alive without payload.
func TestMulticast_keepAlive(t *testing.T) {
	s := openGroup(t)
	var want [][]byte
	for seq := range uint16(100) {
		ts := ingesttest.TS(uint32(seq), 7)
		if seq%10 == 5 {
			ts = nil
		}
		s.send(ingesttest.Datagram(65500+seq, 0, ts))
		want = append(want, ts)
	}
	s.settle()
	s.expect(want...)
	if got := s.Status(); got.Lost != 0 || got.BadTS != 0 || got.Packets != 90 {
		t.Errorf("got %d lost, %d bad, %d packets, want 0, 0, 90", got.Lost, got.BadTS, got.Packets)
	}
}

// Junk inside bare TS, at every place; the packet that it cuts is not
// forwarded, the ones around it are, and neither is junk.
func TestMulticast_junkInsideBareTS(t *testing.T) {
	for at := 0; at <= 7*188; at++ {
		s := openGroup(t)
		ts := ingesttest.TS(1, 7)
		junk := bytes.Repeat([]byte{0xee}, 50)
		s.send(ingesttest.TS(0, 7), slices.Concat(ts[:at], junk, ts[at:]), ingesttest.TS(2, 7))
		s.settle()
		packets := slices.Collect(slices.Chunk(s.sink.Bytes, 188))
		if len(packets) < 7+5+7 || len(packets) > 7+7+7 {
			t.Fatalf("junk at %d: got %d packets, want 19 to 21", at, len(packets))
		}
		for _, p := range packets[7 : len(packets)-7] {
			if !slices.ContainsFunc(slices.Collect(slices.Chunk(ts, 188)), func(q []byte) bool { return bytes.Equal(p, q) }) {
				t.Fatalf("junk at %d: a packet came out that was not sent", at)
			}
		}
		if got := s.Status().BadTS; got != 1 {
			t.Errorf("junk at %d: got %d bad datagrams, want 1", at, got)
		}
	}
}

// TS packets of 192 and 204 bytes, bare, come out with their 188.
func TestMulticast_longPackets(t *testing.T) {
	s := openGroup(t)
	var want [][]byte
	for i := range uint32(10) {
		var with204, with192 []byte
		for p := range slices.Chunk(ingesttest.TS(i, 6), 188) {
			with204 = slices.Concat(with204, p, make([]byte, 16))
			with192 = slices.Concat(with192, make([]byte, 4), p)
		}
		s.send(with204, with192)
		want = append(want, ingesttest.TS(i, 6), ingesttest.TS(i, 6))
	}
	s.settle()
	s.expect(want...)
	if got := s.Status(); got.Packets != 20 || got.BadTS != 0 {
		t.Errorf("got %d packets, %d bad, want 20 datagrams, 0", got.Packets, got.BadTS)
	}

	s = openGroup(t)
	s.send(ingesttest.Datagram(1, 1, make([]byte, 204*6)))
	for seq := range uint16(10) {
		var payload []byte
		for p := range slices.Chunk(ingesttest.TS(1, 6), 188) {
			payload = slices.Concat(payload, p, make([]byte, 16))
		}
		s.send(ingesttest.Datagram(seq, 1, payload))
	}
	s.settle()
	s.expect()
	if got := s.Status().Warnings; len(got) != 1 || !strings.Contains(got[0], "204") {
		t.Errorf("RTP with packets of 204 bytes: got warnings %q, want one that says so", got)
	}
}

// A jump of the continuity counters is the sender's own affair.
func TestMulticast_continuityJump(t *testing.T) {
	s := openGroup(t)
	var want [][]byte
	for seq := range uint16(50) {
		ts := ingesttest.TS(uint32(seq), 7)
		if seq >= 25 {
			ts[3] ^= 5
			ts[1] |= 0x80 // transport_error_indicator: the decoder decides
		}
		want = append(want, ts)
		s.send(ingesttest.Datagram(seq, 1, ts))
	}
	s.settle()
	s.expect(want...)
}

// Every packet twice.
func TestMulticast_doubled(t *testing.T) {
	s := openGroup(t)
	var want [][]byte
	for seq := range uint16(100) {
		ts := ingesttest.TS(uint32(seq), 7)
		want = append(want, ts)
		b := ingesttest.Datagram(65490+seq, 1, ts)
		s.send(b, b)
	}
	s.settle()
	s.expect(want...)
	if got := s.Status(); got.Duplicates != 100 || got.Lost != 0 {
		t.Errorf("got %d duplicates, %d lost, want 100, 0", got.Duplicates, got.Lost)
	}
}

// Time stamps play no part, constant or wild.
func TestMulticast_timestampsPlayNoPart(t *testing.T) {
	s := openGroup(t)
	var want [][]byte
	for seq := range uint16(200) {
		ts := ingesttest.TS(uint32(seq), 7)
		if seq%20 == 19 {
			continue // lost
		}
		want = append(want, ts)
		b := ingesttest.Datagram(65400+seq, 1, ts)
		if seq > 100 {
			copy(b[4:8], []byte{byte(seq * 37), byte(seq * 11), 0, 1})
		}
		s.send(b)
		s.tick()
	}
	s.settle()
	s.expect(want...)
	if got := s.Status(); got.Lost != 9 { // the last one is not missed
		t.Errorf("got %d lost, want 9", got.Lost)
	}
}

// Datagrams of mixed sizes in bursts of 64.
func TestMulticast_mixedSizes(t *testing.T) {
	for _, rtp := range []bool{true, false} {
		s := openGroup(t)
		var want [][]byte
		for i := range uint32(64 * 20) {
			ts := ingesttest.TS(i, []int{1, 2, 5, 7}[i%4])
			want = append(want, ts)
			if rtp {
				s.send(ingesttest.Datagram(uint16(65000+i), 1, ts))
			} else {
				s.send(ts)
			}
			if i%64 == 63 {
				s.tick()
			}
		}
		s.settle()
		s.expect(want...)
		if got := s.Status(); got.Lost != 0 || got.BadTS != 0 || got.Packets != int64(len(want)) {
			t.Errorf("RTP %t: got %d lost, %d bad, %d packets, want 0, 0, %d", rtp, got.Lost, got.BadTS, got.Packets, len(want))
		}
	}
}

// Packets that wait have been copied: the memory of their datagrams is spoilt
// when the next batch is read.
func TestMulticast_reorderedAcrossBatches(t *testing.T) {
	s := openGroup(t)
	var want [][]byte
	for block := range uint16(20) {
		for i := range uint16(8) {
			want = append(want, ingesttest.TS(uint32(block*8+i), 7))
		}
		for i := range uint16(8) {
			seq := block*8 + i ^ 7
			s.send(ingesttest.Datagram(65500+seq, 1, ingesttest.TS(uint32(seq), 7)))
			if s.Drain(s.now, 1, &s.sink) {
				t.Fatal("more is waiting, want nothing")
			}
		}
	}
	s.settle()
	s.expect(want...)
}

// A turn takes no more datagrams than it may, says that there are more, and
// makes one Append of each batch.
func TestMulticast_boundedTurn(t *testing.T) {
	s := openGroup(t)
	for seq := range uint16(100) {
		s.send(ingesttest.Datagram(seq, 1, ingesttest.TS(uint32(seq), 7)))
	}
	for turn, want := range []int{30, 60, 90, 100} {
		if more := s.Drain(s.now, 30, &s.sink); more != (want < 100) {
			t.Errorf("turn %d: got more %t, want %t", turn, more, want < 100)
		}
		if got := len(s.sink.Bytes) / 1316; got != want {
			t.Errorf("turn %d: got %d packets, want %d", turn, got, want)
		}
	}
	if s.sink.Appends != 4 {
		t.Errorf("got %d calls of Append, want 4", s.sink.Appends)
	}
}

func TestMulticast_Interval(t *testing.T) {
	s := openGroup(t)
	check := func(when string, want time.Duration) {
		t.Helper()
		if got := s.Interval(); got != want {
			t.Errorf("%s: got %v, want %v", when, got, want)
		}
	}
	check("at first", 0)
	s.receiver.SetInterval(time.Second)
	check("of the flow", time.Second)
	s.send(ingesttest.Datagram(1, 1, ingesttest.TS(1, 7)))
	s.tick()
	check("while packets wait", 15*time.Millisecond)
	s.receiver.SetInterval(4 * time.Millisecond)
	check("of the flow, shorter", 4*time.Millisecond)
	s.receiver.SetInterval(0)
	check("while packets wait and the flow does not mind", 15*time.Millisecond)
	s.settle()
	check("at last", 0)
}

func TestMulticast_RejoinAndClose(t *testing.T) {
	s := open(t, ingest.FlowSpec{Group: netip.MustParseAddrPort(group), Interface: "eth7"})
	s.Rejoin()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: got %v, want nil", err)
		}
	}
	want := []string{"join " + group + "%eth7", "rejoin " + group + "%eth7", "leave " + group + "%eth7"}
	if diff := cmp.Diff(want, s.receiver.Events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestMulticast_Status(t *testing.T) {
	spec := ingest.FlowSpec{
		Group:     netip.MustParseAddrPort(group),
		Source:    netip.MustParseAddr("198.51.100.1"),
		Interface: "eth7",
	}
	s := open(t, spec)
	for _, seq := range []uint16{0, 1, 2, 3, 4, 5, 6, 7, 9, 8, 8, 11} {
		s.receiver.Send(spec.String(), ingesttest.Datagram(seq, 1, ingesttest.TS(uint32(seq), 7)))
	}
	s.receiver.Send(spec.String(), []byte("ZXV10STB"))
	s.receiver.Drop(spec.String(), 3)
	s.settle()
	want := ingest.Status{
		Source:        "rtp://198.51.100.1@239.1.1.1:5000",
		Interface:     "eth7",
		Local:         ingesttest.Local,
		Sender:        ingesttest.Sender,
		Payload:       "mp2t-rtp",
		Datagrams:     13,
		Bytes:         11 * 1316,
		Packets:       11,
		Lost:          1,
		Reordered:     1,
		Duplicates:    1,
		Foreign:       1,
		Overflow:      3,
		ReceiveBuffer: 512 << 10,
		LastData:      epoch.Add(55 * time.Millisecond),
	}
	if diff := cmp.Diff(want, s.Status(), cmpopts.IgnoreFields(ingest.Status{}, "Losses")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMulticast_secondSenderIsWarnedOf(t *testing.T) {
	s := openGroup(t)
	for i := range uint16(200) {
		s.send(ingesttest.Datagram(i, 1, ingesttest.TS(1, 7)), ingesttest.Datagram(9000+i, 2, ingesttest.TS(2, 7)))
		s.tick()
	}
	got := s.Status()
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "another sender") || got.Resyncs != 0 || got.Packets != 200 {
		t.Errorf("got warnings %q, %d resyncs, %d packets, want one warning, 0, 200", got.Warnings, got.Resyncs, got.Packets)
	}
}

func TestMulticast_Seen(t *testing.T) {
	junk, err := hex.DecodeString("5a58563100")
	if err != nil {
		t.Fatal(err)
	}
	audio := ingesttest.Datagram(1, 1, []byte{0xff, 0xfb, 0x90, 0x64, 0})
	tests := []struct {
		name   string
		source string
		send   [][]byte
		want   string
	}{
		{"nothing", "", nil, "joined on test0 (192.0.2.7), received nothing"},
		{"nothing, source-specific", "198.51.100.1", nil, "joined on test0 (192.0.2.7), received nothing; a source-specific join needs IGMPv3 on the whole path"},
		{"junk", "", [][]byte{junk, junk}, "joined on test0 (192.0.2.7), 2 datagrams, none of them RTP or MPEG-TS (first bytes 5a 58 56 31)"},
		{"empty", "", [][]byte{{}}, "joined on test0 (192.0.2.7), 1 datagram, all of them empty"},
		{"RTCP and FEC", "", [][]byte{append([]byte{0x80, 200, 0, 1}, make([]byte, 4)...), append([]byte{0x80, 127}, make([]byte, 30)...)}, "joined on test0 (192.0.2.7), 2 datagrams, only RTCP (1) and FEC (1)"},
		{"RTP with other payload", "", [][]byte{audio, junk}, "joined on test0 (192.0.2.7), 2 datagrams, no whole MPEG-TS packets in them (first bytes ff fb 90 64)"},
		{"malformed", "", [][]byte{append([]byte{0xa0, 33}, make([]byte, 30)...)}, "joined on test0 (192.0.2.7), 1 datagram, none of them RTP or MPEG-TS (first bytes a0 21 00 00)"},
		{"keep-alives", "", [][]byte{ingesttest.Datagram(1, 1, nil)}, "joined on test0 (192.0.2.7), 1 datagram, nothing to hand on yet"},
		{"RTP", "", [][]byte{ingesttest.Datagram(1, 1, ingesttest.TS(1, 7))}, "joined on test0 (192.0.2.7), 1 datagram, MPEG-TS in RTP from 198.51.100.1"},
		{"bare", "", [][]byte{ingesttest.TS(1, 7)}, "joined on test0 (192.0.2.7), 1 datagram, MPEG-TS from 198.51.100.1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := ingest.FlowSpec{Group: netip.MustParseAddrPort(group)}
			if test.source != "" {
				spec.Source = netip.MustParseAddr(test.source)
			}
			s := open(t, spec)
			for _, b := range test.send {
				s.receiver.Send(spec.String(), b)
			}
			s.settle()
			if got := s.Seen(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}

	s := open(t, ingest.FlowSpec{Group: netip.MustParseAddrPort("[ff3e::1]:5000"), Source: netip.MustParseAddr("2001:db8::1")})
	if got := s.Seen(); !strings.Contains(got, "MLDv2") {
		t.Errorf("IPv6: got %q, want a hint at MLDv2", got)
	}
}
