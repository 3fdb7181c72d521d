package rtsp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zapcast/ingest/ingesttest"
)

// expect plays frames' worth of TS from a server with one oddity.
func expect(t *testing.T, cfg Config, special func(p *peer, r request) bool) *stubborn {
	t.Helper()
	frames, ts := rtpFrames(0, 20)
	server := newStubborn(t, func(p *peer) {
		p.serve(func(r request) bool { return special(p, r) }, func() { _, _ = p.Write(frames) })
	})
	_, sink := watch(t, cfg, server.url("/live?a=1"), len(ts))
	if !bytes.Equal(sink.Bytes, ts) {
		t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
	}
	return server
}

func TestQuirk_headerAndBodyInTwoSegments(t *testing.T) {
	server := expect(t, Config{}, func(p *peer, r request) bool {
		if r.method != "DESCRIBE" {
			return false
		}
		text := answerTo(r, "200 OK", plainSDP, "Content-Base: "+p.server.url("/live/").String())
		for _, part := range []string{text[:9], text[9:70], text[70 : len(text)-20], text[len(text)-20:]} {
			p.send(part)
			time.Sleep(10 * time.Millisecond)
		}
		return true
	})
	if r, _ := server.find("SETUP"); r.url != server.url("/live/trackID=1").String() {
		t.Errorf("SETUP: got %s", r.url)
	}
}

func TestQuirk_sessionFromOptions(t *testing.T) {
	server := expect(t, Config{}, func(p *peer, r request) bool {
		if r.method == "OPTIONS" {
			p.answer(r, "200 OK", "Session: 77;timeout=30", "Server: HMS_V1R2")
			return true
		}
		if r.header.get("Session") != "77" && r.method != "PLAY" && r.method != "TEARDOWN" {
			_ = p.Close() // as these servers do
			return true
		}
		return false
	})
	for _, method := range []string{"DESCRIBE", "SETUP"} {
		if r, _ := server.find(method); r.header.get("Session") != "77" {
			t.Errorf("%s: got Session %q, want 77", method, r.header.get("Session"))
		}
	}
}

func TestQuirk_sessionParametersAreNotSentBack(t *testing.T) {
	server := expect(t, Config{}, func(p *peer, r request) bool { return false })
	if r, _ := server.find("PLAY"); r.header.get("Session") != "123" {
		t.Errorf("got %q, want 123", r.header.get("Session"))
	}
}

func TestQuirk_statusLines(t *testing.T) {
	for _, line := range []string{"RTSP/1.0 200", "RTSP/1.0 200 ", "RTSP/1.0  200  OK", "rtsp/1.0 200 fine"} {
		expect(t, Config{}, func(p *peer, r request) bool {
			if r.method == "OPTIONS" {
				p.send(line + "\r\ncseq:  " + r.header.get("CSeq") + " \r\n\r\n")
			}
			return r.method == "OPTIONS"
		})
	}
}

func TestQuirk_lineFeedsAlone(t *testing.T) {
	expect(t, Config{}, func(p *peer, r request) bool {
		if r.method == "DESCRIBE" {
			p.send(strings.ReplaceAll(answerTo(r, "200 OK", "", "Content-length: 40"), "\r\n", "\n") + "v=0\nm=video 0 RTP/AVP 33\na=control:t=1\n\n\n")
		}
		return r.method == "DESCRIBE"
	})
}

func TestQuirk_staleAnswer(t *testing.T) {
	expect(t, Config{}, func(p *peer, r request) bool {
		p.send("RTSP/1.0 500 Stale\r\nCSeq: 99\r\n\r\nRTSP/1.0 100 Continue\r\nCSeq: " + r.header.get("CSeq") + "\r\n\r\n")
		return false
	})
}

func TestQuirk_framesBeforeTheAnswerToPlay(t *testing.T) {
	early, ts := rtpFrames(0, 30)
	server := newStubborn(t, func(p *peer) {
		p.serve(func(r request) bool {
			if r.method == "PLAY" {
				_, _ = p.Write(early[:1000])
				time.Sleep(5 * time.Millisecond)
				_, _ = p.Write(early[1000:])
			}
			return false
		}, nil)
	})
	_, sink := watch(t, Config{}, server.url("/"), len(ts))
	if !bytes.Equal(sink.Bytes, ts) {
		t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
	}
}

