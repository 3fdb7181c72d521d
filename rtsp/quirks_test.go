package rtsp

import (
	"bytes"
	"slices"
	"strings"
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
			p.answer(r, "200 OK", "Session: 77;timeout=30", "Server: HMS_V1R2", "Timeshift-Status: 1")
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
