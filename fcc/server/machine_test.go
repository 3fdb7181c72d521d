package server

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"zapcast/fcc/wire"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

const (
	payloadRate = 950 // a second: 10 Mbit/s
	gop         = 2 * payloadRate
	ssrc        = 77
)

var (
	group = netip.MustParseAddrPort("239.1.1.1:5000")
	box   = netip.MustParseAddrPort("10.0.0.9:40000")
)

// A lab is a machine with one channel on the air, in virtual time.
type lab struct {
	t    *testing.T
	m    *machine
	now  time.Time
	sent uint32 // payloads of the channel so far
	base uint16

	said  []wire.Message // by the machine, to any client
	burst []uint16       // original sequence numbers, in order
	bytes int64          // of everything sent
	to    []netip.AddrPort
}

// newLab returns a lab whose channel has been on the air for a while.
func newLab(t *testing.T, cfg Config, onAir time.Duration) *lab {
	t.Helper()
	cfg.Channels = []ingest.FlowSpec{{Group: group}}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, now: time.Unix(1e9, 0), base: 65000}
	var number uint32
	l.m = newMachine(cfg, func() uint32 { number += 0x1234568; return number }, l.now)
	l.pass(onAir)
	return l
}

// pass lets time go by in ticks, with the channel on the air.
func (l *lab) pass(d time.Duration) {
	l.t.Helper()
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(tick)
		due := uint32(l.now.Sub(time.Unix(1e9, 0)).Seconds() * payloadRate)
		var datagrams [][]byte
		for ; l.sent < due; l.sent++ {
			datagrams = append(datagrams, ingesttest.Datagram(l.base+uint16(l.sent), ssrc, ingesttest.Video(l.sent, gop)))
		}
		l.m.media(l.m.channels[0], datagrams, l.now)
		l.m.tick(l.now)
		l.take()
	}
}

func (l *lab) send(from netip.AddrPort, media bool, b []byte) {
	l.t.Helper()
	l.m.received(b, from, media, l.now)
	l.take()
}

// take takes what the machine sends.
func (l *lab) take() {
	l.t.Helper()
	for _, d := range l.m.out {
		l.bytes += int64(len(d.bytes))
		l.to = append(l.to, d.to)
		if d.session == nil && ingest.Classify(d.bytes) == ingest.KindRTCP {
			l.said = append(l.said, l.parse(d.bytes))
			continue
		}
		h, payload, ok := ingest.PeekRTP(d.bytes)
		if !ok {
			l.t.Fatalf("sent % x: neither RTP nor RTCP", d.bytes)
		}
		if h.PayloadType == retransmissionType {
			original, rest, _ := wire.SplitRTX(payload)
			h.Sequence, payload = original, rest
		}
		if n := h.Sequence - l.base; string(payload) != string(ingesttest.Video(l.number(n), gop)) || h.SSRC != ssrc {
			l.t.Fatalf("packet %d: not the channel's bytes", h.Sequence)
		}
		l.burst = append(l.burst, h.Sequence)
	}
	l.m.forget()
}

// number is the payload near what is on the air that has a sequence number.
func (l *lab) number(n uint16) uint32 { return l.sent - uint32(uint16(l.sent)-n) }

func (l *lab) parse(b []byte) (m wire.Message) {
	l.t.Helper()
	for p := range wire.Packets(b) {
		if v, err := wire.ParseTelecomResponse(p); err == nil {
			return &v
		} else if v, err := wire.ParseRAMSInformation(p); err == nil && v.Code >= 100 {
			return &v
		} else if v, err := wire.ParseHuaweiResponse(p); err == nil {
			return &v
		} else if v, err := wire.ParseTelecomSync(p); err == nil {
			return &v
		} else if v, err := wire.ParseHuaweiSync(p); err == nil {
			return &v
		}
	}
	l.t.Fatalf("sent % x: no message", b)
	return nil
}

func (l *lab) count(what string) (n int) {
	for _, m := range l.said {
		if fmt.Sprintf("%T", m) == "*wire."+what {
			n++
		}
	}
	return n
}

