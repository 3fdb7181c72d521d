package rtsp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zapcast/ingest/ingesttest"
)

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
