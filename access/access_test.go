package access

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	home  = netip.MustParseAddr("192.0.2.7")
)

const odd = `a;b&c$d%e f+g`

// guard returns a guard whose clock the test moves.
func guard(cfg Config) (*Guard, *time.Time) {
	g := NewGuard(cfg)
	now := start
	g.now = func() time.Time { return now }
	return g, &now
}

func tokens() []Token {
	return []Token{
		{Name: "tv", Secret: "stream-secret", Rights: []Right{Stream}},
		{Name: "late", Secret: "expired-secret", Rights: []Right{Stream}, Expires: start.Add(-time.Second)},
		{Name: "wall", Secret: "view-secret", Rights: []Right{View, Stream}},
		{Name: "root", Secret: "admin-secret", Rights: []Right{Admin}},
	}
}

func TestRead(t *testing.T) {
	tests := []struct {
		name, target string
		header       http.Header
		want         []string // among the secrets
		clean        string
	}{
		{"none", "/rtp/239.1.1.1:1?fcc=x$HD", nil, nil, "/rtp/239.1.1.1:1?fcc=x$HD"},
		{"query", "/One?r2h-token=secret", nil, []string{"secret"}, "/One"},
		{"among others", "/rtsp/h/1?a=b&r2h-token=secret&token=theirs", nil, []string{"secret"}, "/rtsp/h/1?a=b&token=theirs"},
		{"before a label", "/One?a=b&r2h-token=secret$HD", nil, []string{"secret"}, "/One?a=b$HD"},
		{"odd, escaped", "/One?r2h-token=a%3Bb%26c%24d%25e%20f%2Bg", nil, []string{odd}, "/One"},
		{"odd, as a form", "/One?r2h-token=a%3Bb%26c%24d%25e+f%2Bg", nil, []string{odd}, "/One"},
		{"dollar as it is", "/One?r2h-token=a$d", nil, []string{"a$d", "a"}, "/One$d"},
		{"cookie", "/One", http.Header{"Cookie": {strings.Repeat("x=y; ", 800) + "r2h-token=a%3Bb%26c%24d%25e%20f%2Bg; z=1"}}, []string{odd}, "/One"},
		{"second cookie line", "/One", http.Header{"Cookie": {"a=b", `r2h-token="secret"`}}, []string{"secret"}, "/One"},
		{"bearer", "/One", http.Header{"Authorization": {"bearer " + odd}}, []string{odd}, "/One"},
		{"basic", "/One", http.Header{"Authorization": {"Basic YTpi"}}, nil, "/One"},
		{"agent", "/One", http.Header{"User-Agent": {"Player/1 R2HTOKEN/secret Linux"}}, []string{"secret"}, "/One"},
		{"odd agent", "/One", http.Header{"User-Agent": {"R2HTOKEN/" + odd}}, []string{odd}, "/One"},
		{"cookie, no token set", "/One", http.Header{"Cookie": {";;=;r2h-token"}, "User-Agent": {"x"}}, nil, "/One"},
	}
	for _, tt := range tests {
		c, clean := Read(tt.target, tt.header)
		if clean != tt.clean {
			t.Errorf("%s: got target %q, want %q", tt.name, clean, tt.clean)
		}
		for _, want := range tt.want {
			found := false
			for _, s := range c.Secrets {
				found = found || s == want
			}
			if !found {
				t.Errorf("%s: got secrets %q, want %q among them", tt.name, c.Secrets, want)
			}
		}
		if len(tt.want) == 0 && len(c.Secrets) > 0 {
			t.Errorf("%s: got secrets %q, want none", tt.name, c.Secrets)
		}
	}
}

// code is what a check comes to: 0 is allowed.
func code(_ *Token, err error) int {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return 0
}