// conversations are the dialects, as their clients speak them.
var conversations = map[string]struct {
	request wire.Message
	punch   func(l *lab) // nil: the dialect has none
	sync    string
	end     func(first uint16) wire.Message
	abort   wire.Message
}{
	Telecom: {
		request: &wire.TelecomRequest{Group: group, MediaPort: box.Port()},
		punch:   func(l *lab) { l.send(box, true, nil) },
		sync:    "TelecomSync",
		end:     func(first uint16) wire.Message { return &wire.TelecomTermination{Group: group.Addr(), First: first} },
		abort:   &wire.TelecomTermination{Group: group.Addr(), Forced: true},
	},
	Huawei: {
		request: &wire.HuaweiRequest{Group: group.Addr(), Client: box.Addr(), SignallingPort: box.Port(), Redirects: true},
		punch:   func(l *lab) { l.punch(false) },
		sync:    "HuaweiSync",
		end:     func(first uint16) wire.Message { return &wire.HuaweiTermination{Group: group.Addr(), First: first} },
		abort:   &wire.HuaweiTermination{Group: group.Addr(), Forced: true},
	},
	"huawei-tlv": {
		request: &wire.HuaweiRequest{TLV: true, Group: group.Addr(), Client: box.Addr(), SignallingPort: box.Port(), Redirects: true, NAT: true},
		punch:   func(l *lab) { l.punch(true) },
		sync:    "HuaweiSync",
		end: func(first uint16) wire.Message {
			return &wire.HuaweiTermination{TLV: true, Group: group.Addr(), First: first}
		},
		abort: &wire.HuaweiTermination{TLV: true, Group: group.Addr(), Forced: true},
	},
	RAMS: {
		request: &wire.RAMSRequest{Client: 5, Group: group},
		end:     func(first uint16) wire.Message { return &wire.RAMSTermination{Client: 5, First: new(uint32(first))} },
		abort:   &wire.RAMSTermination{Client: 5},
	},
}

// punch sends Huawei's punch from the media port, with the number that was told.
func (l *lab) punch(tlv bool) {
	l.t.Helper()
	answer, ok := l.said[0].(*wire.HuaweiResponse)
	if !ok || !answer.NAT || answer.Session == 0 {
		l.t.Fatalf("answer: got %+v, want one that asks for a punch", l.said[0])
	}
	m := &wire.HuaweiPunch{TLV: tlv, Session: answer.Session}
	l.send(netip.AddrPortFrom(box.Addr(), box.Port()-1), true, m.Append(nil))
}

// each runs a test with a request of each dialect that has just been answered.
func each(t *testing.T, cfg Config, test func(t *testing.T, l *lab, dialect string)) {
	for dialect, c := range conversations {
		t.Run(dialect, func(t *testing.T) {
			l := newLab(t, cfg, 3200*time.Millisecond) // 1.2 s after a random-access point
			for range 3 {
				l.send(box, false, c.request.Append(nil))
			}
			test(t, l, dialect)
		})
	}
}

func TestMachine_burst(t *testing.T) {
	each(t, Config{}, func(t *testing.T, l *lab, dialect string) {
		c := conversations[dialect]
		if c.punch != nil {
			l.pass(100 * time.Millisecond)
			if len(l.burst) > 0 {
				t.Fatalf("got %d packets before the address was confirmed, want none", len(l.burst))
			}
			c.punch(l)
		}
		if got := l.m.status(); len(l.said) != 3 || got.Sessions != 1 || got.Requests != 1 {
			t.Fatalf("three copies of a request: got %d answers and %+v, want three and one session", len(l.said), got)
		}
		if len(l.burst) == 0 || l.burst[0] != l.base+gop {
			t.Fatalf("got %d packets at once, want some from %d on, where the last random-access point is", len(l.burst), l.base+gop)
		}
		l.pass(100 * time.Millisecond)
		if rate, want := float64(len(l.burst))/0.1, 3.0*payloadRate; rate < 0.8*want || rate > 1.2*want {
			t.Errorf("got %.0f packets a second, want %.0f", rate, want)
		}
		l.pass(800 * time.Millisecond) // 1.3 s behind, gaining 2 s a second
		if c.sync != "" && l.count(c.sync) != copies {
			t.Errorf("caught up: got %d notices, want %d", l.count(c.sync), copies)
		}
		if last := l.burst[len(l.burst)-1]; last != l.base+uint16(l.sent-1) {
			t.Errorf("caught up: the last packet is %d, want %d", last, l.base+uint16(l.sent-1))
		}
		first := l.base + uint16(l.sent) + 20
		for range 3 {
			l.send(box, false, c.end(first).Append(nil))
		}
		l.pass(time.Second)
		for i, seq := range l.burst {
			if want := l.base + gop + uint16(i); seq != want {
				t.Fatalf("packet %d of the burst: got %d, want %d", i, seq, want)
			}
		}
		if last := l.burst[len(l.burst)-1]; last != first-1 {
			t.Errorf("terminated at %d: the last packet is %d", first, last)
		}
		if got := l.m.status(); got.Sessions != 0 || l.m.reserved != 0 || got.BurstPackets != int64(len(l.burst)) {
			t.Errorf("afterwards: got %+v, %d bit/s reserved, want nothing left", got, l.m.reserved)
		}
	})
}

