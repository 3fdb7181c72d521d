package httpout

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"zapcast/access"
	"zapcast/internal/testlog"
	"zapcast/journal"
	"zapcast/lineup"
)

func guarded() *access.Guard {
	return access.NewGuard(access.Config{LinkKey: "0123456789abcdef", Tokens: []access.Token{
		{Name: "tv", Secret: "stream;secret", Rights: []access.Right{access.Stream}},
		{Name: "wall", Secret: "view-secret", Rights: []access.Right{access.View}},
		{Name: "root", Secret: "admin-secret", Rights: []access.Right{access.Admin}},
	}})
}

func named(t *testing.T) *lineup.Lineup {
	l := lineup.Open(lineup.Config{Channels: []lineup.Entry{
		{Name: "One", Sources: []lineup.Source{{URL: "rtp://239.1.1.1:5000"}, {URL: "rtsp://u:hush@h/1"}}},
	}})
	t.Cleanup(l.Close)
	return l
}

func TestRights(t *testing.T) {
	f := newFront(t, Config{Guard: guarded(), Lineup: named(t)})
	for _, tt := range []struct {
		method, path                     string
		none, stream, view, admin, extra int // status codes; extra: with a wrong token
	}{
		{"HEAD", "/rtp/239.1.1.1:5000", 401, 200, 403, 200, 401},
		{"GET", "/playlist.m3u", 401, 200, 403, 200, 401},
		{"GET", "/api/channels", 401, 200, 403, 200, 401},
		{"GET", "/api/status", 401, 403, 200, 200, 401},
		{"GET", "/api/log", 401, 403, 200, 200, 401},
		{"GET", "/api/rights", 401, 403, 200, 200, 401},
		{"GET", "/api/diagnose", 401, 403, 400, 400, 401},
		{"GET", "/", 401, 403, 200, 200, 401},
		{"GET", "/healthz", 200, 200, 200, 200, 200},
		{"POST", "/api/viewers/77/disconnect", 401, 403, 403, 404, 401},
		{"POST", "/api/log-level?level=debug", 401, 403, 403, 404, 401},
		{"POST", "/api/reload", 401, 403, 403, 404, 401},
		{"POST", "/api/channels/One/source?number=2", 401, 403, 403, 200, 401},
		{"GET", "/api/reload", 405, 405, 405, 405, 405},
		{"POST", "/api/status", 405, 405, 405, 405, 405},
		{"GET", "/nothing", 404, 404, 404, 404, 404},
	} {
		for secret, want := range map[string]int{"": tt.none, "stream;secret": tt.stream, "view-secret": tt.view, "admin-secret": tt.admin, "wrong": tt.extra} {
			var lines []string
			if secret != "" {
				lines = append(lines, "Authorization: Bearer "+secret)
			}
			response, body := f.request(tt.method, tt.path, append(lines, "Connection: close")...)
			if response.StatusCode != want {
				t.Errorf("%s %s with %q: got %d (%s), want %d", tt.method, tt.path, secret, response.StatusCode, body, want)
			}
			if challenge := response.Header.Get("WWW-Authenticate"); (challenge == "Bearer") != (want == 401) {
				t.Errorf("%s %s with %q: got the challenge %q", tt.method, tt.path, secret, challenge)
			}
		}
	}
	if log := f.log.String(); strings.Contains(log, "secret") || !strings.Contains(log, "wrong token") {
		t.Errorf("want wrong tokens named in the log, and no secret: %s", log)
	}
}

// The page is told what its viewer may do, so that it offers nothing else.
func TestRights_told(t *testing.T) {
	guard, open := guarded(), access.NewGuard(access.Config{})
	for _, tt := range []struct {
		guard        *access.Guard
		secret, want string
	}{
		{guard, "view-secret", `{"admin":false,"stream":false,"view":true}`},
		{guard, "admin-secret", `{"admin":true,"stream":true,"view":true}`},
		{open, "", `{"admin":false,"stream":true,"view":true}`}, // the host is "test", not this machine's own name
	} {
		f := newFront(t, Config{Guard: tt.guard})
		if _, body := f.request("GET", "/api/rights", "Authorization: Bearer "+tt.secret, "Connection: close"); body != tt.want+"\n" {
			t.Errorf("%q: got %s, want %s", tt.secret, body, tt.want)
		}
	}
}

