package rtsp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zapcast/ingest/ingesttest"
)

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

// An address that refuses gives way to the next at once.
func TestFailure_severalAddresses(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	server := newStubborn(t, func(p *peer) { p.serve(nil, func() { _, _ = p.Write(frames) }) })
	u := server.url("/")
	u.Host = "two.example.net"
	cfg := Config{Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.77"), netip.MustParseAddr("127.0.0.1")}, nil
	}}
	least := time.Duration(math.MaxInt64) // of some: a busy machine may take its time over one
	for tries := 0; tries < 10 && least >= stagger; tries++ {
		began := time.Now()
		_, sink := watch(t, cfg, u, len(ts))
		least = min(least, time.Since(began))
		if !bytes.Equal(sink.Bytes, ts) {
			t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
		}
	}
	if least >= stagger {
		t.Errorf("got the stream after %v at best, want it before %v", least, stagger)
	}
}

func TestFailure_localAddressesAreNotReached(t *testing.T) {
	server := newStubborn(t, func(p *peer) { _, _ = p.next() })
	client := NewClient(Config{Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1"), netip.MustParseAddr("127.0.0.1")}, nil
	}})
	defer client.Close()
	for _, host := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1", "0.0.0.0", "239.1.1.1", "inside.example.net"} {
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