func TestMachine_clientStopsOrVanishes(t *testing.T) {
	each(t, Config{}, func(t *testing.T, l *lab, dialect string) {
		c := conversations[dialect]
		if c.punch != nil {
			c.punch(l)
		}
		l.pass(40 * time.Millisecond)
		n := len(l.burst)
		l.send(box, false, c.abort.Append(nil))
		l.pass(time.Second)
		if n == 0 || len(l.burst) != n || l.m.status().Sessions != 0 {
			t.Errorf("stopped at once: got %d packets after %d, %+v", len(l.burst), n, l.m.status())
		}
		// Another burst, whose client never says a word; it is trusted now.
		next := netip.AddrPortFrom(box.Addr(), 50000)
		l.send(next, false, c.request.Append(nil))
		if c.punch != nil && len(l.burst) == n {
			t.Error("a confirmed address: got no burst at once")
		}
		l.pass(time.Second)
		n = len(l.burst)
		l.pass(overlapTime)
		after := len(l.burst) - n
		l.pass(time.Second)
		if l.m.status().Sessions != 0 || after > payloadRate*4 || len(l.burst) != n+after {
			t.Errorf("vanished: got %d packets after the burst had caught up, %+v", after, l.m.status())
		}
		if dialect == RAMS {
			if last, ok := l.said[len(l.said)-1].(*wire.RAMSInformation); !ok || last.Code != wire.RAMSCompleted {
				t.Errorf("the server has ended the burst: it says %+v, want code 201", l.said[len(l.said)-1])
			}
		}
	})
}

// Nobody confirms: nothing but the answers is ever sent.
func TestMachine_unconfirmed(t *testing.T) {
	each(t, Config{}, func(t *testing.T, l *lab, dialect string) {
		if conversations[dialect].punch == nil {
			t.Skip("the dialect has nothing to confirm with")
		}
		l.send(netip.MustParseAddrPort("10.0.0.8:40000"), true, nil) // somebody else
		if dialect != Telecom {
			l.send(box, true, nil)
			l.send(box, true, (&wire.HuaweiPunch{Session: 1}).Append(nil)) // a guess
		}
		l.pass(5 * time.Second)
		if len(l.burst) > 0 || l.m.status().Sessions != 0 || len(l.said) != 3 {
			t.Errorf("got %d packets, %d answers, %+v, want three answers alone", len(l.burst), len(l.said), l.m.status())
		}
	})
}

func TestMachine_refusals(t *testing.T) {
	ask := func(l *lab, r wire.Message) wire.Message {
		l.t.Helper()
		l.said = nil
		l.send(box, false, r.Append(nil))
		if len(l.said) != 1 {
			l.t.Fatalf("got %d answers, want one", len(l.said))
		}
		return l.said[0]
	}
	unknown := netip.MustParseAddrPort("239.1.1.2:5000")
	for name, r := range map[string]wire.Message{
		"telecom": &wire.TelecomRequest{Group: unknown, MediaPort: 9}, "huawei": &wire.HuaweiRequest{Group: unknown.Addr(), SignallingPort: 9},
		"huawei-tlv": &wire.HuaweiRequest{TLV: true, Group: unknown.Addr(), SignallingPort: 9}, "rams": &wire.RAMSRequest{Group: unknown},
	} {
		refused := false
		switch m := ask(newLab(t, Config{}, 3*time.Second), r).(type) {
		case *wire.TelecomResponse:
			refused = m.Result == 2
		case *wire.HuaweiResponse:
			refused = !m.OK()
		case *wire.RAMSInformation:
			refused = m.Code == wire.RAMSUnknown
		}
		if !refused {
			t.Errorf("%s: a channel that is not served: not refused", name)
		}
	}
	request := conversations[Telecom].request
	join := func(what string, l *lab) {
		t.Helper()
		if m := ask(l, request).(*wire.TelecomResponse); m.Result != 0 || m.Action != wire.TelecomJoin {
			t.Errorf("%s: got %+v, want to be told to join", what, m)
		}
	}
	join("nothing has come yet", newLab(t, Config{}, 0))
	join("more than a client may have", newLab(t, Config{ClientRate: 11_000_000}, 3*time.Second))
	join("more than all may have", newLab(t, Config{Rate: 11_000_000}, 3*time.Second))

	// A slower burst where that is enough.
	l := newLab(t, Config{ClientRate: 20_000_000}, 3*time.Second)
	if m := ask(l, request).(*wire.TelecomResponse); m.Action != wire.TelecomBurst || m.Rate != 20_000_000 {
		t.Errorf("got %+v, want a burst of 20 Mbit/s", m)
	}

	// Whoever is not of the networks hears nothing.
	l = newLab(t, Config{}, 3*time.Second)
	l.send(netip.MustParseAddrPort("8.8.8.8:40000"), false, request.Append(nil))
	l.send(netip.MustParseAddrPort("203.0.113.9:40000"), false, conversations[RAMS].request.Append(nil))
	if len(l.said) > 0 || l.m.status().Ignored != 2 || l.m.status().Clients != 0 {
		t.Errorf("strangers: got %d answers, %+v, want none", len(l.said), l.m.status())
	}
	// Nor in a dialect that is switched off.
	l = newLab(t, Config{Dialects: []string{RAMS}}, 3*time.Second)
	l.send(box, false, request.Append(nil))
	if len(l.said) > 0 {
		t.Errorf("telecom is off: got %d answers", len(l.said))
	}
}

