package rtsp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// A script runs a machine in virtual time: it answers what the machine sends.
type script struct {
	t    *testing.T
	m    *machine
	now  time.Time
	sent []message

	local, server netip.AddrPort
}

func newScript(t *testing.T, cfg Config) *script {
	cfg = cfg.withDefaults()
	u, err := ParseURL("rtsp://192.0.2.1/ch1?a=1")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	return &script{
		t: t, m: newMachine(&cfg, u, "", false, now), now: now,
		local: netip.MustParseAddrPort("192.0.2.7:40000"), server: netip.MustParseAddrPort("192.0.2.1:554"),
	}
}

// run does what the machine asks for, and returns the other actions.
func (s *script) run() (others []actionKind) {
	for {
		a, _ := s.m.next(s.now)
		switch a.kind {
		case actNone:
			return others
		case actDial:
			s.m.dialed(s.local, s.server, nil, s.now)
		case actBind:
			s.m.bound([2]uint16{10000, 10001}, netip.AddrPort{}, s.now)
		case actSend:
			msg, n, err := parseMessage(a.data)
			if err != nil || n != len(a.data) {
				s.t.Fatalf("cannot read what was sent, %q: %v", a.data, err)
			}
			s.sent = append(s.sent, msg)
		default:
			others = append(others, a.kind)
		}
	}
}

func (s *script) last() message {
	if len(s.sent) == 0 {
		return message{}
	}
	return s.sent[len(s.sent)-1]
}

