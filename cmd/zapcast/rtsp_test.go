package main

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// An rtspServer streams numbered TS packets, in RTP, to everybody who plays. It
// notes what it was asked.
type rtspServer struct {
	t     *testing.T
	ln    net.Listener
	wg    sync.WaitGroup
	paced bool // live: about 5 Mbit/s; else as fast as it goes
	count int  // datagrams, then the end; 0: no end

	mu    sync.Mutex
	asked []string // request lines, and Range behind those of PLAY
	conns []net.Conn
}

func newRTSPServer(t *testing.T, paced bool, count int) *rtspServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rtspServer{t: t, ln: ln, paced: paced, count: count}
	s.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

func (s *rtspServer) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		var lines []string
		for len(lines) == 0 || lines[len(lines)-1] != "" {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			lines = append(lines, strings.TrimRight(line, "\r\n"))
		}
		cseq, ranged := "", ""
		for _, line := range lines {
			if v, ok := strings.CutPrefix(line, "CSeq: "); ok {
				cseq = v
			}
			if strings.HasPrefix(line, "Range: ") {
				ranged = " " + line
			}
		}
		s.mu.Lock()
		s.asked = append(s.asked, strings.TrimSuffix(lines[0], " RTSP/1.0")+ranged)
		s.mu.Unlock()
		status, fields, body := "200 OK", "", ""
		switch method, rest, _ := strings.Cut(lines[0], " "); method {
		case "DESCRIBE":
			body = "v=0\r\na=range:npt=0-3725.25\r\nm=video 0 RTP/AVP 33\r\n"
			fields = fmt.Sprintf("Content-Length: %d\r\n", len(body))
			switch {
			case strings.Contains(rest, "missing"):
				status, fields, body = "404 No such channel here", "", ""
			case strings.Contains(rest, "gone"):
				status, fields, body = "454 Session Not Found", "", ""
			case strings.Contains(rest, "page"):
				body = "<html>"
				fields = "Content-Length: 6\r\n"
			case strings.Contains(rest, "locked"):
				status, fields, body = "401 Unauthorized", "WWW-Authenticate: Digest realm=\"x\", nonce=\"y\"\r\n", ""
			case strings.Contains(rest, "moved"):
				_, to, _ := strings.Cut(strings.Fields(rest)[0], "?to=")
				status, fields, body = "302 Moved", "Location: "+to+"\r\n", ""
			case strings.Contains(rest, "silent"):
				continue
			}
		case "PLAY":
			fields = "Scale: 1.0\r\nRange: npt=30-\r\n"
		case "SETUP":
			fields = "Session: 1\r\nTransport: MP2T/RTP/TCP;interleaved=0-1\r\n"
		}
		fmt.Fprintf(conn, "RTSP/1.0 %s\r\nCSeq: %s\r\n%s\r\n%s", status, cseq, fields, body)
		if strings.HasPrefix(lines[0], "PLAY ") && !strings.Contains(lines[0], "empty") {
			s.wg.Go(func() { s.stream(conn) })
		}
		if strings.HasPrefix(lines[0], "TEARDOWN ") {
			return
		}
	}
}

func (s *rtspServer) stream(conn net.Conn) {
	var b [4 + 12 + 7*tsPacket]byte
	copy(b[:], []byte{'$', 0, 0, 0, 0x80, 33})
	binary.BigEndian.PutUint16(b[2:], 12+7*tsPacket)
	number := uint32(0)
	for n := 0; n < s.count || s.count == 0; n++ {
		binary.BigEndian.PutUint16(b[6:], uint16(n))
		for p := b[16:]; len(p) > 0; p = p[tsPacket:] {
			copy(p, []byte{0x47, 0x01, 0x00, 0x10 | byte(number&15)})
			binary.BigEndian.PutUint32(p[4:], number)
			number++
		}
		if _, err := conn.Write(b[:]); err != nil {
			return
		}
		if s.paced {
			time.Sleep(2 * time.Millisecond)
		}
	}
	conn.Close()
}

func (s *rtspServer) requests(method string) (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.asked {
		if strings.HasPrefix(line, method+" ") {
			lines = append(lines, strings.Replace(line, s.ln.Addr().String(), "SERVER", 1))
		}
	}
	return lines
}