func TestRights_waysToGiveAToken(t *testing.T) {
	f := newFront(t, Config{Guard: guarded(), Lineup: named(t)})
	foreign := "Cookie: " + strings.Repeat("k=0123456789; ", 300)
	for _, lines := range [][]string{
		{"/playlist.m3u?r2h-token=stream%3Bsecret"},
		{"/playlist.m3u", foreign + "r2h-token=stream%3Bsecret"},
		{"/playlist.m3u", "Authorization: Bearer stream;secret"},
		{"/playlist.m3u", "User-Agent: Player R2HTOKEN/stream;secret"},
	} {
		response, body := f.request("GET", lines[0], append(lines[1:], "Host: tv:80", "Connection: close")...)
		if want := "http://tv:80/One?r2h-token=stream%3Bsecret\n"; response.StatusCode != 200 || !strings.HasSuffix(body, want) {
			t.Errorf("%.60q: got %s, %q, want %q", lines, response.Status, body, want)
		}
		cookie := response.Header.Get("Set-Cookie")
		if inQuery := strings.Contains(lines[0], "?"); (cookie == "r2h-token=stream%3Bsecret; Path=/; HttpOnly; SameSite=Strict") != inQuery {
			t.Errorf("%.60q: got the cookie %q", lines, cookie)
		}
	}
}

func TestRights_signedLink(t *testing.T) {
	f := newFront(t, Config{Guard: guarded()})
	link := access.Sign("0123456789abcdef", "/rtp/239.1.1.1:5000", time.Now().Add(time.Minute))
	for path, want := range map[string]int{
		"/rtp/239.1.1.1:5000?zapcast-link=" + link:        200,
		"/rtp/239.1.1.2:5000?zapcast-link=" + link:        401,
		"/rtp/239.1.1.1:5000?zapcast-link=" + link + "AA": 401,
		"/playlist.m3u?zapcast-link=" + link:              401,
	} {
		if response, _ := f.request("HEAD", path, "Connection: close"); response.StatusCode != want {
			t.Errorf("%s: got %s, want %d", path, response.Status, want)
		}
	}
}

func TestRights_wrongTokensHaveToWait(t *testing.T) {
	f := newFront(t, Config{Guard: guarded()})
	for i := range 10 {
		f.request("GET", "/api/status?r2h-token=guess"+string(rune('a'+i)), "Connection: close")
	}
	response, _ := f.request("GET", "/api/status?r2h-token=view-secret", "Connection: close")
	if response.StatusCode != 429 || response.Header.Get("Retry-After") == "" {
		t.Errorf("got %s, Retry-After %q, want 429", response.Status, response.Header.Get("Retry-After"))
	}
}

func TestAdmin_withoutATokenForTheMachineAlone(t *testing.T) {
	f := newFront(t, Config{Lineup: named(t), Proxies: nil})
	for _, tt := range []struct {
		want  int
		lines []string
	}{
		{200, []string{"Host: localhost:5140"}},
		{200, []string{"Host: 127.0.0.1:5140"}},
		{200, []string{"Host: [::1]:5140", "Sec-Fetch-Site: same-origin"}},
		{403, []string{"Host: evil.example:5140"}},
		{403, []string{"Host: localhost:5140", "X-Forwarded-For: 192.0.2.1"}},
		{403, []string{"Host: localhost:5140", "Sec-Fetch-Site: cross-site"}},
		{403, []string{"Host: localhost:5140", "Origin: http://evil.example"}},
	} {
		response, body := f.request("POST", "/api/channels/One/source?number=1", append(tt.lines, "Connection: close")...)
		if response.StatusCode != tt.want {
			t.Errorf("%q: got %s (%s), want %d", tt.lines, response.Status, body, tt.want)
		}
	}
}

