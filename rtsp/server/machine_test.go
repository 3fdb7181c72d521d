package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"zapcast/ingest"
	"zapcast/tune"
)

// drive feeds a machine and plays its driver, without sockets: every channel is
// there, every transport that is known can be had. It returns what the client is
// sent.
func drive(m *machine, said string, step int) (sent string, last action) {
	for len(said) > 0 {
		n := min(step, len(said))
		m.feed([]byte(said[:n]))
		said = said[n:]
		for more := true; more; {
			a := m.next()
			for a.kind == lookup || a.kind == settle {
				if a.kind == lookup {
					if strings.HasPrefix(m.place.path, "/rtp/") {
						a = m.found(tune.Channel{Key: m.place.path, Open: func(ingest.Receiver) (ingest.Source, error) { return nil, nil }}, nil)
					} else {
						a = m.found(tune.Channel{}, tune.Refuse(404, "no such\r\nchannel"))
					}
					continue
				}
				a = m.settled(m.offers[0], "unicast", nil)
			}
			sent += string(a.reply)
			switch a.kind {
			case start, resume:
				sent += string(m.started(7, time.Unix(1, 0)))
			case wait, end:
				more = false
			}
			last = a
		}
		if last.kind == end {
			return sent, last
		}
	}
	return sent, last
}

// ask writes a request.
func ask(method, url string, cseq int, fields ...string) string {
	return fmt.Sprintf("%s %s RTSP/1.0\r\nCSeq: %d\r\n%s\r\n", method, url, cseq, strings.Join(append(fields, ""), "\r\n"))
}

const channel = "rtsp://192.0.2.1:8554/rtp/239.1.1.1:5000"

func TestMachine_wholeSession(t *testing.T) {
	said := ask("OPTIONS", channel, 1) +
		ask("DESCRIBE", channel, 2, "Accept: application/sdp") +
		ask("SETUP", channel+"/trackID=0", 3, "Transport: RTP/AVP/TCP;unicast;interleaved=2-3") +
		ask("PLAY", channel+"/", 4, "Session: abc", "Range: npt=0.000-") +
		"$\x03\x00\x04wxyz" + // a report
		ask("GET_PARAMETER", channel, 5, "session:abc;timeout=60") +
		ask("PAUSE", channel, 6, "Session: abc") +
		ask("PLAY", channel, 7, "Session: abc") +
		"GET_PARAMETER " + channel + " RTSP/1.0\nCSeq: 8 \nContent-Length: 5\nSession: abc\n\n12345" + // bare line ends, a body
		ask("TEARDOWN", channel, 9, "Session: abc") + "anything"
	var first string
	for _, step := range []int{1, 2, 7, 100, 1 << 20} {
		m := &machine{id: "abc", local: "IP4 0.0.0.0"}
		sent, last := drive(m, said, step)
		if first == "" {
			first = sent
		}
		if sent != first || last.kind != end {
			t.Errorf("in pieces of %d: got other answers, or no end (%v):\n%s", step, last.kind, sent)
		}
	}
	for _, want := range []string{
		"CSeq: 1\r\nServer: zapcast\r\nPublic: OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE,", "Content-Base: " + channel + "/\r\n", "m=video 0 RTP/AVP 33\r\n",
		"a=control:trackID=0\r\n", "CSeq: 3\r\nServer: zapcast\r\nSession: abc;timeout=60\r\nTransport: RTP/AVP/TCP;unicast;ssrc=",
		"CSeq: 4\r\nServer: zapcast\r\nSession: abc;timeout=60\r\nRTP-Info: url=" + channel + "/trackID=0;seq=7;rtptime=90000\r\n", "CSeq: 9\r\n",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("answers lack %q:\n%s", want, first)
		}
	}
	if got := strings.Count(first, "RTSP/1.0 200 OK\r\n"); got != 9 || strings.Count(first, "RTSP/1.0 ") != 9 {
		t.Errorf("answers: want 9 of 200, got %d:\n%s", got, first)
	}
}

