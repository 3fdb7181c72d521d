package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"zapcast/mpegts"
)

// installed skips the test where a program is missing, or fails it where
// ZAPCAST_TEST_INTEROP=1.
func installed(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("ZAPCAST_TEST_INTEROP") == "1" {
				t.Fatal(err)
			}
			t.Skipf("needs %s: %v", name, err)
		}
	}
}

// serveOnLoopback starts a server that joins on the loopback interface.
func serveOnLoopback(t *testing.T, config string) *service {
	t.Helper()
	return serve(t, here, "127.0.0.1", config, "--interface", loopback(t))
}

// playOnLoopback plays a file to a group of this test and returns the group.
func playOnLoopback(t *testing.T, file, flags string) (group string) {
	t.Helper()
	probe, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	group = fmt.Sprintf("239.255.77.9:%d", probe.LocalAddr().(*net.UDPAddr).Port) // free a moment ago
	probe.Close()
	args := []string{"send", file, "--loop", "--interface", loopback(t), "--ttl", "0", "--to", "rtp://" + group}
	runProgram(t, here, append(args, strings.Fields(flags)...)...)
	return group
}

// Players that join a channel while another watches it start at once, with a
// picture, and have no word of complaint.
func TestInterop_joinWatchedChannel(t *testing.T) {
	installed(t, "ffmpeg", "ffprobe")
	t.Parallel()
	demo := runProgram(t, here, "demo", "--listen", "127.0.0.1:0")
	demo.says(&demo.stdout, `Ctrl-C`)
	var players sync.WaitGroup
	defer players.Wait()
	for _, m := range regexp.MustCompile(`zapcast \d +(http://\S+)`).FindAllStringSubmatch(demo.stdout.String(), -1) {
		url := m[1]
		players.Go(func() {
			play := func(seconds string) {
				out, err := exec.Command("ffmpeg", "-nostdin", "-v", "error", "-t", seconds, "-i", url, "-f", "null", "-").CombinedOutput()
				if err != nil || len(out) > 0 {
					t.Errorf("ffmpeg %s: %v\n%s", url, err, out)
				}
			}
			players.Go(func() { play("5") })
			time.Sleep(time.Second)
			players.Go(func() { play("3") })
			out, err := exec.Command("ffprobe", "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", url).CombinedOutput()
			if got := strings.Join(strings.Fields(string(out)), " "); err != nil || !strings.Contains(got, "h264") || !strings.Contains(got, "aac") {
				t.Errorf("ffprobe %s: got %s and %v, want h264 and aac", url, got, err)
			}
		})
	}
}

// What is lost on the way spoils pictures, not the stream.
func TestInterop_goesOnThroughLosses(t *testing.T) {
	installed(t, "ffmpeg")
	t.Parallel()
	s := serveOnLoopback(t, "")
	group := playOnLoopback(t, filepath.Join("clips", "one.ts"), "--drop 3% --seed 7")
	out, err := exec.Command("ffmpeg", "-nostdin", "-v", "fatal", "-progress", "pipe:1", "-t", "5", "-i", "http://"+s.addr+"/rtp/"+group, "-f", "null", "-").CombinedOutput()
	all := regexp.MustCompile(`frame=(\d+)`).FindAllStringSubmatch(string(out), -1)
	if err != nil || len(all) == 0 {
		t.Fatalf("ffmpeg: %v\n%s", err, out)
	}
	const most = 100 // of 125
	if frames, _ := strconv.Atoi(all[len(all)-1][1]); frames < most {
		t.Errorf("got %d pictures in 5 s, want at least %d", frames, most)
	}
	if c := s.channel(); c.Lost == 0 {
		t.Errorf("status: got %+v, want losses", c)
	}
}