func (s *script) answer(text string) {
	text = strings.Replace(text, "CSEQ", s.last().header.get("CSeq"), 1)
	msg, _, err := parseMessage([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	if err != nil {
		s.t.Fatal(err)
	}
	s.m.received(msg, s.now)
}

// play brings the machine to where it plays.
func (s *script) play(public, session, transport string) {
	s.t.Helper()
	s.run()
	s.answer("RTSP/1.0 200 OK\nCSeq: CSEQ\n" + public + "\n")
	s.run()
	s.answer("RTSP/1.0 200 OK\nCSeq: CSEQ\nContent-Length: 7\n\nm=v 0 x")
	s.run()
	s.answer("RTSP/1.0 200 OK\nCSeq: CSEQ\nSession: " + session + "\nTransport: " + transport + "\n\n")
	s.run()
	s.answer("RTSP/1.0 200 OK\nCSeq: CSEQ\nScale: 1.0\nRange: npt=0-\n\n")
	s.run()
	if s.m.state != playing {
		s.t.Fatalf("got %s, error %v, want it to play", s.m.state, s.m.err)
	}
}

func TestMachine_requests(t *testing.T) {
	s := newScript(t, Config{})
	s.play("", "9;timeout=60", "RTP/AVP/TCP;interleaved=0-1")
	var got []string
	for i, msg := range s.sent {
		got = append(got, msg.method)
		if want := string(rune('1' + i)); msg.header.get("CSeq") != want {
			t.Errorf("%s: got CSeq %s, want %s", msg.method, msg.header.get("CSeq"), want)
		}
		if msg.header.get("User-Agent") != "zapcast" {
			t.Errorf("%s: got User-Agent %q", msg.method, msg.header.get("User-Agent"))
		}
		if nat := msg.header.get("x-NAT"); (nat == "192.0.2.7:40000") != (msg.method == "DESCRIBE" || msg.method == "SETUP") {
			t.Errorf("%s: got x-NAT %q", msg.method, nat)
		}
		if msg.url != "rtsp://192.0.2.1/ch1?a=1" {
			t.Errorf("%s: got %s", msg.method, msg.url)
		}
	}
	if text := strings.Join(got, " "); text != "OPTIONS DESCRIBE SETUP PLAY" {
		t.Errorf("got %s", text)
	}
	if accept := s.sent[1].header.get("Accept"); accept != "application/sdp" {
		t.Errorf("DESCRIBE: got Accept %q", accept)
	}
}

// Who only wants the description needs no ports, and no STUN.
func TestMachine_descriptionNeedsNoPorts(t *testing.T) {
	s := newScript(t, Config{STUN: "192.0.2.50"})
	s.m.headers = true
	s.run()
	s.answer("RTSP/1.0 200 OK\nCSeq: CSEQ\n\n")
	if a, _ := s.m.next(s.now); a.kind != actSend || !strings.HasPrefix(string(a.data), "DESCRIBE ") {
		t.Errorf("after OPTIONS: got action %d %q, want DESCRIBE at once", a.kind, a.data)
	}
}

func TestMachine_keepAlive(t *testing.T) {
	for _, c := range []struct {
		name, public, session string
		method                string
		interval              time.Duration
	}{
		{"nothing told", "", "9", "GET_PARAMETER", 30 * time.Second},
		{"listed", "Public: PLAY, get_parameter\n", "9;timeout=60", "GET_PARAMETER", 30 * time.Second},
		{"not listed", "Public: OPTIONS, PLAY\n", "9", "OPTIONS", 30 * time.Second},
		{"short timeout", "", "9; timeout = 20", "GET_PARAMETER", 10 * time.Second},
		{"long timeout", "", "9;timeout=600", "GET_PARAMETER", 30 * time.Second},
		{"nonsense", "", "9;timeout=1", "GET_PARAMETER", 2 * time.Second},
		{"no number", "", "9;timeout=x", "GET_PARAMETER", 30 * time.Second},
	} {
		s := newScript(t, Config{})
		s.play(c.public, c.session, "RTP/AVP/TCP;interleaved=0-1")
		before := len(s.sent)
		s.now = s.now.Add(c.interval - time.Millisecond)
		s.run()
		if len(s.sent) != before {
			t.Errorf("%s: got %s too early", c.name, s.last().method)
		}
		for range 3 { // answered or not, one in each interval
			s.now = s.now.Add(c.interval)
			s.run()
			s.run()
			if before++; len(s.sent) != before || s.last().method != c.method || s.last().header.get("Session") != "9" {
				t.Errorf("%s: got %d requests, the last %s, want %d and %s", c.name, len(s.sent), s.last().method, before, c.method)
			}
		}
		if s.m.finished() {
			t.Errorf("%s: got the end for want of answers: %v", c.name, s.m.err)
		}
	}
}

func TestMachine_keepAliveRefused(t *testing.T) {
	for _, status := range []string{"454 x", "501 x", "405 x", "551 x"} {
		s := newScript(t, Config{})
		s.play("", "9", "RTP/AVP/TCP;interleaved=0-1")
		s.now = s.now.Add(31 * time.Second)
		s.run()
		s.answer("RTSP/1.0 " + status + "\nCSeq: CSEQ\n\n")
		s.run()
		if s.last().method != "OPTIONS" || s.m.finished() {
			t.Errorf("%s: got %s, finished %t, want OPTIONS and to go on", status, s.last().method, s.m.finished())
		}
	}
	s := newScript(t, Config{})
	s.play("Public: OPTIONS\n", "9", "RTP/AVP/TCP;interleaved=0-1")
	s.now = s.now.Add(31 * time.Second)
	s.run()
	s.answer("RTSP/1.0 454 Gone\nCSeq: CSEQ\n\n")
	s.run()
	if !s.m.finished() || s.m.err == nil || !strings.Contains(s.m.err.Error(), "454 Gone") {
		t.Errorf("OPTIONS answered 454: got error %v, want the end and why", s.m.err)
	}
}

func TestMachine_punches(t *testing.T) {
	s := newScript(t, Config{})
	s.play("", "9", "MP2T/RTP/UDP;unicast;server_port=6000-6001;source=192.0.2.9")
	p := s.m.punch()
	if p.to != netip.MustParseAddr("192.0.2.9") || p.ports != [2]uint16{6000, 6001} || len(p.rtp) != punchBytes || len(p.rtcp) != 8 {
		t.Errorf("got %+v", p)
	}
	var sent []string
	p.send(func(_ []byte, to netip.AddrPort) { sent = append(sent, to.String()) }, func(_ []byte, to netip.AddrPort) { sent = append(sent, to.String()) })
	if want := slices.Repeat([]string{"192.0.2.9:6000", "192.0.2.9:6001"}, punchCopies); !slices.Equal(sent, want) {
		t.Errorf("sent to %q, want %q", sent, want)
	}
	s.now = s.now.Add(31 * time.Second)
	if others := s.run(); len(others) != 1 || others[0] != actPunch {
		t.Errorf("with the keep-alive: got %v, want a punch", others)
	}
	for _, source := range []string{"127.0.0.1", "::1", "169.254.169.254", "239.1.1.1", "::ffff:127.0.0.1"} {
		s = newScript(t, Config{})
		s.play("", "9", "RTP/AVP;unicast;server_port=53-54;source="+source)
		if p := s.m.punch(); p.to != netip.MustParseAddr("192.0.2.1") {
			t.Errorf("a server that names %s: got a punch to %v, want it at the server's own address", source, p.to)
		}
	}
	for transport, rtp := range map[string][]byte{"RTP/AVP;unicast;server_port=6000": nil, "RTP/AVP;unicast;server_port=6000;source=2001:db8::9": emptyRTP} {
		s = newScript(t, Config{})
		s.local, s.server = netip.MustParseAddrPort("[2001:db8::7]:40000"), netip.MustParseAddrPort("[2001:db8::1]:554")
		s.play("", "9", transport)
		if p := s.m.punch(); string(p.rtp) != string(rtp) || string(p.rtcp) != string(emptyReport) || p.ports != [2]uint16{6000, 6001} {
			t.Errorf("over IPv6, %s: got %+v, want % x from the media port", transport, p, rtp)
		}
		if nat := s.sent[1].header.get("x-NAT") + s.sent[2].header.get("x-NAT"); nat != "" {
			t.Errorf("over IPv6: got x-NAT %s, want none", nat)
		}
	}
	s = newScript(t, Config{})
	s.play("", "9", "RTP/AVP/TCP;interleaved=0-1")
	if p := s.m.punch(); p.rtp != nil || p.rtcp != nil {
		t.Errorf("over TCP: got %+v, want no punch", p)
	}
}

func TestMachine_serverAsks(t *testing.T) {
	for method, want := range map[string]int{"OPTIONS": 200, "SET_PARAMETER": 200, "GET_PARAMETER": 200, "ANNOUNCE": 200, "REDIRECT": 501} {
		s := newScript(t, Config{})
		s.play("", "9", "RTP/AVP/TCP;interleaved=0-1")
		s.answer(method + " rtsp://x RTSP/1.0\nCSeq: 17\n\n")
		s.run()
		if got := s.last(); got.status != want || got.header.get("CSeq") != "17" || got.header.get("Session") != "9" || s.m.finished() {
			t.Errorf("%s: got %d, CSeq %s, Session %s, finished %t, want %d, 17, 9, false", method, got.status, got.header.get("CSeq"), got.header.get("Session"), s.m.finished(), want)
		}
	}
}

func TestMachine_limitOfTheHandshake(t *testing.T) {
	s := newScript(t, Config{})
	for range 1000 { // a server that redirects to itself, slowly, would go on for longer
		s.run()
		if s.m.finished() {
			break
		}
		s.now = s.now.Add(2900 * time.Millisecond)
		s.answer("RTSP/1.0 401 x\nCSeq: CSEQ\n\n")
	}
	s = newScript(t, Config{Timeout: time.Minute})
	s.run()
	s.now = s.now.Add(21 * time.Second)
	s.run()
	if !s.m.finished() || !strings.Contains(s.m.err.Error(), "no session within 20s") {
		t.Errorf("got %v", s.m.err)
	}
}

func TestMachine_redirectFromTLS(t *testing.T) {
	s := newScript(t, Config{})
	s.m.url.TLS = true
	s.run()
	s.answer("RTSP/1.0 302 x\nCSeq: CSEQ\nLocation: rtsp://192.0.2.3/x\n\n")
	s.run()
	if !s.m.finished() || !strings.Contains(s.m.err.Error(), "to plain") {
		t.Errorf("got %v", s.m.err)
	}
}

func TestMachine_range(t *testing.T) {
	s := newScript(t, Config{})
	s.m.ranged = "npt=30-"
	s.play("", "9", "RTP/AVP/TCP;interleaved=0-1")
	if got := s.last(); got.method != "PLAY" || got.header.get("Range") != "npt=30-" {
		t.Errorf("got %s, Range %q", got.method, got.header.get("Range"))
	}
	if s.m.scale != "1.0" || s.m.played != "npt=0-" {
		t.Errorf("answer to PLAY: got scale %q, range %q", s.m.scale, s.m.played)
	}
}

// Whatever a server answers, a machine comes to an end or plays, and never asks
// for more than it may.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, "RTSP/1.0 200 OK\nCSeq: CSEQ\nTransport: RTP/AVP/TCP\nContent-Length: 7\n\nm=v 0 x")
	f.Add([]byte{1, 2, 3}, "RTSP/1.0 302 Moved\nCSeq: CSEQ\nLocation: rtsp://192.0.2.2/\n\n")
	f.Add([]byte{9, 9}, "RTSP/1.0 401 x\nCSeq: CSEQ\nWWW-Authenticate: Digest realm=\"a\",nonce=\"b\"\n\n")
	f.Fuzz(func(t *testing.T, waits []byte, text string) {
		s := newScript(t, Config{})
		s.m.entry.User = "u"
		for _, wait := range waits {
			s.run()
			msg, n, err := parseMessage([]byte(strings.ReplaceAll(strings.ReplaceAll(text, "CSEQ", s.last().header.get("CSeq")), "\n", "\r\n")))
			if err != nil || n == 0 {
				return
			}
			s.m.received(msg, s.now)
			s.now = s.now.Add(time.Duration(wait) * 100 * time.Millisecond)
		}
		if len(s.sent) > 4*len(waits)+10 {
			t.Errorf("got %d requests for %d answers", len(s.sent), len(waits))
		}
		s.m.close(s.now)
		s.now = s.now.Add(4 * time.Second)
		s.run()
		if !s.m.finished() {
			t.Errorf("got %s after the end", s.m.state)
		}
	})
}