func TestGuard_rights(t *testing.T) {
	tests := []struct {
		secret string
		want   [3]int // stream, view, admin
	}{
		{"", [3]int{401, 401, 401}},
		{"stream-secret", [3]int{0, 403, 403}},
		{"expired-secret", [3]int{401, 403, 403}},
		{"view-secret", [3]int{0, 0, 403}},
		{"admin-secret", [3]int{0, 0, 0}},
		{"Admin-secret", [3]int{401, 401, 401}},
	}
	for _, tt := range tests {
		for right, want := range tt.want {
			g, _ := guard(Config{Tokens: tokens()})
			r := Request{Client: home, Local: true}
			if tt.secret != "" {
				r.Secrets = []string{tt.secret}
			}
			if tt.secret == "expired-secret" && right > 0 {
				want = 401
			}
			if got := code(g.Check(r, Right(right))); got != want {
				t.Errorf("%q for %v: got %d, want %d", tt.secret, Right(right), got, want)
			}
		}
	}
}

func TestGuard_withoutTokens(t *testing.T) {
	g, _ := guard(Config{})
	for _, tt := range []struct {
		local bool
		right Right
		want  int
	}{{false, Stream, 0}, {false, View, 0}, {false, Admin, 403}, {true, Admin, 0}} {
		r := Request{Client: home, Local: tt.local, Credentials: Credentials{Secrets: []string{"whatever"}}}
		if got := code(g.Check(r, tt.right)); got != tt.want {
			t.Errorf("local %v, %v: got %d, want %d", tt.local, tt.right, got, tt.want)
		}
	}
	// A token for something else changes nothing about Admin.
	g, _ = guard(Config{Tokens: tokens()[:3]})
	if got := code(g.Check(Request{Client: home}, Admin)); got != 403 {
		t.Errorf("admin from elsewhere without a token for it: got %d, want 403", got)
	}
}

func TestGuard_wrongTokens(t *testing.T) {
	g, now := guard(Config{Tokens: tokens()})
	try := func(client, secret string) int {
		return code(g.Check(Request{Client: netip.MustParseAddr(client), Credentials: Credentials{Secrets: []string{secret}}}, Stream))
	}
	for range 3 * maxWrong {
		if got := try("192.0.2.7", "the same old"); got != 401 {
			t.Fatalf("the same again: got %d, want 401", got)
		}
	}
	for i := range maxWrong - 1 {
		if got := try("192.0.2.7", "guess-"+string(rune('a'+i))); got != 401 {
			t.Fatalf("guess %d: got %d, want 401", i, got)
		}
	}
	if got := try("192.0.2.7", "stream-secret"); got != 429 {
		t.Errorf("the right one after all those: got %d, want 429", got)
	}
	if got := try("192.0.2.8", "stream-secret"); got != 0 {
		t.Errorf("another address: got %d, want 0", got)
	}
	*now = now.Add(wrongWindow)
	if got := try("192.0.2.7", "stream-secret"); got != 0 {
		t.Errorf("later: got %d, want 0", got)
	}
	for i := range maxWrong {
		try("2001:db8::"+string(rune('1'+i%9)), "guess-"+string(rune('a'+i)))
	}
	if got := try("2001:db8::ffff", "stream-secret"); got != 429 {
		t.Errorf("the same IPv6 network: got %d, want 429", got)
	}
}

func TestGuard_manyOffenders(t *testing.T) {
	g, _ := guard(Config{Tokens: tokens()})
	addr := netip.MustParseAddr("10.0.0.1")
	for range 2 * maxOffenders {
		g.Check(Request{Client: addr, Credentials: Credentials{Secrets: []string{"wrong"}}}, Stream)
		addr = addr.Next()
	}
	if n := len(g.offenders); n > maxOffenders {
		t.Errorf("got %d addresses remembered, want at most %d", n, maxOffenders)
	}
}