func TestMachine_refuses(t *testing.T) {
	setup := ask("SETUP", channel+"/trackID=0", 1, "Transport: RTP/AVP/TCP;unicast;interleaved=0-1")
	playing := setup + ask("PLAY", channel, 2, "Session: abc")
	for _, c := range []struct {
		name, said, want string
		over             bool
	}{
		{"HTTP", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "400", true},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00", "400", true},
		{"binary", "\x00\x00\x00\x00", "400", true},
		{"method without end", strings.Repeat("A", 64), "400", true},
		{"another version", "OPTIONS * RTSP/2.0\r\nCSeq: 1\r\n\r\n", "505", true},
		{"no CSeq", "OPTIONS * RTSP/1.0\r\n\r\n", "400", true},
		{"CSeq that is no number", "OPTIONS * RTSP/1.0\r\nCSeq: -1\r\n\r\n", "400", true},
		{"field without colon", "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nnonsense\r\n\r\n", "400", true},
		{"too many fields", "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n" + strings.Repeat("a: b\r\n", 65) + "\r\n", "400", true},
		{"long header", "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nA: " + strings.Repeat("a", 9000), "431", true},
		{"long URL", ask("OPTIONS", "rtsp://h/"+strings.Repeat("a", 5000), 1), "414", true},
		{"body of 4 GB", ask("DESCRIBE", channel, 1, "Content-Length: 4294967296"), "413", true},
		{"body beyond all numbers", ask("DESCRIBE", channel, 1, "Content-Length: 99999999999999999999"), "413", true},
		{"negative body", ask("DESCRIBE", channel, 1, "Content-Length: -5"), "400", true},
		{"two lengths", ask("DESCRIBE", channel, 1, "Content-Length: 5", "content-length: 6"), "400", true},
		{"another scheme", ask("DESCRIBE", "http://h/rtp/239.1.1.1:5000", 1), "400", false},
		{"no path", ask("DESCRIBE", "rtsp://h", 1), "404", false},
		{"no channel", ask("DESCRIBE", "rtsp://h/else", 1), "404", false},
		{"no transport", ask("SETUP", channel, 1), "461", false},
		{"bare TS", ask("SETUP", channel, 1, "Transport: MP2T/TCP;unicast"), "461", false},
		{"channels beyond a byte", ask("SETUP", channel, 1, "Transport: RTP/AVP/TCP;interleaved=255-256"), "400", false},
		{"one channel for both", ask("SETUP", channel, 1, "Transport: RTP/AVP/TCP;interleaved=1-1"), "400", false},
		{"port zero", ask("SETUP", channel, 1, "Transport: RTP/AVP;unicast;client_port=0-1"), "461", false},
		{"port beyond", ask("SETUP", channel, 1, "Transport: RTP/AVP;unicast;client_port=65535-65536"), "400", false},
		{"to record", ask("SETUP", channel, 1, "Transport: RTP/AVP/TCP;interleaved=0-1;mode=record"), "461", false},
		{"play before setup", ask("PLAY", channel, 1), "454", false},
		{"teardown before setup", ask("TEARDOWN", channel, 1), "454", false},
		{"another session", setup + ask("PLAY", channel, 2, "Session: xyz"), "454", false},
		{"pause before play", setup + ask("PAUSE", channel, 2, "Session: abc"), "455", false},
		{"setup while playing", playing + ask("SETUP", channel, 3, "Transport: RTP/AVP/TCP"), "455", false},
		{"describe while playing", playing + ask("DESCRIBE", channel, 3), "455", false},
		{"announce", ask("ANNOUNCE", channel, 1), "405", false},
		{"unknown method", ask("SPIN", channel, 1), "501", false},
		{"unknown option", ask("SETUP", channel, 1, "Require: implicit-play"), "551", false},
		{"parameters", setup + ask("SET_PARAMETER", channel, 2, "Content-Type: text/parameters", "Content-Length: 3") + "a:b", "451", false},
	} {
		m := &machine{id: "abc", local: "IP4 0.0.0.0"}
		sent, last := drive(m, c.said, 50)
		at := strings.LastIndex(sent, "RTSP/1.0 ")
		if at < 0 || !strings.HasPrefix(sent[at:], "RTSP/1.0 "+c.want+" ") || (last.kind == end) != c.over {
			t.Errorf("%s: want %s, and over %v; got action %d and %q", c.name, c.want, c.over, last.kind, sent)
			continue
		}
		if c.want == "551" || c.want == "405" {
			continue
		}
		if _, body, _ := strings.Cut(sent[at:], "\r\n\r\n"); strings.Count(body, "\n") != 1 || !strings.HasSuffix(body, "\r\n") {
			t.Errorf("%s: want a reason in one line, got %q", c.name, body)
		}
	}
}

// Frames of a client are skipped whatever their length, however they are split.
func TestMachine_skipsFrames(t *testing.T) {
	var said strings.Builder
	for i, size := range []int{0, 1, 2000, 65535, 3} {
		said.WriteString(string([]byte{'$', byte(i), byte(size >> 8), byte(size)}) + strings.Repeat("R", size) + ask("OPTIONS", "*", i))
	}
	for _, step := range []int{1, 3, 4096, 1 << 20} {
		m := &machine{id: "abc"}
		sent, last := drive(m, said.String(), step)
		if got := strings.Count(sent, "RTSP/1.0 200 OK\r\n"); got != 5 || last.kind != wait {
			t.Errorf("in pieces of %d: want 5 answers, got %d", step, got)
		}
		if len(m.buf) != 0 {
			t.Errorf("in pieces of %d: %d bytes are kept", step, len(m.buf))
		}
	}
}

