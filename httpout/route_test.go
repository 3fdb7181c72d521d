package httpout

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"zapcast/ingest"
	"zapcast/tune"
)

// Bad requests and their answers: the status and a reason in one line.
func TestServer_badRequests(t *testing.T) {
	f := newFront(t, Config{})
	for _, row := range []struct {
		method, target string
		code           int
		reason         string
	}{
		{"GET", "*", 400, `begins with /, found "*"`},
		{"OPTIONS", "*", 400, `begins with /, found "*"`},
		{"GET", "https://test/rtp/239.1.1.1:5000", 400, "begins with /"},
		{"GET", "/rtp/%zz", 400, "two hexadecimal digits"},
		{"GET", "/rtp/239.1.1.1:5000/%4", 400, "two hexadecimal digits"},
		{"HEAD", "/nothing%", 400, ""},
		{"GET", "/rtp/239.1.1.1:5000?" + strings.Repeat("a", tune.MaxTarget), 414, "expected at most 2048"},
		{"GET", "/page", 404, "there are /rtp/GROUP:PORT"},
		{"GET", "/page/vendor", 404, "no such path"},
		{"GET", "/api/diagnose", 400, "expected ?url=PATH of a stream"},
		{"GET", "/api/diagnose?url=/healthz", 400, "expected the path of a stream"},
		{"POST", "/", 405, "expected one of the methods"},
		{"GET", "/status", 404, "no such path"},
		{"GET", "/api", 404, "no such path"},
		{"GET", "//rtp/239.1.1.1:5000", 404, "no such path"},
		{"GET", "/rtp/../api/status/x", 400, "multicast address"},
		{"GET", "/rtmp/192.0.2.1/a", 404, "no such path"},
		{"HEAD", "/nothing", 404, ""},
		{"POST", "/nothing", 404, "no such path"},
		{"GET", "/rtp", 400, "expected a multicast address"},
		{"GET", "/rtp/", 400, "expected a multicast address"},
		{"GET", "/udp/?fcc=192.0.2.1:5", 400, "expected a multicast address"},
		{"GET", "/rtp/@239.1.1.1:5000", 400, "source address before @"},
		{"GET", "/rtp/198.51.100.7@:5000", 400, "multicast address"},
		{"GET", "/rtp/nowhere.example:5000", 400, `cannot resolve "nowhere.example"`},
		{"HEAD", "/rtp/nowhere.example:5000", 400, ""},
		{"GET", "/rtp/192.0.2.1:5000", 400, "not multicast"},
		{"GET", "/rtp/239.1.1.1:0", 400, "port from 1 to 65535"},
		{"GET", "/rtp/239.1.1.1:65536", 400, "port from 1 to 65535"},
		{"GET", "/rtp/239.1.1.1:abc", 400, "port from 1 to 65535"},
		{"GET", "/rtp/[2001:db8::7]@239.1.1.1:5000", 400, "families"},
		{"GET", "/rtp/239.1.1.1:5000?fcc=192.0.2.1", 400, "no port"},
		{"GET", "/rtp/239.1.1.1:5000?r2h-ifname=nosuch0", 400, `unknown interface "nosuch0"`},
		{"HEAD", "/rtp/239.1.1.1:5000?r2h-ifname=nosuch0", 400, ""},
		{"POST", "/rtp/239.1.1.1:5000", 405, "GET, HEAD, OPTIONS"},
		{"OPTIONS", "/rtp/239.1.1.1:5000", 405, "OPTIONS is answered where http.cors"},
		{"DELETE", "/udp/", 405, "GET, HEAD, OPTIONS"},
		{"PUT", "/api/status", 405, "GET, HEAD, OPTIONS"},
		{"M-SEARCH", "/healthz", 405, "GET, HEAD, OPTIONS"},
		{"GET", "/rtp/239.9.9.9:5000", 503, "239.9.9.9:5000"}, // silent
	} {
		response, body := f.request(row.method, row.target)
		at := fmt.Sprintf("%s %.60s", row.method, row.target)
		if response.StatusCode != row.code || !strings.Contains(body, row.reason) {
			t.Errorf("%s: got %d %q, want %d with %q", at, response.StatusCode, body, row.code, row.reason)
		}
		if row.method != "HEAD" && (strings.Count(body, "\n") != 1 || !strings.HasSuffix(body, "\n")) {
			t.Errorf("%s: body %q, want one line", at, body)
		}
		if row.method == "HEAD" && body != "" {
			t.Errorf("%s: body %q, want none", at, body)
		}
		for key, want := range map[string]string{
			"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Server": "zapcast",
		} {
			if got := response.Header.Get(key); got != want {
				t.Errorf("%s: %s: got %q, want %q", at, key, got, want)
			}
		}
		if !response.Close {
			t.Errorf("%s: want Connection: close, got %v", at, response.Header)
		}
		if got := response.Header.Get("Allow"); (row.code == 405) != (got == "GET, HEAD, OPTIONS") {
			t.Errorf("%s: Allow: got %q", at, got)
		}
		for key := range response.Header {
			if strings.HasPrefix(key, "R2h-") {
				t.Errorf("%s: stream header %s in an error", at, key)
			}
		}
	}
	if joined := f.network.Events(); len(joined) != 0 && joined[0] != "join 239.9.9.9:5000" {
		t.Errorf("joins: got %v, want only that of the silent group", joined)
	}
}

