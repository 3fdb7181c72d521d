package rtsp

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseURL(t *testing.T) {
	long := "rtsp://h/" + strings.Repeat("a%2F", 500)
	for _, c := range []struct {
		in, want, user, password string
	}{
		{"rtsp://192.0.2.1/ch1?a=1", "rtsp://192.0.2.1/ch1?a=1", "", ""},
		{"RTSP://192.0.2.1:554/ch1", "rtsp://192.0.2.1/ch1", "", ""},
		{"rtsp://192.0.2.1:8554", "rtsp://192.0.2.1:8554", "", ""},
		{"rtsp://h?x=1", "rtsp://h?x=1", "", ""},
		{"rtsp://h:/x", "rtsp://h/x", "", ""},
		{"rtsps://h:322/x", "rtsps://h/x", "", ""},
		{"rtsps://h:554/x", "rtsps://h:554/x", "", ""},
		{"rtsp://u:p%40%25@h/x", "rtsp://h/x", "u", "p@%"},
		{"rtsp://u:p@q@h/x@y", "rtsp://h/x@y", "u", "p@q"},
		{"rtsp://u:p@[::1]/x", "rtsp://[::1]/x", "u", "p"},
		{"rtsp://[2001:db8::1]:5554/x?y=[z]", "rtsp://[2001:db8::1]:5554/x?y=[z]", "", ""},
		{"rtsp://h/a//b%20c?q=${(b)x}?r=1", "rtsp://h/a//b%20c?q=${(b)x}?r=1", "", ""},
		{long, long, "", ""},
	} {
		u, err := ParseURL(c.in)
		if err != nil || u.String() != c.want || u.User != c.user || u.Password != c.password {
			t.Errorf("%s: got %s, user %q, password %q, error %v, want %s, %q, %q", c.in, u, u.User, u.Password, err, c.want, c.user, c.password)
		}
	}
	for _, in := range []string{
		"", "http://h/", "rtsp:/h", "rtsp://", "rtsp:///x", "rtsp://u@/x", "rtsp://h:0/", "rtsp://h:65536/", "rtsp://h:x/",
		"rtsp://[::1/x", "rtsp://[::1]x/", "rtsp://[h]/", "rtsp://h/a b", "rtsp://h/\r\nX: y", "rtsp://u%0d%0aX:p@h/", "rtsp://h/" + strings.Repeat("a", maxURL),
	} {
		if u, err := ParseURL(in); err == nil {
			t.Errorf("%q: got %s, want an error", in, u)
		}
	}
}

func TestSetupURL(t *testing.T) {
	for _, c := range []struct{ request, base, control, want string }{
		{"rtsp://h/ch", "", "", "rtsp://h/ch"},
		{"rtsp://h/ch?t=1", "rtsp://h/ch/", "*", "rtsp://h/ch?t=1"},
		{"rtsp://h/ch", "rtsp://h/ch/", "trackID=1", "rtsp://h/ch/trackID=1"},
		{"rtsp://h/ch", "rtsp://h/ch", "trackID=1", "rtsp://h/trackID=1"},
		{"rtsp://h/a/x.sdp?token=1", "rtsp://h/a/x.sdp?token=1/", "trackID=2", "rtsp://h/a/x.sdp?token=1/trackID=2"},
		{"rtsp://h/a/x.sdp", "rtsp://h/a/x.sdp?u=b/c", "trackID=2", "rtsp://h/a/trackID=2"},
		{"rtsp://h/a/x.sdp?u=b/c", "", "trackID=2", "rtsp://h/a/trackID=2"},
		{"rtsp://h/ch", "rtsp://10.0.0.1/ch/", "trackID=1", "rtsp://10.0.0.1/ch/trackID=1"},
		{"rtsp://h/ch", "rtsp://h/ch/", "rtsp://h/ch/track1", "rtsp://h/ch/track1"},
		{"rtsp://h/ch", "rtsp://h/ch/", "RTSP://i/t", "RTSP://i/t"},
		{"rtsp://h/ch", "rtsp://h/ch/", "/trackID=1", "rtsp://h/ch/trackID=1"},
		{"rtsp://h/ch", "rtsp://h/ch", "/trackID=1", "rtsp://h/ch/trackID=1"},
		{"rtsp://h/a/b", "/c/d/", "t", "rtsp://h/c/d/t"},
		{"rtsp://h/a/b", "c/", "t", "rtsp://h/a/c/t"},
		{"rtsp://h", "", "t", "rtsp://h/t"},
		{"rtsp://h?x=/y", "", "t", "rtsp://h/t"},
		{"rtsp://h/ch", "rtsp://h/ch", "?ctl=1", "rtsp://h/ch?ctl=1"},
	} {
		u, err := ParseURL(c.request)
		if err != nil {
			t.Fatal(err)
		}
		if got := setupURL(u, c.base, c.control); got != c.want {
			t.Errorf("%s, base %q, control %q: got %s, want %s", c.request, c.base, c.control, got, c.want)
		}
	}
}