func TestMachine_redirects(t *testing.T) {
	other := netip.MustParseAddrPort("10.0.0.2:8027")
	l := newLab(t, Config{Redirect: []netip.AddrPort{other}}, 0)
	for dialect, c := range conversations {
		l.said = nil
		l.send(box, false, c.request.Append(nil))
		good := false
		switch m := l.said[0].(type) {
		case *wire.TelecomResponse:
			good = m.Action == wire.TelecomRedirect && m.Server == other.Addr() && m.SignallingPort == other.Port() && m.Valid == 30*time.Second
		case *wire.HuaweiResponse:
			good = m.Type == wire.HuaweiRedirect && m.Server == other.Addr() && m.Port == other.Port()
		case *wire.RAMSInformation:
			good = m.Code >= 400
		}
		if !good {
			t.Errorf("%s: got %+v, want to be sent to %s", dialect, l.said[0], other)
		}
	}
}

func TestMachine_askedForGroups(t *testing.T) {
	l := newLab(t, Config{Groups: []netip.Prefix{netip.MustParsePrefix("239.2.0.0/16")}, MaxChannels: 2, Linger: 10 * time.Second}, time.Second)
	ask := func(group string) {
		r := &wire.TelecomRequest{Group: netip.MustParseAddrPort(group), MediaPort: 9}
		l.m.received(r.Append(nil), box, false, l.now)
	}
	ask("239.2.0.1:5000")
	if len(l.m.joins) != 1 || l.m.joins[0].spec.Group.String() != "239.2.0.1:5000" {
		t.Errorf("joins: got %v, want the group that was asked for", l.m.joins)
	}
	l.take()
	ask("239.2.0.1:5000")
	ask("239.2.0.2:5000")
	ask("239.2.0.3:5000") // one too many
	ask("239.3.0.1:5000") // not allowed
	if len(l.m.joins) != 1 || len(l.m.channels) != 3 {
		t.Errorf("got %d joins and %d channels, want one more and three", len(l.m.joins), len(l.m.channels))
	}
	l.take()
	l.pass(11 * time.Second)
	if len(l.m.channels) != 1 {
		t.Errorf("after the linger: got %d channels, want the configured one", len(l.m.channels))
	}
}

func TestMachine_retransmits(t *testing.T) {
	l := newLab(t, Config{}, 3*time.Second)
	newest := l.base + uint16(l.sent) - 1
	ask := func(from netip.AddrPort, media uint32, lost ...wire.Lost) []uint16 {
		l.burst, l.to = nil, nil
		l.send(from, false, (&wire.NACK{Client: 1, Media: media, Lost: lost}).Append(wire.AppendCompound(nil, 1, "a")))
		return l.burst
	}
	want := []uint16{newest - 50, newest - 49, newest - 34, newest}
	for _, media := range []uint32{ssrc, 0} {
		got := ask(box, media, wire.Lost{First: newest - 50, Following: 1 | 1<<15}, wire.Lost{First: newest})
		if !slices.Equal(got, want) || l.to[0] != box {
			t.Errorf("SSRC %d: got %v to %v, want %v", media, got, l.to, want)
		}
	}
	if got := ask(box, ssrc, wire.Lost{First: newest + 10}); len(got) > 0 {
		t.Errorf("a packet that has not come: got %v", got)
	}
	// Whoever asks without end gets what his share allows.
	l.bytes = 0
	for range 100 {
		var all []wire.Lost
		for i := range uint16(64) {
			all = append(all, wire.Lost{First: newest - 17*i, Following: 1<<16 - 1})
		}
		ask(box, ssrc, all...)
	}
	if l.bytes > retransmitBurst+2000 {
		t.Errorf("100 greedy NACKs at once: got %d bytes, want at most %d", l.bytes, retransmitBurst)
	}
}