// rtspProgram is the program, allowed to ask servers on this machine.
func rtspProgram(t *testing.T, change func(*serveConfig)) (base string) {
	t.Helper()
	cfg := testConfig(t)
	cfg.rtspAllow = []string{"127.0.0.0/8"}
	cfg.rtspTimeout = time.Second
	cfg.linger = 0
	if change != nil {
		change(&cfg)
	}
	s := openTestServer(t, cfg, slog.New(slog.DiscardHandler))
	return "http://" + s.listeners[endpoint{"listen", cfg.listen[0]}].Addr().String() + "/rtsp/"
}

func request(t *testing.T, url string) *http.Response {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func watchRTSP(t *testing.T, url string) *watcher {
	t.Helper()
	resp := request(t, url)
	if resp.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(resp.Body)
		t.Fatalf("status: got %s (%s), want 200", resp.Status, reason)
	}
	if got := resp.Header.Get("R2H-Upstream-Protocol"); got != "rtsp" {
		t.Errorf("R2H-Upstream-Protocol: got %q, want rtsp", got)
	}
	for name, want := range map[string]string{
		"R2H-Upstream-Transport": "tcp-interleaved", "R2H-Upstream-Payload": "mp2t-rtp",
		"R2H-Playback-Scale": "1.0", "R2H-Playback-Range": "npt=30-", "R2H-Media-Duration": "3725.250",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	return &watcher{body: resp.Body, in: bufio.NewReader(resp.Body)}
}

func holdsAtLast(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

func TestRTSP_liveIsShared(t *testing.T) {
	up := newRTSPServer(t, true, 0)
	base := rtspProgram(t, nil)
	var watchers []*watcher
	for range 3 {
		w := watchRTSP(t, base+up.ln.Addr().String()+"/live?a=1?b=2$label")
		watchers = append(watchers, w)
		if err := w.read(700); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := up.requests("SETUP"), []string{"SETUP rtsp://SERVER/live?a=1?b=2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, w := range watchers {
		if err := w.read(700); err != nil {
			t.Error(err)
		}
		w.body.Close()
	}
	holdsAtLast(t, "a TEARDOWN once nobody watches", func() bool { return len(up.requests("TEARDOWN")) == 1 })
}

// Signed URLs are long, and come back unchanged.
func TestRTSP_longURL(t *testing.T) {
	up := newRTSPServer(t, true, 0)
	base := rtspProgram(t, nil)
	server := up.ln.Addr().String()
	query := "/live?AuthInfo="
	query += strings.Repeat("%2Ba", (2040-len("/rtsp/"+server+query))/4)
	if err := watchRTSP(t, base+server+query).read(70); err != nil {
		t.Fatal(err)
	}
	if got, want := up.requests("PLAY"), []string{"PLAY rtsp://SERVER" + query}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRTSP_shiftedIsPrivate(t *testing.T) {
	up := newRTSPServer(t, true, 0)
	base := rtspProgram(t, nil)
	ago := time.Now().Add(-10 * time.Minute).UTC()
	url := base + up.ln.Addr().String() + "/live?a=1&playseek=" + ago.Format("20060102150405") + "&r2h-seek-mode=range&r2h-token=x"
	for range 2 {
		if err := watchRTSP(t, url).read(70); err != nil {
			t.Fatal(err)
		}
	}
	want := "PLAY rtsp://SERVER/live?a=1 Range: clock=" + ago.Format("20060102T150405Z") + "-"
	if got := up.requests("PLAY"); !slices.Equal(got, []string{want, want}) {
		t.Errorf("got %q, want %q twice", got, want)
	}
}

// A server may redirect to HTTP, but not to where it has no business.
func TestRTSP_redirectToHTTP(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
			return
		}
		var packet [tsPacket]byte
		for number := uint32(0); r.Context().Err() == nil; number++ {
			copy(packet[:], []byte{0x47, 0x01, 0x00, 0x10 | byte(number&15)})
			binary.BigEndian.PutUint32(packet[4:], number)
			_, _ = w.Write(packet[:])
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond / 2)
		}
	}))
	defer web.Close()
	up := newRTSPServer(t, true, 0)
	base := rtspProgram(t, func(c *serveConfig) { c.rtspAllow = []string{"127.0.0.1/32"} }) + up.ln.Addr().String() + "/moved?to="
	resp := request(t, base+web.URL+"/ch1")
	w := &watcher{body: resp.Body, in: bufio.NewReader(resp.Body)}
	if err := w.read(7); resp.StatusCode != 200 || err != nil {
		t.Errorf("got %s, error %v", resp.Status, err)
	}
	resp.Body.Close()
	away := request(t, base+web.URL+"/away")
	if reason, _ := io.ReadAll(away.Body); away.StatusCode != 503 || !strings.Contains(string(reason), "127.0.0.2:1 is not within the networks") {
		t.Errorf("got %s %s, want 503 and that 127.0.0.2 is not allowed", away.Status, reason)
	}
}