func TestLink(t *testing.T) {
	const key = "0123456789abcdef"
	g, now := guard(Config{Tokens: tokens(), LinkKey: key})
	check := func(target string) int {
		c, clean := Read(target, nil)
		return code(g.Check(Request{Client: home, Credentials: c, Target: clean}, Stream))
	}
	sum := Sign(key, "/%E5%A4%AE/One", start.Add(time.Hour))
	other := Sign("another key here", "/央/One", start.Add(time.Hour))
	for _, tt := range []struct {
		target string
		want   int
	}{
		{"/央/One?zapcast-link=" + sum, 0},
		{"/%E5%A4%AE/One/?zapcast-link=" + sum + "$HD", 0},
		{"/央/Two?zapcast-link=" + sum, 401},
		{"/央/One?fcc=192.0.2.1:1&zapcast-link=" + sum, 401},
		{"/央/One?zapcast-link=" + sum[:len(sum)-1], 401},
		{"/央/One?zapcast-link=" + other, 401},
		{"/央/One?zapcast-link=.", 401},
		{"/央/Two?r2h-token=stream-secret&zapcast-link=" + sum, 0},
	} {
		if got := check(tt.target); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.target, got, tt.want)
		}
	}
	c, _ := Read("/央/One?zapcast-link="+sum, nil)
	if got := code(g.Check(Request{Client: home, Credentials: c, Target: "/央/One"}, View)); got != 401 {
		t.Errorf("a link for the status: got %d, want 401", got)
	}
	*now = start.Add(time.Hour)
	if got := check("/央/One?zapcast-link=" + sum); got != 401 {
		t.Errorf("after its time: got %d, want 401", got)
	}
	g, _ = guard(Config{Tokens: tokens()})
	if got := check("/央/One?zapcast-link=" + Sign("", "/央/One", start.Add(2*time.Hour))); got != 401 {
		t.Errorf("signed with no key: got %d, want 401", got)
	}
}

func TestLocal(t *testing.T) {
	for _, tt := range []struct {
		client    string
		forwarded bool
		host      string
		want      bool
	}{
		{"127.0.0.1", false, "localhost", true},
		{"127.0.0.1", false, "127.0.0.1", true},
		{"::1", false, "::1", true},
		{"127.0.0.1", false, "evil.example", false},
		{"127.0.0.1", true, "localhost", false},
		{"192.0.2.1", false, "localhost", false},
		{"", false, "anything", true},
	} {
		var client netip.Addr
		if tt.client != "" {
			client = netip.MustParseAddr(tt.client)
		}
		if got := Local(client, tt.forwarded, tt.host); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"nothing to hide":                            "nothing to hide",
		"get rtsp://u:hush@h/1?a=b: refused":         "get rtsp://u:xxxxx@h/1?a=b: refused",
		"rtsp://u:p@ss@[::1]:554/1":                  "rtsp://u:xxxxx@[::1]:554/1",
		"/One?r2h-token=hush&a=b":                    "/One?r2h-token=xxxxx&a=b",
		"/One?a=b&zapcast-link=hush$HD":              "/One?a=b&zapcast-link=xxxxx$HD",
		"http://h/1?AuthToken=hush&PASSWORD=hush":    "http://h/1?AuthToken=xxxxx&PASSWORD=xxxxx",
		"Player/1 R2HTOKEN/hush Linux":               "Player/1 R2HTOKEN/xxxxx Linux",
		"rtp://10.0.0.1:5000@239.1.1.1:5000":         "rtp://10.0.0.1:5000@239.1.1.1:5000",
		"rtp://239.1.1.1:5000?fcc=192.0.2.1:8027":    "rtp://239.1.1.1:5000?fcc=192.0.2.1:8027",
		"http://h:80/a and http://u:hush@h2/b?key=k": "http://h:80/a and http://u:xxxxx@h2/b?key=xxxxx",
	} {
		if diff := cmp.Diff(want, Redact(in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

// FuzzRead reads anything. What it leaves of the target never holds a token.
func FuzzRead(f *testing.F) {
	f.Add("/One?a=b&r2h-token=x$HD", "a=b; r2h-token=y", "R2HTOKEN/z w")
	f.Add("/?zapcast-link=1.2&&r2h-token", ";;", "")
	f.Fuzz(func(t *testing.T, target, cookie, agent string) {
		c, clean := Read(target, http.Header{"Cookie": {cookie}, "User-Agent": {agent}})
		if len(c.Secrets) > maxCredentials {
			t.Errorf("got %d secrets", len(c.Secrets))
		}
		again, same := Read(clean, nil)
		if len(again.Secrets) > 0 || again.Link != "" || same != clean {
			t.Errorf("%q: got %q, which still holds %q", target, clean, again.Secrets)
		}
	})
}