func TestPlace(t *testing.T) {
	for url, want := range map[string]place{
		"rtsp://h/rtp/239.1.1.1:5000":                               {"rtsp://h/rtp/239.1.1.1:5000", "/rtp/239.1.1.1:5000"},
		"RTSP://h:8554/rtp/239.1.1.1:5000/":                         {"rtsp://h:8554/rtp/239.1.1.1:5000", "/rtp/239.1.1.1:5000"},
		"rtsp://u:p@h/rtp/239.1.1.1:5000/trackID=0":                 {"rtsp://h/rtp/239.1.1.1:5000", "/rtp/239.1.1.1:5000"},
		"rtsp://h/rtp/239.1.1.1:5000?fcc=192.0.2.1:8027/trackID=0":  {"rtsp://h/rtp/239.1.1.1:5000?fcc=192.0.2.1:8027", "/rtp/239.1.1.1:5000?fcc=192.0.2.1:8027"},
		"rtsp://h/rtp/239.1.1.1:5000?fcc=192.0.2.1:8027//trackID=0": {"rtsp://h/rtp/239.1.1.1:5000?fcc=192.0.2.1:8027", "/rtp/239.1.1.1:5000?fcc=192.0.2.1:8027"},
		"rtsp://[2001:db8::1]:8554/udp/239.1.1.1%3A5000":            {"rtsp://[2001:db8::1]:8554/udp/239.1.1.1%3A5000", "/udp/239.1.1.1%3A5000"},
	} {
		if got, err := parsePlace(url); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", url, got, err, want)
		}
	}
}

func TestTransports(t *testing.T) {
	got, err := parseTransports("MP2T/RTP/TCP;unicast;interleaved=0-1, MP2T/TCP;unicast;interleaved=0-1,rtp/avp/tcp;interleaved=4," +
		"RTP/AVP/UDP;unicast;client_port=5000-5001;mode=\"PLAY\";destination=192.0.2.99,RTP/AVP;multicast,RTP/AVP;unicast,x/y")
	want := []transport{
		{"MP2T/RTP/TCP", interleaved, 0, 1}, {"rtp/avp/tcp", interleaved, 4, 5}, {"RTP/AVP/UDP", unicast, 5000, 5001}, {"RTP/AVP", multicast, -1, -1},
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func FuzzMachine(f *testing.F) {
	f.Add([]byte(ask("DESCRIBE", channel, 2)+ask("SETUP", channel+"/trackID=0", 3, "Transport: RTP/AVP/TCP;unicast;interleaved=2-3")), true)
	f.Add([]byte(ask("SETUP", channel, 3, "Transport: RTP/AVP;unicast;client_port=2-3")+ask("PLAY", channel, 4, "Session: abc")+"$\x00\x00\x01x"+ask("PAUSE", channel, 4)), false)
	f.Add([]byte(ask("PLAY", channel, 1, `Authorization: Digest username="u", realm="zapcast", nonce="n", uri="x", response="00"`)), true)
	f.Fuzz(func(t *testing.T, said []byte, locked bool) {
		answers := func(step int) string {
			m := &machine{id: "abc", local: "IP4 0.0.0.0"}
			if locked {
				m.digest = &digest{user: "u", password: "p", nonce: "n"}
			}
			sent, last := drive(m, string(said), step)
			if len(m.buf) > maxBuffer+step {
				t.Fatalf("%d bytes are kept", len(m.buf))
			}
			if last.kind == end {
				return "" // how much was read then depends on the pieces
			}
			for head := range strings.SplitSeq(sent, "RTSP/1.0 ") {
				if strings.Contains(head, "\n\n") {
					t.Fatalf("an answer is broken by what was asked: %q", sent)
				}
			}
			return sent
		}
		if a, b := answers(1<<20), answers(3); a != "" && b != "" && a != b {
			t.Errorf("in pieces: got %q, want %q", b, a)
		}
	})
}

func FuzzTransports(f *testing.F) {
	f.Add("RTP/AVP/TCP;unicast;interleaved=0-1,RTP/AVP;unicast;client_port=1-2")
	f.Fuzz(func(t *testing.T, s string) {
		known, err := parseTransports(s)
		for _, k := range known {
			if k.way == interleaved && (k.first > 255 || k.second > 255) || k.way == unicast && (k.first < 1 || k.second > 65535) {
				t.Errorf("%q: got %+v", s, k)
			}
		}
		if err == nil && len(known) == 0 {
			t.Errorf("%q: neither a transport nor an error", s)
		}
	})
}

func FuzzAuthorization(f *testing.F) {
	f.Add(`Digest username="u", realm="zapcast", nonce="n", uri="rtsp://h/x", response="00", algorithm=MD5`)
	f.Fuzz(func(t *testing.T, s string) {
		d := &digest{user: "u", password: "secret", nonce: "n"}
		r := &request{method: "PLAY", url: "rtsp://h/x", fields: []field{{"Authorization", s}}}
		if p := parseAuthorization(s); len(p) > 16 {
			t.Errorf("%q: %d parameters", s, len(p))
		}
		if d.allows(r) {
			t.Errorf("%q lets one in", s)
		}
	})
}