func TestParseMessage(t *testing.T) {
	for _, c := range []struct {
		in     string
		want   message
		length int // 0: all of it
	}{
		{"RTSP/1.0 200 OK\r\nCSeq: 3\r\n\r\n", message{status: 200, reason: "OK", header: header{{"CSeq", "3"}}}, 0},
		{"RTSP/1.0 200\r\n\r\n", message{status: 200}, 0},
		{"RTSP/1.0 200 \r\n\r\n", message{status: 200}, 0},
		{"RTSP/1.0  454   Session  Not Found\nCSeq:  7 \n\n", message{status: 454, reason: "Session Not Found", header: header{{"CSeq", "7"}}}, 0},
		{"\r\n\r\nRTSP/1.0 200 OK\r\nContent-length: 3\r\n\r\nabc$", message{status: 200, reason: "OK", header: header{{"Content-length", "3"}}, body: []byte("abc")}, -1},
		{"RTSP/1.0 200 OK\r\nPublic: A,\r\n B\r\nno colon\r\n\r\n", message{status: 200, reason: "OK", header: header{{"Public", "A, B"}}}, 0},
		{"ANNOUNCE rtsp://h/x RTSP/1.0\r\nCSeq: 1\r\n\r\n", message{method: "ANNOUNCE", url: "rtsp://h/x", header: header{{"CSeq", "1"}}}, 0},
	} {
		got, n, err := parseMessage([]byte(c.in))
		want := len(c.in)
		if c.length < 0 {
			want--
		}
		if err != nil || n != want {
			t.Errorf("%q: got length %d, error %v, want %d", c.in, n, err, want)
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(message{}, field{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.in, diff)
		}
		for i := range want {
			if _, n, err := parseMessage([]byte(c.in[:i])); n != 0 && n != i || n == i && i > 0 && c.length == 0 && i < want-1 {
				t.Errorf("%q cut at %d: got length %d, error %v, want to wait", c.in, i, n, err)
			}
		}
	}
}

func TestParseMessage_limits(t *testing.T) {
	for in, want := range map[string]string{
		"RTSP/1.0 200 OK\r\nContent-Length: 4294967296\r\n\r\n":  "expected at most",
		"RTSP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n":          "Content-Length",
		"RTSP/1.0 200 OK\r\nContent-Length: x\r\n\r\n":           "Content-Length",
		"RTSP/2.0 200 OK\r\n\r\n":                                "RTSP/1.0",
		"HTTP/1.1 200 OK\r\n\r\n":                                "RTSP/1.0",
		"RTSP/1.0 abc\r\n\r\n":                                   "three digits",
		"RTSP/1.0 99 x\r\n\r\n":                                  "three digits",
		"RTSP/1.0\r\n\r\n":                                       "RTSP/1.0",
		"RTSP/1.0 200 OK\r\n" + strings.Repeat("a: b\r\n", 9000): "header longer",
	} {
		if _, n, err := parseMessage([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got length %d, error %v, want one with %q", in, n, err, want)
		}
	}
}

func TestParseSDP(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     description
	}{
		{"usual", plainSDP, description{control: "trackID=1", encoding: "MP2T"}},
		{"no v=, no s=, c= cut short", "c=IN\nm=video 0 RTP/AVP 33\na=control:x\n", description{control: "x", encoding: "MP2T"}},
		{"several sections", "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=control:1\nm=audio 0 RTP/AVP 33\na=control:2\n", description{control: "1", encoding: "H264"}},
		{"control of the session is not for SETUP", "v=0\na=control:*\na=range:npt=0-1234.5\nm=video 0 RTP/AVP 33\na=control:trackID=2\n", description{control: "trackID=2", encoding: "MP2T", duration: 1234500 * time.Millisecond}},
		{"no section", "v=0\na=control:rtsp://h/x\n", description{control: "rtsp://h/x"}},
		{"none in the first section", "v=0\na=control:*\nm=video 0 RTP/AVP 33\nm=video 0 RTP/AVP 33\na=control:2\n", description{encoding: "MP2T"}},
		{"hours", "a=range:npt=0:00:00-01:02:03.250\nm=video 0 udp 33\n", description{encoding: "MP2T", duration: time.Hour + 2*time.Minute + 3250*time.Millisecond}},
		{"open end", "a=range:npt=now-\nm=video 0 MP2T/RTP/TCP 33\n", description{encoding: "MP2T"}},
		{"open end, zero", "a=range:npt=0-\nm=video 0 x 33\n", description{encoding: "MP2T"}},
		{"clock", "a=range:clock=20240101T000000Z-\nm=video 0 x 33\n", description{encoding: "MP2T"}},
		{"multicast", "c=IN IP4 239.1.1.1/127\nm=video 5000/2 RTP/AVP 98\na=rtpmap:98 MP2T/90000\n", description{encoding: "MP2T", group: "239.1.1.1", port: 5000}},
	} {
		got, err := parseSDP([]byte(c.in))
		if err != nil {
			t.Errorf("%s: got error %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(description{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	for _, in := range []string{"", "<html>no</html>", "\r\n"} {
		if got, err := parseSDP([]byte(in)); err == nil {
			t.Errorf("%q: got %+v, want an error", in, got)
		}
	}
}

func TestParseTransport(t *testing.T) {
	for in, want := range map[string]transport{
		"MP2T/RTP/TCP;unicast;interleaved=0-1": {way: OverTCP, channels: [2]uint8{0, 1}},
		"MP2T/TCP;interleaved=4-5":             {way: OverTCP, channels: [2]uint8{4, 5}, raw: true},
		"RTP/AVP;unicast;interleaved=6":        {way: OverTCP, channels: [2]uint8{6, 7}},
		"RTP/AVP/TCP":                          {way: OverTCP, channels: [2]uint8{0, 1}},
		"RTP/AVP;unicast;client_port=10000-10001;server_port=6970-6971;source=\"192.0.2.1\"":                    {way: OverUDP, channels: [2]uint8{0, 1}, server: [2]uint16{6970, 6971}, source: "192.0.2.1"},
		"MP2T/UDP; unicast; server_port=6970":                                                                   {way: OverUDP, channels: [2]uint8{0, 1}, server: [2]uint16{6970, 6971}, raw: true},
		"RTP/AVP;multicast;destination=239.1.1.1;port=5000-5001;ttl=16":                                         {way: OverMulticast, channels: [2]uint8{0, 1}, group: "239.1.1.1", port: 5000},
		"MP2T/RTP/TCP;unicast;interleaved=2-3,MP2T/TCP;unicast;interleaved=0-1,RTP/AVP;unicast;client_port=1-2": {way: OverTCP, channels: [2]uint8{2, 3}},
	} {
		got, err := parseTransport(in)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(transport{})); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", in, err, diff)
		}
	}
	for _, in := range []string{"RTP/AVP/TCP;interleaved=256-257", "RTP/AVP;server_port=x", "RTP/AVP/TCP;interleaved=-1"} {
		if got, err := parseTransport(in); err == nil {
			t.Errorf("%s: got %+v, want an error", in, got)
		}
	}
}

// The answers of RFC 2617 §3.5, RFC 7616 §3.9.1 and RFC 2069 §2.4 as corrected,
// as far as a random cnonce lets them be compared.
func TestChallenge_authorize(t *testing.T) {
	c := parseChallenges([]string{`Basic realm="x"`, `Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc"`})
	got := c.authorize("Mufasa", "CircleOfLife", "GET", "/dir/index.html")
	want := `Digest username="Mufasa", realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", uri="/dir/index.html", ` +
		`response="1949323746fe6a43ef61f9606e7febea", opaque="5ccc"`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := parseChallenges([]string{`basic realm="a, b"`}).authorize("Aladdin", "open sesame", "", ""); got != "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" {
		t.Errorf("basic: got %s", got)
	}
}

func TestParseChallenges(t *testing.T) {
	for _, c := range []struct {
		in   []string
		want *challenge
	}{
		{nil, nil},
		{[]string{"Bearer"}, nil},
		{[]string{`Negotiate, Basic realm="a\"b"`}, &challenge{scheme: "basic", realm: `a"b`}},
		{[]string{`Basic realm="a", Digest realm="b",nonce=c,algorithm=MD5,stale=TRUE`}, &challenge{scheme: "digest", realm: "b", nonce: "c", stale: true}},
		{[]string{`Digest realm="a", nonce="b", algorithm=SHA-256, qop="auth,auth-int"`, `Digest realm="a", nonce="c"`}, &challenge{scheme: "digest", realm: "a", nonce: "b", sha256: true, qop: true}},
		{[]string{`Digest realm="a", nonce="b", algorithm=SHA-512`, `Basic realm="a"`}, &challenge{scheme: "basic", realm: "a"}},
		{[]string{`Digest realm="a, nonce=`}, &challenge{scheme: "digest", realm: "a, nonce="}},
	} {
		if diff := cmp.Diff(c.want, parseChallenges(c.in), cmp.AllowUnexported(challenge{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestParseSTUN(t *testing.T) {
	// RFC 5769 §2.2 and §2.3: the responses of the test vectors.
	id := stunID{0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae}
	head := append([]byte{0x01, 0x01, 0x00, 0x18, 0x21, 0x12, 0xa4, 0x42}, id[:]...)
	software := []byte{0x80, 0x22, 0x00, 0x05, 't', 'e', 's', 't', ' ', 0x20, 0x20, 0x20}
	mapped := []byte{0x00, 0x20, 0x00, 0x08, 0x00, 0x01, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43}
	whole := append(append(append([]byte{}, head...), software...), mapped...)
	if got, ok := parseSTUN(whole, id); !ok || got != netip.MustParseAddrPort("192.0.2.1:32853") {
		t.Errorf("IPv4: got %v, %t, want 192.0.2.1:32853", got, ok)
	}
	for i := range whole {
		if got, ok := parseSTUN(whole[:i], id); ok {
			t.Errorf("cut at %d: got %v", i, got)
		}
	}
	six := append(append([]byte{}, head...), 0x00, 0x20, 0x00, 0x14, 0x00, 0x02, 0xa1, 0x47,
		0x01, 0x13, 0xa9, 0xfa, 0xa5, 0xd3, 0xf1, 0x79, 0xbc, 0x25, 0xf4, 0xb5, 0xbe, 0xd2, 0xb9, 0xd9)
	if got, ok := parseSTUN(six, id); !ok || got != netip.MustParseAddrPort("[2001:db8:1234:5678:11:2233:4455:6677]:32853") {
		t.Errorf("IPv6: got %v, %t", got, ok)
	}
	whole[7]++ // cookie
	if _, ok := parseSTUN(whole, id); ok {
		t.Error("another cookie was accepted")
	}
	whole[7]--
	whole[8]++ // transaction
	if _, ok := parseSTUN(whole, id); ok {
		t.Error("another transaction was accepted")
	}
	plain := append(append([]byte{}, head...), 0x00, 0x01, 0x00, 0x08, 0x00, 0x01, 0x80, 0x55, 192, 0, 2, 1)
	plain[3] = 12
	if got, ok := parseSTUN(plain, id); !ok || got != netip.MustParseAddrPort("192.0.2.1:32853") {
		t.Errorf("MAPPED-ADDRESS: got %v, %t", got, ok)
	}
}

func TestVendorPunch(t *testing.T) {
	got := vendorPunch(netip.MustParseAddr("192.0.2.7"), 10000, 40000)
	want := append([]byte("ZXV10STB\x7f\xff\xff\xff\xc0\x00\x02\x07\x27\x10\x9c\x40"), make([]byte, 64)...)
	if !bytes.Equal(got, want) {
		t.Errorf("got  % x\nwant % x", got, want)
	}
}

func TestOffers(t *testing.T) {
	got := offers([]string{OverUDP, OverTCP}, [2]uint16{10000, 10001}, "192.0.2.7", false)
	want := []string{
		"MP2T/RTP/UDP;unicast;client_address=192.0.2.7;client_port=10000-10001;mode=PLAY",
		"MP2T/UDP;unicast;client_address=192.0.2.7;client_port=10000-10001;mode=PLAY",
		"RTP/AVP;unicast;client_address=192.0.2.7;client_port=10000-10001;mode=PLAY",
		"MP2T/RTP/TCP;unicast;interleaved=0-1",
		"MP2T/TCP;unicast;interleaved=0-1",
		"RTP/AVP/TCP;unicast;interleaved=0-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := offers([]string{OverTCP, OverUDP}, [2]uint16{}, "", false); len(got) != 3 {
		t.Errorf("without ports: got %q, want TCP alone", got)
	}
}

func FuzzCut(f *testing.F) {
	f.Add([]byte("RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 2\r\n\r\nab$\x00\x00\x02ab"), byte(0))
	f.Add([]byte("junk\r\nRTSP/1.0 200\r\n\r\n$\x02\xff\xff"), byte(2))
	f.Add([]byte("OPTIONS rtsp://h RTSP/1.0\n\n$"), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, channel byte) {
		channels := [2]uint8{channel, channel + 1}
		for rest := b; ; {
			p, n, err := cut(rest, channels)
			if err != nil || n == 0 {
				return
			}
			if n < 0 || n > len(rest) || len(p.payload) > n {
				t.Fatalf("piece of %d bytes, payload %d, out of %d", n, len(p.payload), len(rest))
			}
			rest = rest[n:]
		}
	})
}

func FuzzHeaders(f *testing.F) {
	f.Add("RTP/AVP;unicast;server_port=1-2;source=\"1.2.3.4\"", `Digest realm="a", nonce="b", qop="auth"`, "rtsp://u:p@[::1]:1/x?y", plainSDP)
	f.Fuzz(func(t *testing.T, transport, challenges, url, sdp string) {
		_, _ = parseTransport(transport)
		if c := parseChallenges([]string{challenges}); c != nil {
			if got := c.authorize("u", "p", "PLAY", "rtsp://h"); strings.ContainsAny(got, "\r\n") && !strings.ContainsAny(challenges, "\r\n") {
				t.Errorf("got a line break in %q", got)
			}
		}
		if u, err := ParseURL(url); err == nil {
			again, err := ParseURL(u.String())
			u.User, u.Password = "", ""
			if err != nil || again != u {
				t.Errorf("%q: got %+v, which reads as %+v (%v)", url, u, again, err)
			}
			_ = setupURL(u, challenges, transport)
		}
		_, _ = parseSDP([]byte(sdp))
	})
}

func FuzzParseSTUN(f *testing.F) {
	f.Add(append([]byte{1, 1, 0, 12, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 0, 0x20, 0, 8, 0, 1, 1, 2, 3, 4, 5, 6))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseSTUN(b, stunID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	})
}