func TestAdmin_disconnect(t *testing.T) {
	f := newFront(t, Config{})
	f.feed("239.1.1.1:5000")
	f.watch("/rtp/239.1.1.1:5000")
	id := f.engine.Status().Viewers[0].ID
	path := "/api/viewers/" + json.Number(string(rune('0'+id))).String() + "/disconnect"
	if response, body := f.request("POST", path, "Host: localhost", "Connection: close"); response.StatusCode != 200 {
		t.Fatalf("got %s: %s", response.Status, body)
	}
	for deadline := time.Now().Add(patience); len(f.engine.Status().Viewers) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the viewer is still there")
		}
	}
	if response, _ := f.request("POST", path, "Host: localhost", "Connection: close"); response.StatusCode != 404 {
		t.Errorf("again: got %s, want 404", response.Status)
	}
}

func TestAdmin_sourceAndLog(t *testing.T) {
	j := journal.New(new(testlog.Log))
	line := named(t)
	reloads := 0
	f := newFront(t, Config{Lineup: line, Journal: j, Logger: j.Logger(true), Reload: func() error { reloads++; return nil }})
	post := func(path string, want int) {
		t.Helper()
		if response, body := f.request("POST", path, "Host: localhost", "Connection: close"); response.StatusCode != want {
			t.Errorf("%s: got %s (%s), want %d", path, response.Status, body, want)
		}
	}
	post("/api/channels/One/source?number=2", 200)
	post("/api/channels/One/source?number=3", 400)
	post("/api/channels/Two/source?number=1", 404)
	post("/api/log-level?level=debug", 200)
	post("/api/log-level?level=loud", 400)
	post("/api/reload", 200)
	if reloads != 1 {
		t.Errorf("got %d reloads, want 1", reloads)
	}
	_, body := f.request("GET", "/api/log", "Connection: close")
	var shown logJSON
	if err := json.Unmarshal([]byte(body), &shown); err != nil || shown.Level != "debug" || len(shown.Lines) == 0 || !strings.Contains(body, "log level set") {
		t.Errorf("log: got %s", body)
	}
	last := shown.Lines[len(shown.Lines)-1].Number
	if _, body = f.request("GET", "/api/log?after="+json.Number(strings.TrimSpace(jsonNumber(last))).String(), "Connection: close"); strings.Contains(body, "log level set") {
		t.Errorf("lines after %d: got %s", last, body)
	}
}