func TestQuirk_otherChannelsThanOffered(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	for i := 0; i < len(frames); i += len(frames) / 10 {
		frames[i+1] = 6
	}
	server := newStubborn(t, func(p *peer) {
		p.serve(func(r request) bool {
			if r.method == "SETUP" {
				p.answer(r, "200 OK", `Transport: RTP/AVP/TCP;unicast;interleaved=6-7;source="127.0.0.1",MP2T/TCP;interleaved=0-1`)
			}
			return r.method == "SETUP"
		}, func() {
			_, _ = p.Write(frame(0, []byte("nobody's")))
			_, _ = p.Write(frame(7, make([]byte, 28)))
			_, _ = p.Write(frames)
		})
	})
	_, sink := watch(t, Config{}, server.url("/"), len(ts))
	if !bytes.Equal(sink.Bytes, ts) {
		t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
	}
}

// What stands between frames, and frames of any length, take nothing from the
// frames around them.
func TestQuirk_betweenFrames(t *testing.T) {
	one, ts := rtpFrames(0, 8)
	two, more := rtpFrames(8, 8)
	for name, between := range map[string]string{
		"frame of 2000":             string(frame(0, bytes.Repeat([]byte("$\x00"), 1000))),
		"frame of 65535":            string(frame(0, bytes.Repeat([]byte{'$'}, 65535))),
		"empty frame":               string(frame(0, nil)),
		"RTCP":                      string(frame(1, bytes.Repeat([]byte("$\x00\x00\x04"), 7))),
		"unknown channel":           string(frame(9, bytes.Repeat([]byte("$\x00\x00\x04"), 7))),
		"junk":                      "\x01\x02 some junk without a mark",
		"junk with a mark":          "junk $5 for it",
		"junk with a long frame":    "junk $\x09\xff\xff\x80 of nobody's channel",
		"stale answer with a body":  "RTSP/1.0 200 OK\r\nCSeq: 4711\r\nContent-Length: 6\r\n\r\n$\x00\x00\x02ab",
		"request":                   "GET_PARAMETER rtsp://h RTSP/1.0\r\nCSeq: 1\r\n\r\n",
		"request that is not known": "PLAY_NOTIFY rtsp://h RTSP/1.0\r\nCSeq: 1\r\n\r\n",
		"announcement of nothing":   "ANNOUNCE rtsp://h RTSP/1.0\r\nCSeq: 1\r\nx-notice: 2103 Transition\r\n\r\n",
		"blank lines":               "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, cfg Config) {
				server := newStubborn(t, func(p *peer) {
					p.serve(nil, func() {
						stream := string(one) + between + string(two)
						for len(stream) > 0 { // in pieces that cut everything somewhere
							n := min(len(stream), 777)
							p.send(stream[:n])
							stream = stream[n:]
						}
					})
				})
				want := append(slices.Clone(ts), more...)
				_, sink := watch(t, cfg, server.url("/"), len(want))
				if !bytes.Equal(sink.Bytes, want) {
					t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(want))
				}
			})
		})
	}
}

// announcesTS answers SETUP with bare TS in frames.
func announcesTS(p *peer) func(r request) bool {
	return func(r request) bool {
		if r.method == "SETUP" {
			p.answer(r, "200 OK", "Transport: MP2T/TCP;interleaved=0-1")
		}
		return r.method == "SETUP"
	}
}