func TestInterop_curl(t *testing.T) {
	installed(t, "curl")
	t.Parallel()
	s := serveOnLoopback(t, "")
	group := playOnLoopback(t, numberedFile(t, 1), "--rate 4M")
	url := "http://" + s.addr + "/rtp/" + group
	curl := func(args ...string) (head, body string, exit int) {
		t.Helper()
		dump := filepath.Join(t.TempDir(), "head")
		cmd := exec.Command("curl", append([]string{"-sS", "-D", dump}, args...)...)
		out, err := cmd.Output()
		if fault := (*exec.ExitError)(nil); err != nil && !errors.As(err, &fault) {
			t.Fatal(err)
		}
		b, err := os.ReadFile(dump)
		if err != nil {
			t.Fatal(err)
		}
		return string(b), string(out), cmd.ProcessState.ExitCode()
	}
	const timeIsOver = 28 // curl's exit status

	head, body, exit := curl("-I", url)
	if !strings.HasPrefix(head, "HTTP/1.1 200") || exit != 0 || body != head {
		t.Errorf("HEAD: got %q, exit status %d, want 200 and nothing behind it", head, exit)
	}
	if got := s.status().Channels; len(got) > 0 {
		t.Errorf("HEAD joined %v", got)
	}
	for _, args := range [][]string{
		{"--http1.0"},
		{"--http1.1"},
		{"-r", "0-99"},
		{"-r", "1000-"},
		{"-H", "Icy-MetaData: 1", "-A", "VLC/3.0.20 LibVLC/3.0.20"},
	} {
		head, body, exit := curl(append(args, "-m", "1", url)...)
		what := strings.Join(args, " ")
		if !regexp.MustCompile(`^HTTP/1\.[01] 200 `).MatchString(head) || exit != timeIsOver {
			t.Errorf("%s: got %q, exit status %d, want 200 and a stream without an end", what, head, exit)
		}
		for _, never := range []string{"Transfer-Encoding", "Content-Length", "Content-Range", "Content-Encoding"} {
			if strings.Contains(strings.ToLower(head), strings.ToLower(never)) {
				t.Errorf("%s: got %q, want no %s", what, head, never)
			}
		}
		if !strings.Contains(strings.ToLower(head), "content-type: video/mp2t") {
			t.Errorf("%s: got %q, want MPEG-TS", what, head)
		}
		if len(body) < 100_000 || !mpegts.Whole([]byte(body[:len(body)/tsPacket*tsPacket])) {
			t.Errorf("%s: got %d bytes, want a second of whole packets", what, len(body))
		}
	}
}

// dialSmall connects with a small receive buffer, as set-top boxes have.
func dialSmall(t *testing.T, addr string) net.Conn {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	return c
}

// Three bad viewers: one reads at a third of the rate, one stops to read, one
// resets his connection. The good one beside them gets every packet.
func TestInterop_badViewersHurtThemselvesOnly(t *testing.T) {
	t.Parallel()
	s := serveOnLoopback(t, "[viewer]\nlag = \"1s\"\nlag-bytes = \"1MiB\"\n")
	const rate = 32e6 / 8 // bytes a second
	group := playOnLoopback(t, numberedFile(t, 1), "--rate 32M")
	path := "/rtp/" + group
	good := s.begin(here, path, 1)
	good.more(t, 100)
	ask := func() (net.Conn, *bufio.Reader) {
		c := dialSmall(t, s.addr)
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, s.addr)
		b := bufio.NewReader(c)
		resp, err := http.ReadResponse(b, nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("got %v, %v", resp, err)
		}
		return c, b
	}

	stops, b := ask()
	if _, err := b.Peek(tsPacket); err != nil {
		t.Fatal(err)
	}
	vanishes, _ := ask()
	if err := vanishes.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	vanishes.Close()
	slow, b := ask()
	r := &reading{mark: 1}
	start := time.Now()
	// The kernel's send buffer, a few MB, is read before the first skip shows.
	enough := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.breaks) >= 2 || time.Since(start) > patience
	}
	if err := r.read(&pacedReader{r: b, rate: rate / 3, start: start, enough: enough}); !errors.Is(err, io.EOF) {
		t.Fatalf("the slow viewer: %v", err)
	}

	skips := map[string]int64{}
	page := s.status()
	for _, v := range page.Viewers {
		skips[v.Address] = v.Skips
	}
	if len(page.Viewers) != 3 {
		t.Errorf("got viewers %+v, want three: the one with the reset is gone", page.Viewers)
	}
	if n := skips[slow.LocalAddr().String()]; len(r.breaks) == 0 || int64(len(r.breaks)) > n {
		t.Errorf("the slow viewer: got %d breaks and %d skips, want no break without a skip", len(r.breaks), n)
	}
	for _, at := range r.breaks {
		if !at.announced || at.to%numberedGOP != 0 {
			t.Errorf("the slow viewer: got break %+v, want tables, an announcement and a random-access point", at)
		}
	}
	if n := skips[stops.LocalAddr().String()]; n == 0 {
		t.Error("the one who stopped: got no skips")
	}
	good.whole(t, "the good viewer")
	good.more(t, 100)
}

// A pacedReader reads at a rate until it has enough.
type pacedReader struct {
	r      io.Reader
	rate   float64 // bytes a second
	start  time.Time
	read   int
	enough func() bool
}

func (p *pacedReader) Read(b []byte) (int, error) {
	due := p.start.Add(time.Duration(float64(p.read) / p.rate * float64(time.Second)))
	time.Sleep(time.Until(due))
	if p.enough() {
		return 0, io.EOF
	}
	n, err := p.r.Read(b[:min(len(b), 4096)])
	p.read += n
	return n, err
}