// What comes from an RTSP server goes out over RTSP too, to a viewer whose
// User-Agent says his zone.
func TestRTSP_inAndOut(t *testing.T) {
	up := newRTSPServer(t, true, 0)
	cfg := testConfig(t)
	cfg.rtspAllow = []string{"127.0.0.0/8"}
	cfg.rtspListen = []string{"127.0.0.1:0"}
	s := openTestServer(t, cfg, slog.New(slog.DiscardHandler))
	out := s.listeners[endpoint{"rtsp.listen", "127.0.0.1:0"}].Addr().String()
	conn, err := net.Dial("tcp", out)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(conn)
	session := ""
	for i, method := range []string{"DESCRIBE", "SETUP", "PLAY"} {
		fmt.Fprintf(conn, "%s rtsp://%s/rtsp/%s/live?playseek=20240101120000- RTSP/1.0\r\nCSeq: %d\r\nUser-Agent: box TZ/UTC+8\r\n%s", method, out, up.ln.Addr(), i+1, session)
		fmt.Fprint(conn, "Transport: RTP/AVP/TCP;interleaved=0-1\r\n\r\n")
		status, length := "", 0
		for line := "-"; line != ""; {
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatalf("%s: %v", method, err)
			}
			line = strings.TrimRight(line, "\r\n")
			status = cmp.Or(status, line)
			if id, ok := strings.CutPrefix(line, "Session: "); ok {
				session = "Session: " + id + "\r\n"
			}
			_, _ = fmt.Sscanf(line, "Content-Length: %d", &length)
		}
		if status != "RTSP/1.0 200 OK" {
			t.Fatalf("%s: got %s", method, status)
		}
		_, _ = in.Discard(length)
	}
	frame := make([]byte, 4+12+7*tsPacket)
	if _, err := io.ReadFull(in, frame); err != nil || frame[0] != '$' || frame[16] != 0x47 {
		t.Errorf("got % x, error %v, want a frame of TS", frame[:20], err)
	}
	if got, want := up.requests("PLAY"), []string{"PLAY rtsp://SERVER/live?playseek=20240101040000-"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A channel of the configuration or of a playlist whose source is an RTSP URL
// opens it, and plays another moment for who asks for one.
func TestRTSP_channelsWithNames(t *testing.T) {
	up := newRTSPServer(t, true, 0)
	server := "rtsp://" + up.ln.Addr().String()
	list := filepath.Join(t.TempDir(), "list.m3u")
	text := "#EXTM3U\n#EXTINF:-1,Listed\n" + server + "/listed?a=1?b=2\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	base := rtspProgram(t, func(c *serveConfig) {
		c.channels = []channelConfig{
			{name: "One", sources: []string{server + "/one?x=y"}, origin: "test:1"},
			{name: "Two", sources: []string{"rtp://239.1.1.1:5000", server + "/two?playseek={utc}"}, origin: "test:1"},
		}
		c.playlists = []playlistConfig{{source: list, refresh: time.Hour, origin: "test:1"}}
	})
	base = strings.TrimSuffix(base, "rtsp/")
	holdsAtLast(t, "the playlist is read", func() bool {
		return slices.Contains(strings.Split(bodyOf(t, base+"playlist.m3u"), "\n"), base+"Listed")
	})
	for _, path := range []string{"One", "Listed", "One?playseek=1704096000-&other=1", "Two?playseek=1704096000-"} {
		if err := watchRTSP(t, base+path).read(70); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	want := []string{"/one?x=y", "/listed?a=1?b=2", "/one?x=y&playseek=1704096000-", "/two?playseek=1704096000-"}
	for i := range want {
		want[i] = "PLAY rtsp://SERVER" + want[i]
	}
	if got := up.requests("PLAY"); !slices.Equal(got, want) {
		t.Errorf("asked of the server: got %q, want %q", got, want)
	}
}

