package httpout

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"
)

func TestCheckRequestLine_truncated(t *testing.T) {
	const whole = "GET /rtp/239.1.1.1%3A5000?x=%zz HTTP/1.1\r\nHost: test\r\n\r\n"
	for n := 1; n <= len(whole); n++ {
		if refused := checkRequestLine([]byte(whole[:n])); refused != nil {
			t.Errorf("%q: refused (%s), want it to go on", whole[:n], refused.Reason)
		}
	}
}

// What net/http takes for a request is not refused before it gets there.
func FuzzCheckRequestLine(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD /%41%zz HTTP/1.0\r\n\r\n", "M-SEARCH * HTTP/1.1\r\nHost: a\r\n\r\n", "\x16\x03\x01",
		"CONNECT a:1 HTTP/1.1\r\n\r\n", "GET http://a/%2f?%% HTTP/1.1\r\n\r\n", "GET\r\n", "\r\nGET / HTTP/1.0\r\n\r\n", " ", "POST",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		refused := checkRequestLine(b)
		if refused == nil {
			return
		}
		if refused.Code != 400 || refused.Reason == "" || strings.ContainsAny(refused.Reason, "\r\n") {
			t.Errorf("%q: refused with %+v, want 400 and one line", b, refused)
		}
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		if method := request.Method; method == strings.ToUpper(method) && strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == "" && len(method) <= 11 {
			t.Errorf("%q: refused (%s), but it is a request", b, refused.Reason)
		}
	})
}
