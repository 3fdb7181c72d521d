package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zapcast/mpegts"
)

func TestDemoPage(t *testing.T) {
	for _, tt := range []struct {
		server        string
		choice        bool
		want, without string
	}{
		{"[::]:5140", true, "    zapcast 1   http://127.0.0.1:5140/rtp/239.255.77.1:5001\n", "taken"},
		{"0.0.0.0:5143", true, "Port 5140 is taken, so this is port 5143.\n", ":5140"},
		{"0.0.0.0:5143", true, "    zapcast 3   http://127.0.0.1:5143/udp/239.255.77.3:5004\n", ":5001"},
		{"0.0.0.0:8080", false, "curl -m 10 -o ten-seconds.ts http://127.0.0.1:8080/rtp/239.255.77.1:7941\n", "taken"},
		{"[::]:5140", false, "    http://127.0.0.1:5140/rtp/239.255.77.2:5001?fcc=127.0.0.1:8027\n", "77.3:5001?fcc"},
		{"[::1]:5140", false, "ffplay http://[::1]:5140/rtp/239.255.77.1:5001\n", "http://127.0.0.1"},
	} {
		page := demoPage(netip.MustParseAddrPort(tt.server), netip.MustParseAddrPort("127.0.0.1:8027"), tt.choice)
		if !strings.Contains(page, tt.want) || strings.Contains(page, tt.without) {
			t.Errorf("server %s: want %q and not %q in:\n%s", tt.server, tt.want, tt.without, page)
		}
		if n := strings.Count(page, "\n"); n > 24 {
			t.Errorf("server %s: the page has %d lines, want few", tt.server, n)
		}
	}
}

func TestGroupPort(t *testing.T) {
	for server, want := range map[uint16]uint16{5140: 5001, 5141: 5002, 8080: 7941, 80: 65477, 1023: demoGroupPort, 65535: 65396} {
		if got := groupPort(server); got != want {
			t.Errorf("server on port %d: groups on port %d, want %d", server, got, want)
		}
	}
}

func TestStartDemoServer_takesTheNextPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cfg := defaultConfig()
	quiet := slog.New(slog.DiscardHandler)
	at, wait, err := startDemoServer(ctx, &server{log: quiet}, cfg, []string{taken.Addr().String(), "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if got := at.String(); got == taken.Addr().String() || !at.Addr().IsLoopback() {
		t.Errorf("listens on %s", got)
	}
	stop()
	if err := wait(); err != nil {
		t.Error(err)
	}
	if _, _, err := startDemoServer(ctx, &server{log: quiet}, cfg, []string{taken.Addr().String()}); err == nil {
		t.Error("a server listens on a port that is taken")
	}
}

// TestDemo_realPlayers has real programs take every channel for longer than a
// pass of its clip: no word of complaint, and whole packets.
func TestDemo_realPlayers(t *testing.T) {
	installed(t, "ffmpeg", "curl")
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stderr bytes.Buffer
	ended := make(chan error, 1)
	out, in := io.Pipe()
	go func() {
		err := runDemo(ctx, []string{"--listen", "127.0.0.1:0"}, in, &stderr)
		in.CloseWithError(err)
		ended <- err
	}()
	page := make([]byte, 4096) // it is one write
	n, err := out.Read(page)
	if err != nil {
		t.Fatal(err)
	}
	urls := regexp.MustCompile(`zapcast \d +(http://\S+)`).FindAllStringSubmatch(string(page[:n]), -1)
	if len(urls) != len(demoChannels) {
		t.Fatalf("found %d channels, want %d, in:\n%s", len(urls), len(demoChannels), page[:n])
	}

	// After four seconds of one channel the server of bursts has had a beginning
	// of another, however late it joined.
	first, err := http.Get(urls[2][1])
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(4*time.Second, func() { first.Body.Close() })
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, first.Body)
	// By chance a channel's own random-access point, one each 1.6 s, comes before
	// the burst: not with both of them.
	var starts []string
	for _, url := range regexp.MustCompile(`http://\S+\?fcc=\S+`).FindAllString(string(page[:n]), -1) {
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		starts = append(starts, r.Header.Get("Zapcast-Start"))
	}
	if !slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(s, "burst; ") }) {
		t.Errorf("got starts %q, want one with a burst", starts)
	}
	var players sync.WaitGroup
	for _, url := range urls {
		path := filepath.Join(t.TempDir(), "x.ts")
		players.Go(func() { watchWithFFmpeg(t, url[1]) })
		players.Go(func() { takeWithCurl(t, url[1], path) })
	}
	players.Wait()

	stopped := time.Now()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the demo ended with %v", err)
	}
	if took := time.Since(stopped); took > 2*time.Second {
		t.Errorf("the demo took %v to end, want less than 2 s", took)
	}
	if stderr.Len() > 0 {
		t.Errorf("the demo complained:\n%s", &stderr)
	}
}

// demoSeconds is longer than a clip.
const demoSeconds = "8"

func watchWithFFmpeg(t *testing.T, url string) {
	out, err := exec.Command("ffmpeg", "-nostdin", "-v", "error", "-t", demoSeconds, "-i", url, "-f", "null", "-").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("ffmpeg %s: %v\n%s", url, err, out)
	}
}

func takeWithCurl(t *testing.T, url, path string) {
	const timeIsOver = 28 // curl's exit status, the one to be expected
	err := exec.Command("curl", "-sS", "-m", demoSeconds, "-o", path, url).Run()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != timeIsOver {
		t.Errorf("curl %s: %v, want exit status %d", url, err, timeIsOver)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("curl %s: %v", url, err)
		return
	}
	if len(got) < 20_000 {
		t.Errorf("curl %s: %d bytes in %s s, want more", url, len(got), demoSeconds)
	}
	var continuity mpegts.Continuity
	for at := 0; at+mpegts.PacketSize <= len(got); at += mpegts.PacketSize {
		p := mpegts.Packet(got[at : at+mpegts.PacketSize])
		if p[0] != mpegts.SyncByte || !continuity.Check(p) {
			t.Errorf("curl %s: packet %d begins with %x and does not follow", url, at/mpegts.PacketSize, p[:4])
			return
		}
	}
}