func jsonNumber(n int64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func TestPrefix(t *testing.T) {
	f := newFront(t, Config{Prefix: "/app/x", Lineup: named(t)})
	for path, want := range map[string]int{
		"/app/x/": 200, "/app/x/api/status": 200, "/app/x/playlist.m3u": 200, "/app/x/rtp/239.1.1.1:5000": 200, "/app/x/One": 200,
		"/app/x": 308, "/app/x/page/main.js": 200,
		"/": 404, "/api/status": 404, "/rtp/239.1.1.1:5000": 404, "/app/xx/": 404, "/app": 404, "/healthz": 404, "/playlist.m3u": 404, "/One": 404,
	} {
		response, _ := f.request("HEAD", path, "Connection: close")
		if response.StatusCode != want {
			t.Errorf("%s: got %s, want %d", path, response.Status, want)
		}
		if to := response.Header.Get("Location"); want == 308 && to != "/app/x/" {
			t.Errorf("%s: sent to %q, want /app/x/", path, to)
		}
	}
	if _, body := f.request("GET", "/app/x/playlist.m3u", "Host: tv", "Connection: close"); !strings.Contains(body, "\nhttp://tv/app/x/One\n") {
		t.Errorf("playlist: got %s", body)
	}
}

func TestPlaylist_asTheViewerReachedUs(t *testing.T) {
	forwarded := []string{"Host: inner:8080", "X-Forwarded-Proto: https", "X-Forwarded-Host: tv.example", "X-Forwarded-For: 192.0.2.7", "Connection: close"}
	for _, tt := range []struct {
		name    string
		proxies []netip.Prefix
		lines   []string
		want    string
	}{
		{"plain", nil, []string{"Host: tv:5140", "Connection: close"}, "http://tv:5140/One"},
		{"IPv6", nil, []string{"Host: [::1]:5140", "Connection: close"}, "http://[::1]:5140/One"},
		{"a proxy", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, forwarded, "https://tv.example/One"},
		{"nobody's proxy", nil, forwarded, "http://inner:8080/One"},
	} {
		f := newFront(t, Config{Lineup: named(t), Proxies: tt.proxies})
		response, body := f.request("GET", "/playlist.m3u", tt.lines...)
		if !strings.HasSuffix(body, "\n"+tt.want+"\n") || response.Header.Get("Content-Type") != playlistType {
			t.Errorf("%s: got %q, want %s", tt.name, body, tt.want)
		}
		again, rest := f.request("GET", "/playlist.m3u", append(tt.lines, "If-None-Match: "+response.Header.Get("ETag"))...)
		if again.StatusCode != http.StatusNotModified || rest != "" {
			t.Errorf("%s, the same again: got %s", tt.name, again.Status)
		}
	}
	f := newFront(t, Config{})
	if response, _ := f.request("GET", "/playlist.m3u", "Connection: close"); response.StatusCode != 404 {
		t.Errorf("no channels: got %s, want 404", response.Status)
	}
}

func TestVisit_clientBehindProxies(t *testing.T) {
	config := Config{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, tt := range []struct{ peer, header, want string }{
		{"10.0.0.1", "192.0.2.7", "192.0.2.7"},
		{"10.0.0.1", "6.6.6.6, 192.0.2.7, 10.0.0.2", "192.0.2.7"},
		{"10.0.0.1", "junk", "10.0.0.1"},
		{"10.0.0.1", "", "10.0.0.1"},
		{"192.0.2.1", "6.6.6.6", "192.0.2.1"},
		{"10.0.0.1", "[2001:db8::1]", "2001:db8::1"},
	} {
		r := &http.Request{Header: http.Header{}}
		if tt.header != "" {
			r.Header.Set("X-Forwarded-For", tt.header)
		}
		v := visit{client: netip.MustParseAddr(tt.peer)}
		v.through(&config, r)
		if got := v.client.String(); got != tt.want {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
}

func TestStatus_tellsNoSecrets(t *testing.T) {
	f := newFront(t, Config{Guard: guarded(), Lineup: named(t)})
	f.feed("239.1.1.1:5000")
	f.watch("/rtp/239.1.1.1:5000?r2h-token=stream%3Bsecret&password=hush", "User-Agent: P R2HTOKEN/stream;secret")
	for _, path := range []string{"/api/status", "/api/channels"} {
		_, body := f.request("GET", path, "Authorization: Bearer admin-secret", "Connection: close")
		if strings.Contains(body, "secret") || strings.Contains(body, "hush") {
			t.Errorf("%s: got a secret in %s", path, body)
		}
	}
	if strings.Contains(f.log.String(), "hush") && strings.Contains(f.log.String(), "stream;secret") {
		t.Error("got a secret in the log")
	}
}

func TestPlaylist_ofRTSP(t *testing.T) {
	for _, tt := range []struct {
		port       uint16
		path, host string
		status     int
		want       string
	}{
		{8554, "/playlist.m3u?format=rtsp", "tv:5140", 200, "rtsp://tv:8554/One"},
		{8554, "/playlist.m3u?format=rtsp", "[::1]:5140", 200, "rtsp://[::1]:8554/One"},
		{8554, "/playlist.m3u?format=http", "tv:5140", 200, "http://tv:5140/One"},
		{0, "/playlist.m3u?format=rtsp", "tv", 404, "no RTSP listener: rtsp.listen is not set"},
		{8554, "/playlist.m3u?format=hls", "tv", 400, `expected format=http or format=rtsp, found "hls"`},
	} {
		f := newFront(t, Config{Lineup: named(t), RTSPPort: tt.port})
		response, body := f.request("GET", tt.path, "Host: "+tt.host, "Connection: close")
		if response.StatusCode != tt.status || !strings.HasSuffix(body, tt.want+"\n") {
			t.Errorf("%s with port %d: got %s, %q, want %d, %s", tt.path, tt.port, response.Status, body, tt.status, tt.want)
		}
	}
}