func bodyOf(t *testing.T, url string) string {
	t.Helper()
	body, err := io.ReadAll(request(t, url).Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// The viewer of a recording gets all of it, at his pace, and then its end.
func TestRTSP_recordingAtTheViewersPace(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprint("plain ", plain), func(t *testing.T) {
			const datagrams = 16000 // 21 MB: more than all buffers on the way, and than a live viewer may lag
			up := newRTSPServer(t, false, datagrams)
			base := rtspProgram(t, func(c *serveConfig) {
				c.plain, c.lag, c.lagBytes = plain, time.Second, mib
			})
			w := watchRTSP(t, base+up.ln.Addr().String()+"/vod?playseek=20240101120000-20240101130000")
			if err := w.read(7); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1500 * time.Millisecond) // longer than the lag, and all buffers are full
			if err := w.read(7*datagrams - 7); err != nil {
				t.Fatalf("after %d packets: %v", w.next, err)
			}
			if n, err := io.Copy(io.Discard, w.in); n != 0 || err != nil {
				t.Errorf("after the end: got %d bytes, %v, want none", n, err)
			}
		})
	}
}

func TestRTSP_refusals(t *testing.T) {
	up := newRTSPServer(t, true, 0)
	base := rtspProgram(t, nil)
	server := up.ln.Addr().String()
	for path, want := range map[string]string{
		server + "/missing":                      "404 answered 404 No such channel here",
		server + "/locked":                       "502 credentials are needed",
		"u:p@" + server + "/locked":              "502 were refused",
		server + "/gone":                         "503 answered 454 Session Not Found",
		server + "/page":                         "503 bad SDP: expected an SDP in the answer to DESCRIBE, found \"<html>\"",
		server + "/silent":                       "504 no answer to DESCRIBE within 1s",
		server + "/empty":                        "504 no media within 1s of PLAY: playing over tcp-interleaved from " + server + ", nothing received",
		"127.0.0.1:1/x":                          "503 refuses the connection",
		"192.0.2.1/x":                            "403 not within the networks",
		"":                                       "400 expected a host",
		"h:99999/":                               "400 expected a port from 1 to 65535",
		server + "/x?r2h-ifname=missing0":        "400 unknown interface",
		server + "/missing?r2h-duration=1":       "404 No such channel here",
		server + "/x?playseek={utc}-{utcend}":    "400 expected a moment in the place of \"{utc}\", which the player has not filled in",
		server + "/x?a=%24%7B(b)yyyyMMdd%7CUTC}": "400 in the place of \"${(b)yyyyMMdd|UTC}\"",
		server + "/" + strings.Repeat("a", 2048): "414 expected at most",
	} {
		resp := request(t, base+path)
		body, _ := io.ReadAll(resp.Body)
		code, reason, _ := strings.Cut(want, " ")
		if !strings.HasPrefix(resp.Status, code) || !strings.Contains(string(body), reason) {
			t.Errorf("%.60s: got %s %q, want %s", path, resp.Status, body, want)
		}
	}
	if got := up.requests("TEARDOWN"); len(got) != 1 {
		t.Errorf("got %q, want one TEARDOWN, for the session without media", got)
	}
}

func TestRTSP_descriptionAlone(t *testing.T) {
	up := newRTSPServer(t, true, 0)
	base := rtspProgram(t, nil)
	resp := request(t, base+up.ln.Addr().String()+"/vod?r2h-duration=1")
	body, _ := io.ReadAll(resp.Body)
	if string(body) != "{\"duration\": \"3725.250\"}\n" || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s %q", resp.Header.Get("Content-Type"), body)
	}
	resp, err := http.Head(base + up.ln.Addr().String() + "/vod")
	if err != nil || resp.StatusCode != 200 || resp.Header.Get("R2H-Media-Duration") != "3725.250" || resp.Header.Get("Content-Type") != "video/mp2t" {
		t.Errorf("HEAD: got %v, error %v", resp, err)
	}
	resp, err = http.Head(base + up.ln.Addr().String() + "/missing")
	if err != nil || resp.StatusCode != 404 {
		t.Errorf("HEAD of what is missing: got %v, error %v", resp, err)
	}
	if got := up.requests("SETUP"); len(got) > 0 {
		t.Errorf("got %q, want no session", got)
	}
}