// Ten thousand requests from many ports and addresses: the caps hold.
func TestMachine_flood(t *testing.T) {
	cfg := Config{Rate: 100_000_000, Sessions: 50}
	l := newLab(t, cfg, 3200*time.Millisecond)
	l.bytes = 0
	began := l.now
	for i := range 10_000 {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i % 100), byte(i % 250)}), uint16(1024+i))
		for _, c := range conversations {
			l.send(from, false, c.request.Append(nil))
		}
		if i%20 == 0 {
			l.pass(tick)
		}
		if got := l.m.status(); got.Sessions > cfg.Sessions || got.Clients > mostClients {
			t.Fatalf("got %+v", got)
		}
	}
	took := l.now.Sub(began).Seconds()
	if rate, limit := float64(8*l.bytes)/took, 1.2e8+10_000*4*3*100/took*8; rate > limit {
		t.Errorf("got %.0f Mbit/s, want at most the cap and the answers, %.0f", rate/1e6, limit/1e6)
	}
	l.pass(40 * time.Second)
	if got := l.m.status(); got.Sessions != 0 || l.m.reserved != 0 {
		t.Errorf("afterwards: got %+v, %d reserved", got, l.m.reserved)
	}
	l.pass(2 * time.Minute)
	if got := l.m.status().Clients; got != 0 {
		t.Errorf("two minutes later: got %d clients remembered, want none", got)
	}
}

// FuzzMachine plays any events. Whatever comes: bursts go in order, to where
// they were asked to, and all of it ends.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add([]byte{16, 10, 33, 10, 50, 10, 64, 10, 10, 10, 96, 10})
	names := []string{Telecom, Huawei, "huawei-tlv", RAMS}
	f.Fuzz(func(t *testing.T, events []byte) {
		l := newLab(t, Config{ClientRate: 50_000_000, Rate: 80_000_000, ChannelHistory: 1 << 20}, 2500*time.Millisecond)
		for _, e := range events[:min(len(events), 200)] {
			c := conversations[names[e>>4&3]]
			from := netip.AddrPortFrom(box.Addr(), box.Port()+uint16(e>>6)*2)
			switch e & 15 {
			case 0, 1, 2:
				l.send(from, false, c.request.Append(nil))
			case 3:
				l.send(from, true, nil)
			case 4:
				for _, s := range l.m.sessions {
					l.send(s.media, true, (&wire.HuaweiPunch{Session: s.number}).Append(nil))
					break
				}
			case 5:
				l.send(from, false, c.end(l.base+uint16(l.sent)+uint16(e)).Append(nil))
			case 6:
				l.send(from, false, c.abort.Append(nil))
			case 7:
				l.base += 9000 // the sender begins anew
			case 8:
				l.send(from, false, events)
			case 9:
				l.m.tick(l.now)
				if n := len(l.m.out); n > 1 {
					l.m.unsent(l.m.out[n/2:])
				}
				l.m.forget()
			default:
				l.pass(time.Duration(e) * time.Millisecond)
			}
			var reserved int64
			for _, s := range l.m.sessions {
				reserved += s.rate
			}
			if reserved != l.m.reserved || reserved > 80_000_000 || l.m.budget > l.m.cfg.History {
				t.Fatalf("reserved %d, counted %d; budget %d", reserved, l.m.reserved, l.m.budget)
			}
			if size := l.m.status().HistoryBytes; size > 1<<20 {
				t.Fatalf("history of %d bytes, want at most 1 MiB", size)
			}
			l.burst = l.burst[:0]
		}
		l.pass(35 * time.Second)
		if got := l.m.status().Sessions; got != 0 {
			t.Fatalf("%d sessions are left", got)
		}
	})
}