// What is no request, or a broken one, as bytes.
func TestServer_rawRequests(t *testing.T) {
	f := newFront(t, Config{HeaderTimeout: 200 * time.Millisecond})
	const ok = "HTTP/1.1 200 "
	hello := "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\xaa", 500)
	get := func(lines ...string) string {
		return "GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
	}
	for _, row := range []struct{ name, request, want string }{
		{"plain", get(), ok},
		{"old", "GET /healthz HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK"},
		{"absolute form", "GET http://test/healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", ok},
		{"absolute form in capitals", "GET HTTP://test:5140/api/status HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n", ok},
		{"absolute form without a path", "GET http://test HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", ok},
		{"TLS", hello, "HTTP/1.1 400 "},
		{"garbage", "\x00\x01\x02\xff\r\n\r\n", "HTTP/1.1 400 "},
		{"text", "hello, are you there?\r\n", "HTTP/1.1 400 "},
		{"one word", "HELLO\r\n\r\n", "HTTP/1.1 400 "},
		{"long word", strings.Repeat("A", 5000), "HTTP/1.1 400 "},
		{"lower case", "get / http/1.1\r\n\r\n", "HTTP/1.1 400 "},
		{"no version", "GET /healthz\r\n\r\n", "HTTP/1.1 400 "},
		{"other version", "GET /healthz HTTP/3.0\r\nHost: test\r\n\r\n", "HTTP/1.1 505 "},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 "},
		{"tunnel", "CONNECT test:443 HTTP/1.1\r\nHost: test:443\r\n\r\n", "HTTP/1.1 400 "},
		{"no host", "GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
		{"folded garbage", get("no colon here"), "HTTP/1.1 400 "},
		{"length abc", get("Content-Length: abc"), "HTTP/1.1 400 "},
		{"length negative", get("Content-Length: -5"), "HTTP/1.1 400 "},
		{"length over all", get("Content-Length: 99999999999999999999"), "HTTP/1.1 400 "},
		{"two lengths", get("Content-Length: 1", "Content-Length: 2"), "HTTP/1.1 400 "},
		{"length 4 GB", get("Content-Length: 4294967296"), "HTTP/1.1 413 "},
		{"body", get("Content-Length: 5") + "hello", ok},
		{"body cut", get("Content-Length: 5") + "hel", "HTTP/1.1 400 "},
		{"chunks", get("Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n", ok},
		{"chunks broken", get("Transfer-Encoding: chunked") + "xyz\r\n", "HTTP/1.1 400 "},
		{"chunks without end", get("Transfer-Encoding: chunked") + strings.Repeat("100000\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 5), "HTTP/1.1 413 "},
		{"header block too large", get("X: " + strings.Repeat("x", maxHeader)), "HTTP/1.1 431 "},
		{"header block of one long line", "GET /" + strings.Repeat("a", maxHeader) + " HTTP/1.1\r\n\r\n", "HTTP/1.1 431 "},
		{"header never ends", "GET /healthz HTTP/1.1\r\nHost:", ""},
		{"cookies", get("Cookie: "+strings.Repeat("c", 4096), "User-Agent: x"), ok},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := *f
			f.t = t
			c := f.dial()
			go io.WriteString(c, row.request) // the answer may come before the end
			got, _ := io.ReadAll(c)
			if !strings.HasPrefix(string(got), row.want) || row.want == "" && len(got) > 0 {
				t.Errorf("got %.200q, want %q", got, row.want)
			}
		})
	}
	if log := f.log.String(); log != "" {
		t.Errorf("what scanners send is logged:\n%s", log)
	}
}

// A header block of just the limit is served, one byte more is not.
func TestServer_headerLimitIsExact(t *testing.T) {
	f := newFront(t, Config{})
	request := func(size int) string {
		head := "GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\nX: "
		return head + strings.Repeat("x", size-len(head)-4) + "\r\n\r\n"
	}
	for size, want := range map[int]string{maxHeader: "HTTP/1.1 200", maxHeader + 1: "HTTP/1.1 431"} {
		if got := f.raw(request(size)); !strings.HasPrefix(got, want) {
			t.Errorf("%d bytes: got %.80q, want %s", size, got, want)
		}
	}
	if got := f.raw("GET /" + strings.Repeat("a", tune.MaxTarget-1) + " HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 404") {
		t.Errorf("target of %d bytes: got %.80q, want 404", tune.MaxTarget, got)
	}
	if got := f.raw("GET /" + strings.Repeat("a", tune.MaxTarget) + " HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 414") {
		t.Errorf("target of %d bytes: got %.80q, want 414", tune.MaxTarget+1, got)
	}
}

func TestServer_keepsAliveOnlyWhatIsNoStream(t *testing.T) {
	f := newFront(t, Config{})
	c := f.dial()
	r := bufio.NewReader(c)
	for _, target := range []string{"/healthz", "/api/status", "/healthz/", "/api/status/?x=1"} {
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", target)
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		if body, _ := io.ReadAll(response.Body); response.StatusCode != 200 || response.Close || len(body) == 0 {
			t.Errorf("%s: got %s, close %t, %d bytes, want 200 and the connection open", target, response.Status, response.Close, len(body))
		}
	}
	io.WriteString(c, "HEAD /rtp/239.1.1.1:5000 HTTP/1.1\r\nHost: test\r\n\r\n")
	if rest, err := io.ReadAll(r); err != nil || !strings.Contains(string(rest), "Connection: close\r\n") {
		t.Errorf("HEAD of a stream: got %q, %v, want the end of the connection", rest, err)
	}
}

func TestServer_checksHost(t *testing.T) {
	f := newFront(t, Config{Hosts: []string{"tv.example", "192.0.2.1", "[2001:db8::1]", "fd00::1"}})
	for host, want := range map[string]string{
		"tv.example": "200", "tv.example:5140": "200", "TV.Example:80": "200", "tv.example.": "200",
		"192.0.2.1": "200", "192.0.2.1:9": "200",
		"[2001:db8::1]": "200", "[2001:DB8::1]:5140": "200", "[2001:db8:0:0::1]:5140": "200", "[fd00::1]:1": "200",
		"": "400", "evil.example": "400", "tv.example.evil": "400", "192.0.2.2": "400", "[2001:db8::2]": "400", ":5140": "400", "xtv.example": "400",
	} {
		got := f.raw("GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: " + host + "\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("Host %q: got %.80q, want %s", host, got, want)
		}
	}
	if got := f.raw("GET /rtp/239.1.1.1:5000 HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 400") {
		t.Errorf("no Host: got %.80q, want 400", got)
	}
	if got := f.raw("GET http://evil.example/healthz HTTP/1.1\r\nHost: tv.example\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("absolute form with another name: got %.80q, want 400", got)
	}
	f.Reconfigure(Config{})
	if got := f.raw("GET /healthz HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 200") {
		t.Errorf("after Reconfigure without names: got %.80q, want 200", got)
	}
}

func TestServer_CORS(t *testing.T) {
	f := newFront(t, Config{CORS: "https://page.example"})
	check := func(response *http.Response, want map[string]string) {
		t.Helper()
		for key, value := range want {
			if got := response.Header.Get(key); got != value {
				t.Errorf("%s: %s: got %q, want %q", response.Status, key, got, value)
			}
		}
	}
	response, body := f.request("OPTIONS", "/rtp/239.1.1.1:5000", "Origin: https://page.example",
		"Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: range, x-a", "Connection: close")
	if response.StatusCode != 204 || body != "" {
		t.Errorf("OPTIONS: got %s %q, want 204", response.Status, body)
	}
	check(response, map[string]string{
		"Access-Control-Allow-Origin": "https://page.example", "Access-Control-Allow-Methods": "PUT",
		"Access-Control-Allow-Headers": "range, x-a", "Access-Control-Max-Age": "86400",
	})
	response, _ = f.request("OPTIONS", "/whatever", "Connection: close")
	check(response, map[string]string{"Access-Control-Allow-Methods": "GET, HEAD, OPTIONS", "Access-Control-Allow-Headers": ""})

	for _, target := range []string{"/nothing", "/api/status", "/rtp/239.1.1.1:5000"} {
		response, _ = f.request("HEAD", target, "Connection: close")
		check(response, map[string]string{
			"Access-Control-Allow-Origin":   "https://page.example",
			"Access-Control-Expose-Headers": exposedHeaders,
		})
	}
	f.feed("239.1.1.1:5000")
	check(f.watch("/rtp/239.1.1.1:5000").Response, map[string]string{"Access-Control-Allow-Origin": "https://page.example"})
}

func TestServer_healthWhileItEnds(t *testing.T) {
	f := newFront(t, Config{})
	if response, body := f.request("GET", "/healthz", "Connection: close"); response.StatusCode != 200 || body != "ok\n" {
		t.Errorf("got %s %q, want 200 ok", response.Status, body)
	}
	if response, body := f.request("HEAD", "/healthz", "Connection: close"); response.StatusCode != 200 || body != "" || response.ContentLength != 3 {
		t.Errorf("HEAD: got %s, %d bytes, %q, want 200 and only the header", response.Status, response.ContentLength, body)
	}
	f.shutdown(errShuttingDown)
	if response, body := f.request("GET", "/healthz"); response.StatusCode != 503 || !strings.Contains(body, "shutting down") {
		t.Errorf("got %s %q, want 503", response.Status, body)
	}
}

// 10 000 refusals leave nothing behind.
func TestServer_refusalsLeaveNothing(t *testing.T) {
	f := newFront(t, Config{})
	f.network.Refuse("239.9.9.9:5000", ingest.ErrInterface)
	targets := []string{"/nothing", "/rtp/192.0.2.1", "/rtp/239.9.9.9:5000", "/rtp/x/%"}
	f.request("GET", targets[0])
	before := f.settled()
	for i := range 10_000 {
		c := f.dial()
		io.WriteString(c, "GET "+targets[i%len(targets)]+" HTTP/1.0\r\n\r\n")
		if n, _ := io.Copy(io.Discard, c); n == 0 {
			t.Fatalf("request %d was not answered", i)
		}
		c.Close()
	}
	f.eventually("the goroutines and descriptors are as before", func() bool {
		now := f.settled()
		return now.goroutines <= before.goroutines+2 && now.files <= before.files+2
	})
	if got := f.counters.notFound.Load(); got != 2501 {
		t.Errorf("counted %d refusals with 404, want 2501", got)
	}
	if n := len(f.failures.snapshot()); n != 1 {
		t.Errorf("%d failures kept, want 1", n)
	}
}

type resources struct{ goroutines, files int }

func (f *front) settled() resources {
	process := f.snapshot(time.Now()).Process
	return resources{process.Goroutines, process.OpenFiles}
}
