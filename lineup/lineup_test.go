package lineup

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// await waits until f holds.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 5 s", what)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLineup_configurationAndFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tv.m3u")
	write(t, file, "#EXTM3U\n#EXTINF:-1,One\nrtp://239.1.1.1:1\n")
	cfg := Config{
		Channels:  []Entry{{Name: "Own", Sources: []Source{{URL: "udp://239.1.1.9:1"}}, Origin: "zapcast.toml:3"}},
		Playlists: []Playlist{{Source: file}},
	}
	l := Open(cfg)
	defer l.Close()
	if got, want := show(l.Table()), "Own rtp://239.1.1.9:1\nOne rtp://239.1.1.1:1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	write(t, file, "<html>")
	l.Reconfigure(cfg)
	if got, want := show(l.Table()), "Own rtp://239.1.1.9:1\nOne rtp://239.1.1.1:1\n"; got != want {
		t.Errorf("after a bad file: got %q, want %q", got, want)
	}
	p := l.Playlists()
	if len(p) != 1 || p[0].Err == nil || !strings.Contains(p[0].Err.Error(), `found "<html>"`) || p[0].Channels != 1 || p[0].Read.IsZero() {
		t.Errorf("status of a bad file: got %+v", p)
	}

	write(t, file, "#EXTM3U\n#EXTINF:-1,Two\nrtp://239.1.1.2:1\n")
	l.Reconfigure(cfg)
	if got, want := show(l.Table()), "Own rtp://239.1.1.9:1\nTwo rtp://239.1.1.2:1\n"; got != want {
		t.Errorf("after a good one: got %q, want %q", got, want)
	}
}

func TestLineup_fileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tv.m3u")
	l := Open(Config{Playlists: []Playlist{{Source: file, Refresh: 10 * time.Millisecond}}})
	defer l.Close()
	if p := l.Playlists(); p[0].Err == nil || !strings.Contains(p[0].Err.Error(), "expected a readable file: no such file") {
		t.Errorf("got %+v, want an error about the file", p)
	}
	write(t, file, "#EXTINF:-1,One\nrtp://239.1.1.1:1\n")
	await(t, "the file that came later", func() bool { return len(l.Table().Channels) == 1 })
}

// A portal serves a playlist.
type portal struct {
	down        atomic.Bool
	text        atomic.Pointer[string]
	asked, same atomic.Int64
}

func (p *portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked.Add(1)
	if p.down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	text := *p.text.Load()
	tag := fmt.Sprintf("%q", fmt.Sprint(len(text)))
	if r.Header.Get("If-None-Match") == tag {
		p.same.Add(1)
		w.WriteHeader(304)
		return
	}
	w.Header().Set("ETag", tag)
	w.Write([]byte(text))
}

func TestLineup_server(t *testing.T) {
	one, two := "#EXTINF:-1,One\nrtp://239.1.1.1:1\n", "#EXTINF:-1,Second\nrtp://239.1.1.2:1\n"
	p := new(portal)
	p.text.Store(&one)
	server := httptest.NewServer(p)
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "state")
	address := strings.Replace(server.URL, "http://", "http://u:hush@", 1)
	cfg := Config{Playlists: []Playlist{{Source: address, Refresh: 5 * time.Millisecond}}, Dir: dir}

	l := Open(cfg)
	await(t, "the first list", func() bool { return show(l.Table()) == "One rtp://239.1.1.1:1\n" })
	await(t, "unchanged lists", func() bool { return p.same.Load() > 2 })
	p.text.Store(&two)
	await(t, "another list", func() bool { return show(l.Table()) == "Second rtp://239.1.1.2:1\n" })
	if s := l.Playlists()[0]; s.Err != nil || s.Copy || strings.Contains(s.Name, "hush") {
		t.Errorf("status: got %+v", s)
	}
	p.down.Store(true)
	await(t, "the error", func() bool { return l.Playlists()[0].Err != nil })
	if s := l.Playlists()[0]; s.Err.Error() != "expected the status 200, found 503" || s.Channels != 1 {
		t.Errorf("status while the server is down: got %+v", s)
	}
	l.Close()

	// Another run, while the server is down.
	l = Open(cfg)
	defer l.Close()
	if got := show(l.Table()); got != "Second rtp://239.1.1.2:1\n" {
		t.Errorf("from the copy: got %q", got)
	}
	await(t, "the error of the second run", func() bool { return l.Playlists()[0].Err != nil })
	if s := l.Playlists()[0]; !s.Copy || !s.Read.IsZero() {
		t.Errorf("status of the copy: got %+v", s)
	}
	p.down.Store(false)
	await(t, "the server again", func() bool { s := l.Playlists()[0]; return s.Err == nil && !s.Copy })
}

func TestLineup_serverSendsTooMuch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 12 << 10 {
			if _, err := w.Write(make([]byte, 1024)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	l := Open(Config{Playlists: []Playlist{{Source: server.URL}}})
	defer l.Close()
	await(t, "the error", func() bool { return l.Playlists()[0].Err != nil })
	if err := l.Playlists()[0].Err; !strings.Contains(err.Error(), "expected at most 10485760 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestSources(t *testing.T) {
	for address, ok := range map[string]bool{
		"rtp://239.1.1.1:1": true, "udp://@239.1.1.1:1": true, "rtsp://h/1": true, "RTSPS://h/1": true, "/rtsps/h/1": true, "http://h/1.ts": true, "https://h/": true,
		"": false, "239.1.1.1:1": false, "rtp://": false, "mms://h": false, "http://h/1.m3u8": false, "http:///x": false,
	} {
		if got := Sources(address); (len(got) == 1) != ok {
			t.Errorf("%q: got %v, want accepted: %v", address, got, ok)
		}
	}
}

func TestSource_default(t *testing.T) {
	for in, want := range map[string]string{
		"rtp://239.1.1.1:1":                "rtp://239.1.1.1:1?fcc=192.0.2.1%3A8027",
		"rtp://239.1.1.1:1?a=b":            "rtp://239.1.1.1:1?a=b&fcc=192.0.2.1%3A8027",
		"rtp://239.1.1.1:1?fcc=10.0.0.1:1": "rtp://239.1.1.1:1?fcc=10.0.0.1:1",
	} {
		s := Source{URL: in}
		s.Default("other", "")
		if s.Default("fcc", "192.0.2.1:8027"); s.URL != want {
			t.Errorf("%s: got %s, want %s", in, s.URL, want)
		}
	}
}