// bareTS returns what arrives of ts in frames of size bytes.
func bareTS(t *testing.T, ts []byte, size int) []byte {
	t.Helper()
	server := newStubborn(t, func(p *peer) {
		p.serve(announcesTS(p), func() {
			for part := range slices.Chunk(ts, size) {
				_, _ = p.Write(frame(0, part))
			}
			_ = p.Close()
		})
	})
	source, err := open(t, Config{}, server.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	sink := &ingesttest.Sink{T: t}
	drain(t, source, sink, -1)
	return sink.Bytes
}

func TestQuirk_bareTSCutAnywhere(t *testing.T) {
	ts := ingesttest.TS(5, 700)
	for name, size := range map[string]int{"aligned": 7 * 188, "many packets": 20 * 188, "unaligned": 1000, "one by one": 100} {
		t.Run(name, func(t *testing.T) {
			if got := bareTS(t, ts, size); !bytes.HasPrefix(ts, got) || len(got) < len(ts)-188 {
				t.Errorf("got %d bytes, want %d, the last packet perhaps missing", len(got), len(ts))
			}
		})
	}
}

// 50 bytes of junk inside a packet cost that packet, and no more.
func TestQuirk_junkInsideBareTS(t *testing.T) {
	ts := ingesttest.TS(5, 70)
	at := 30*188 + 60
	damaged := append(append(slices.Clone(ts[:at]), bytes.Repeat([]byte{0xaa}, 50)...), ts[at:]...)
	want := append(slices.Clone(ts[:30*188]), ts[31*188:]...)
	if got := bareTS(t, damaged, 1316); !bytes.HasPrefix(want, got) || len(got) < len(want)-188 {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

func TestQuirk_announcedOtherwiseThanSent(t *testing.T) {
	frames, ts := rtpFrames(0, 12)
	server := newStubborn(t, func(p *peer) { // RTP although TS is announced
		p.serve(announcesTS(p), func() { _, _ = p.Write(frames) })
	})
	_, sink := watch(t, Config{}, server.url("/"), len(ts))
	if !bytes.Equal(sink.Bytes, ts) {
		t.Errorf("RTP: got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
	}
	server = newStubborn(t, func(p *peer) { // TS although RTP is announced
		p.serve(nil, func() {
			for part := range slices.Chunk(ts, 1316) {
				_, _ = p.Write(frame(0, part))
			}
		})
	})
	_, sink = watch(t, Config{}, server.url("/"), len(ts))
	if !bytes.Equal(sink.Bytes, ts) {
		t.Errorf("TS: got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
	}
}

func TestQuirk_transportsOneByOne(t *testing.T) {
	var offered []string
	expect(t, Config{}, func(p *peer, r request) bool {
		if r.method != "SETUP" {
			return false
		}
		offered = append(offered, r.header.get("Transport"))
		if r.header.get("Transport") == "RTP/AVP/TCP;unicast;interleaved=0-1" {
			return false
		}
		p.answer(r, "461 Unsupported Transport")
		return true
	})
	if len(offered) != 4 || strings.Contains(offered[1], ",") {
		t.Errorf("got %q, want the list, then one after the other", offered)
	}
}

func TestQuirk_redirects(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	edge := newStubborn(t, func(p *peer) { p.serve(nil, func() { _, _ = p.Write(frames) }) })
	query := "?a=1?b=${(b)yyyyMMdd}&sign=" + strings.Repeat("x%2F", 200)
	location := strings.Replace(edge.url("/edge"+query).String(), "rtsp", "RTSP", 1)
	entry := newStubborn(t, func(p *peer) {
		p.serve(func(r request) bool {
			if r.method == "DESCRIBE" {
				p.answer(r, "302 Moved", "Session: 5", "Location: "+location)
			}
			return r.method == "DESCRIBE"
		}, nil)
	})
	client := NewClient(local(Config{}))
	defer client.Close()
	source, err := client.Open(ingesttest.NewReceiver(), Request{URL: entry.url("/live"), Range: "clock=20240101T120000Z-"})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	sink := &ingesttest.Sink{T: t}
	drain(t, source, sink, len(ts))
	if !bytes.Equal(sink.Bytes, ts) {
		t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
	}
	if r, _ := edge.find("PLAY"); !slices.Equal(r.header.all("Range"), []string{"clock=20240101T120000Z-"}) {
		t.Errorf("PLAY: got Range %q, want the one that was asked for", r.header.all("Range"))
	}
	r, _ := edge.find("OPTIONS")
	if r.url != edge.url("/edge"+query).String() || r.header.get("Session") != "" || r.header.get("CSeq") != "3" {
		t.Errorf("got %s, Session %q, CSeq %s, want the Location byte for byte, no session, CSeq 3", r.url, r.header.get("Session"), r.header.get("CSeq"))
	}
}

// A dead edge: the entry is asked once more, which may name another by then.
func TestQuirk_deadEdge(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	for name, script := range map[string]func(p *peer){
		"refuses":  nil,
		"hangs up": func(p *peer) {},
		"says 503": func(p *peer) {
			p.serve(func(r request) bool { p.answer(r, "503 Busy"); return true }, nil)
		},
		"is silent": func(p *peer) { _, _ = p.next(); _, _ = io.Copy(io.Discard, p) },
	} {
		t.Run(name, func(t *testing.T) {
			dead := newStubborn(t, script)
			if script == nil {
				_ = dead.ln.Close()
			}
			edge := newStubborn(t, func(p *peer) { p.serve(nil, func() { _, _ = p.Write(frames) }) })
			entry := newStubborn(t, func(p *peer) {
				p.serve(func(r request) bool {
					if r.method == "DESCRIBE" {
						to := dead
						if p.number > 0 {
							to = edge
						}
						p.answer(r, "302 Moved", "Location: "+to.url("/x").String())
					}
					return r.method == "DESCRIBE"
				}, nil)
			})
			_, sink := watch(t, Config{Timeout: 300 * time.Millisecond}, entry.url("/live"), len(ts))
			if !bytes.Equal(sink.Bytes, ts) {
				t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
			}
		})
	}
}

func TestQuirk_digest(t *testing.T) {
	var nonce atomic.Int64
	var refused atomic.Int64
	server := expectAuth(t, "u:p%40%25w@", func(p *peer, r request) bool {
		want := fmt.Sprint("n", nonce.Load()/2) // a new nonce after every second request
		nonce.Add(1)
		c := &challenge{scheme: "digest", realm: "r", nonce: want, opaque: "o"}
		if r.header.get("Authorization") == c.authorize("u", "p@%w", r.method, r.url) {
			return false
		}
		refused.Add(1)
		p.answer(r, "401 Unauthorized", `WWW-Authenticate: Basic realm="r"`, fmt.Sprintf(`WWW-Authenticate: Digest realm="r", nonce="n%d", opaque="o"`, nonce.Load()/2))
		return true
	})
	if refused.Load() == 0 || slices.Contains(server.methods(), "") {
		t.Errorf("got %d challenges, want some", refused.Load())
	}
}

func expectAuth(t *testing.T, userInfo string, special func(p *peer, r request) bool) *stubborn {
	t.Helper()
	frames, ts := rtpFrames(0, 20)
	server := newStubborn(t, func(p *peer) {
		p.serve(func(r request) bool { return special(p, r) }, func() { _, _ = p.Write(frames) })
	})
	u, err := ParseURL("rtsp://" + userInfo + server.ln.Addr().String() + "/live")
	if err != nil {
		t.Fatal(err)
	}
	_, sink := watch(t, Config{}, u, len(ts))
	if !bytes.Equal(sink.Bytes, ts) {
		t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
	}
	return server
}

// failure is what comes of a server that does not serve.
func TestFailures(t *testing.T) {
	answer := func(method, status string, fields ...string) func(p *peer) {
		return func(p *peer) {
			p.serve(func(r request) bool {
				if r.method == method {
					p.answer(r, status, fields...)
				}
				return r.method == method
			}, nil)
		}
	}
	silent := func(method string) func(p *peer) {
		return func(p *peer) { p.serve(func(r request) bool { return r.method == method }, nil) }
	}
	var loop atomic.Int64
	for _, c := range []struct {
		name, user string
		script     func(p *peer)
		status     int
		want       string
	}{
		{"404", "", answer("DESCRIBE", "404 No such channel"), 404, "404 No such channel"},
		{"453", "", answer("SETUP", "453 Not Enough Bandwidth"), 453, "SETUP answered 453 Not Enough Bandwidth"},
		{"454", "", answer("PLAY", "454 Session Not Found"), 454, "PLAY answered 454"},
		{"503", "", answer("OPTIONS", "503 Busy"), 503, "OPTIONS answered 503 Busy"},
		{"no credentials", "", answer("DESCRIBE", "401 Unauthorized", `WWW-Authenticate: Basic realm="x"`), 401, "credentials are needed"},
		{"401 loop", "u:p@", func(p *peer) {
			p.serve(func(r request) bool {
				p.answer(r, "401 Unauthorized", fmt.Sprintf(`WWW-Authenticate: Digest realm="x", nonce="%d"`, loop.Add(1)))
				return true
			}, nil)
		}, 401, `credentials of user "u" were refused`},
		{"wrong password", "u:p@", answer("DESCRIBE", "401 Unauthorized", `WWW-Authenticate: Basic realm="x"`), 401, "were refused"},
		{"unknown scheme", "u:p@", answer("DESCRIBE", "401 Unauthorized", `WWW-Authenticate: Kerberos x`), 401, "neither Basic nor Digest"},
		{"redirect without a Location", "", answer("DESCRIBE", "302 Moved"), 302, "without a Location"},
		{"redirect to another scheme", "", answer("DESCRIBE", "302 Moved", "Location: ftp://192.0.2.1/x"), 302, "cannot be followed"},
		{"redirect to HTTP", "", answer("DESCRIBE", "302 Moved", "Location: HTTP://192.0.2.1/x"), 302, "which is not RTSP"},
		{"redirect to itself", "", func(p *peer) {
			p.serve(func(r request) bool {
				p.answer(r, "302 Moved", "Location: "+p.server.url("/x").String())
				return true
			}, nil)
		}, 302, "more than 5 redirects"},
		{"redirect to a forbidden address", "", answer("OPTIONS", "302 Moved", "Location: rtsp://169.254.169.254/x"), 403, "not within the networks"},
		{"no SDP", "", answer("DESCRIBE", "200 OK"), 0, "bad SDP: expected an SDP in the answer to DESCRIBE, found no body"},
		{"no transport", "", answer("SETUP", "200 OK"), 0, "names no transport"},
		{"no transport fits", "", answer("SETUP", "461 Unsupported"), 461, "to every transport offered (tcp, udp)"},
		{"body missing", "", answer("DESCRIBE", "200 OK", "Content-Length: 100"), 408, "no answer to DESCRIBE within"},
		{"body of 4 GB", "", answer("DESCRIBE", "200 OK", "Content-Length: 4294967296"), 0, "expected at most 65536"},
		{"silent at OPTIONS", "", silent("OPTIONS"), 408, "no answer to OPTIONS within 300ms"},
		{"silent at DESCRIBE", "", silent("DESCRIBE"), 408, "no answer to DESCRIBE"},
		{"silent at SETUP", "", silent("SETUP"), 408, "no answer to SETUP"},
		{"silent at PLAY", "", silent("PLAY"), 408, "no answer to PLAY"},
		{"hangs up", "", func(p *peer) { _, _ = p.next() }, 0, "connection lost while waiting for the answer to OPTIONS"},
		{"another protocol", "", func(p *peer) { p.send("HTTP/1.1 400 Bad Request\r\n\r\nRTSP/2.0 505 x\r\n\r\n"); _, _ = p.next() }, 0, "RTSP/1.0"},
		{"header without end", "", func(p *peer) {
			p.send("RTSP/1.0 200 OK\r\n" + strings.Repeat("a: b\r\n", 9000))
			_, _ = io.Copy(io.Discard, p)
		}, 0, "header longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := newStubborn(t, c.script)
			u := server.url("/live")
			u.User, u.Password, _ = strings.Cut(strings.TrimSuffix(c.user, "@"), ":")
			source, err := open(t, Config{Timeout: 300 * time.Millisecond}, u)
			var failed *Error
			if source != nil || !errors.As(err, &failed) {
				t.Fatalf("got error %v, want an *Error", err)
			}
			if failed.Status != c.status || !strings.Contains(failed.Reason, c.want) || strings.ContainsAny(failed.Reason, "\r\n") {
				t.Errorf("got %d %q, want %d and %q", failed.Status, failed.Reason, c.status, c.want)
			}
		})
	}
}

func TestFailure_nobodyListens(t *testing.T) {
	server := newStubborn(t, nil)
	_ = server.ln.Close()
	_, err := open(t, Config{}, server.url("/"))
	var failed *Error
	if !errors.As(err, &failed) || !strings.Contains(failed.Reason, "refuses the connection") {
		t.Errorf("got %v", err)
	}
}

func TestFailure_severalAddresses(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	server := newStubborn(t, func(p *peer) { p.serve(nil, func() { _, _ = p.Write(frames) }) })
	u := server.url("/")
	u.Host = "two.example.net"
	cfg := Config{Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.77"), netip.MustParseAddr("127.0.0.1")}, nil
	}}
	_, sink := watch(t, cfg, u, len(ts))
	if !bytes.Equal(sink.Bytes, ts) {
		t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
	}
}

func TestFailure_localAddressesAreNotReached(t *testing.T) {
	server := newStubborn(t, func(p *peer) { _, _ = p.next() })
	client := NewClient(Config{})
	defer client.Close()
	for _, host := range []string{"127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", "239.1.1.1"} {
		u := server.url("/")
		u.Host = host
		var failed *Error
		if _, err := client.Open(ingesttest.NewReceiver(), Request{URL: u}); !errors.As(err, &failed) || failed.Status != 403 {
			t.Errorf("%s: got %v, want 403", host, err)
		}
	}
	if n := len(server.methods()); n > 0 {
		t.Errorf("the server got %d requests, want none", n)
	}
}

// Credentials stay with the host that they were given for.
func TestRedirect_credentials(t *testing.T) {
	challengeAll := func(p *peer, r request) bool {
		if r.header.get("Authorization") == "" {
			p.answer(r, "401 Unauthorized", `WWW-Authenticate: Basic realm="x"`)
			return true
		}
		return false
	}
	for _, trust := range []bool{false, true} {
		frames, ts := rtpFrames(0, 10)
		edge := newStubborn(t, func(p *peer) {
			p.serve(func(r request) bool { return challengeAll(p, r) }, func() { _, _ = p.Write(frames) })
		})
		entry := newStubborn(t, func(p *peer) {
			p.serve(func(r request) bool {
				p.answer(r, "302 Moved", "Location: "+strings.Replace(edge.url("/x").String(), "127.0.0.1", "localhost", 1))
				return true
			}, nil)
		})
		u := entry.url("/")
		u.User, u.Password = "u", "p"
		source, err := open(t, Config{TrustRedirects: trust}, u)
		if !trust {
			var failed *Error
			if !errors.As(err, &failed) || !strings.Contains(failed.Reason, "not handed on") {
				t.Errorf("got %v, want a refusal", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		drain(t, source, &ingesttest.Sink{T: t}, len(ts))
	}
}

func TestEnd_everyByteThenTheEnd(t *testing.T) {
	frames, ts := rtpFrames(0, 1600) // 2 MB
	for name, last := range map[string]string{
		"hang up":      "",
		"cut frame":    "$\x00\x05",
		"announcement": "ANNOUNCE rtsp://h RTSP/1.0\r\nCSeq: 1\r\nx-notice: 2101 \"End-of-Stream Reached\"\r\n\r\n",
		"teardown":     "TEARDOWN rtsp://h RTSP/1.0\r\nCSeq: 1\r\n\r\n",
		"in words":     "ANNOUNCE rtsp://h RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 13\r\n\r\nEnd of stream",
	} {
		t.Run(name, func(t *testing.T) {
			server := newStubborn(t, func(p *peer) {
				p.serve(nil, func() {
					_, _ = p.Write(frames)
					p.send(last)
					if name == "hang up" || name == "cut frame" {
						_ = p.Close()
					}
				})
			})
			source, err := open(t, Config{}, server.url("/"))
			if err != nil {
				t.Fatal(err)
			}
			sink := &ingesttest.Sink{T: t}
			drain(t, source, sink, -1)
			if !bytes.Equal(sink.Bytes, ts) || !errors.Is(source.Ended(), io.EOF) {
				t.Errorf("got %d bytes and %v, want %d and the end", len(sink.Bytes), source.Ended(), len(ts))
			}
		})
	}
}

func TestEnd_noMedia(t *testing.T) {
	server := newStubborn(t, func(p *peer) { p.serve(nil, func() { _, _ = p.Write(frame(0, []byte("not TS, not RTP"))) }) })
	source, err := open(t, Config{Timeout: 300 * time.Millisecond}, server.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	drain(t, source, &ingesttest.Sink{T: t}, -1)
	var failed *Error
	if !errors.As(source.Ended(), &failed) || failed.Status != 408 || !strings.Contains(failed.Reason, "1 datagram, none of them RTP or MPEG-TS") {
		t.Errorf("got %v", source.Ended())
	}
	_ = source.Close()
	if all := server.methods(); all[len(all)-1] != "TEARDOWN" {
		t.Errorf("got %q, want TEARDOWN at the end", all)
	}
}

func TestTeardown_neverHangs(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	for name, script := range map[string]func(p *peer) func(r request) bool{
		"no answer": func(p *peer) func(r request) bool { return func(r request) bool { return r.method == "TEARDOWN" } },
		"hangs up": func(p *peer) func(r request) bool {
			return func(r request) bool {
				if r.method == "TEARDOWN" {
					_ = p.Close()
				}
				return false
			}
		},
		"media goes on": func(p *peer) func(r request) bool {
			return func(r request) bool {
				for r.method == "TEARDOWN" {
					if _, err := p.Write(frames); err != nil {
						return true
					}
				}
				return false
			}
		},
	} {
		onBoth(t, func(t *testing.T, cfg Config) {
			t.Run(name, func(t *testing.T) {
				server := newStubborn(t, func(p *peer) { p.serve(script(p), func() { _, _ = p.Write(frames) }) })
				cfg.Timeout = 500 * time.Millisecond
				source, _ := watch(t, cfg, server.url("/"), len(ts))
				began := time.Now()
				_ = source.Close()
				if spent := time.Since(began); spent > 2*time.Second {
					t.Errorf("Close took %v, want about %v", spent, cfg.Timeout)
				}
				if !slices.Contains(server.methods(), "TEARDOWN") {
					t.Error("the server was not told")
				}
			})
		})
	}
}

// A server that broke the connection off is told by another, for that alone.
func TestTeardown_deadConnection(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	server := newStubborn(t, func(p *peer) {
		p.serve(nil, func() {
			_, _ = p.Write(frames)
			_ = p.Close()
		})
	})
	source, err := open(t, Config{}, server.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	sink := &ingesttest.Sink{T: t}
	drain(t, source, sink, -1)
	_ = source.Close()
	all := server.methods()
	if len(sink.Bytes) != len(ts) || all[len(all)-1] != "TEARDOWN" {
		t.Errorf("got %d bytes, %q, want %d and TEARDOWN at the end", len(sink.Bytes), all, len(ts))
	}
	if r, _ := server.find("TEARDOWN"); r.header.get("Session") != "123" {
		t.Errorf("TEARDOWN: got Session %q, want 123", r.header.get("Session"))
	}
}

func TestDescribe(t *testing.T) {
	server := newStubborn(t, func(p *peer) {
		p.serve(func(r request) bool {
			if r.method == "DESCRIBE" {
				p.send(answerTo(r, "200 OK", "v=0\na=range:npt=0-90.5\nm=video 0 RTP/AVP 33\n"))
				_ = p.Close()
			}
			return r.method == "DESCRIBE"
		}, nil)
	})
	client := NewClient(local(Config{}))
	defer client.Close()
	got, err := client.Describe(t.Context(), Request{URL: server.url("/")})
	if err != nil || got.Duration != 90500*time.Millisecond {
		t.Errorf("got %v, error %v, want 1m30.5s", got.Duration, err)
	}
	if all := server.methods(); !slices.Equal(all, []string{"OPTIONS", "DESCRIBE"}) {
		t.Errorf("got %q, want OPTIONS and DESCRIBE alone", all)
	}
}
