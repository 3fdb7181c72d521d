package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"zapcast/internal/testlog"
)

// A within calls f where a test takes place: in a network namespace, or here.
// Sockets that f opens and processes that it starts stay there.
type within func(f func())

func here(f func()) { f() }

// A process is the program, run as a user runs it.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr testlog.Log
	ended          chan struct{}
	err            error // why it ended
}

// runProgram starts the program. The end of the test interrupts it, and is not happy
// with one that ends badly.
func runProgram(t *testing.T, in within, args ...string) *process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	p.cmd.Args[0] = "zapcast" // see TestMain
	p.cmd.Env = append(os.Environ(), "JOURNAL_STREAM=", "NOTIFY_SOCKET=", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	in(func() { err = p.cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("zapcast %s: %v\n%s", strings.Join(args, " "), err, p.stderr.String())
		}
		if strings.Contains(p.stderr.String(), "DATA RACE") {
			t.Errorf("zapcast %s:\n%s", strings.Join(args, " "), p.stderr.String())
		}
	})
	return p
}

// stop interrupts the program and waits for its end.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended by itself
	return p.wait()
}

func (p *process) wait() error {
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("killed: did not end within %s", patience)
	}
	return p.err
}

// says waits until the output matches and returns the groups of the match.
func (p *process) says(out *testlog.Log, pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	var match []string
	eventually(p.t, func() bool { match = re.FindStringSubmatch(out.String()); return match != nil }, "output matches "+pattern)
	return match
}

func eventually(t *testing.T, is func() bool, what string) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// A service is zapcast serve.
type service struct {
	*process
	in   within
	addr string // where to reach it, in there
}

// serve starts a service with a configuration of these lines on a free port of
// host; empty: everywhere.
func serve(t *testing.T, in within, host, config string, args ...string) *service {
	t.Helper()
	file := filepath.Join(t.TempDir(), "zapcast.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"serve", "--config", file, "--listen", net.JoinHostPort(host, "0")}, args...)
	s := &service{process: runProgram(t, in, args...), in: in}
	s.addr = strings.Replace(s.says(&s.stderr, `msg=listening listen="?([^" ]+)`)[1], "[::]", "127.0.0.1", 1)
	return s
}

// client returns a client whose connections start in.
func client(t *testing.T, in within) *http.Client {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (c net.Conn, err error) {
			in(func() { c, err = new(net.Dialer).DialContext(ctx, network, addr) })
			return c, err
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// fetch gets a whole page.
func (s *service) fetch(path string) (status int, body string) {
	s.t.Helper()
	c := client(s.t, s.in)
	c.Timeout = patience
	resp, err := c.Get("http://" + s.addr + path)
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Error(err)
	}
	return resp.StatusCode, string(b)
}

// What tests read of /api/status.
type (
	statusPage struct {
		Channels []statusChannel
		Viewers  []statusViewer
		Warnings []string
	}
	statusChannel struct {
		ID, Interface, Local, Sender, State           string
		Viewers                                       int
		Packets, Lost, Reordered, Duplicates, Foreign int64
		Resyncs, Malformed, BadTS, Overflow, Skips    int64
		Warnings                                      []string

		Losses struct {
			Unrepaired  int64
			Row, Column int64
			ReedSolomon int64 `json:"reed_solomon"`
		}
		Repair struct {
			Code, Where, State string
			Useless            bool
		}
	}
	statusViewer struct {
		Address, Start string
		Bytes, Skips   int64
		Blocked        bool

		FirstRandomAccess *float64 `json:"first_random_access_ms"`
	}
)

func (s *service) status() (page statusPage) {
	s.t.Helper()
	code, body := s.fetch("/api/status")
	if err := json.Unmarshal([]byte(body), &page); err != nil || code != http.StatusOK {
		s.t.Errorf("status: got %d and %v, want JSON: %s", code, err, body)
	}
	return page
}

// channel waits for the one channel that there is.
func (s *service) channel() statusChannel {
	s.t.Helper()
	var page statusPage
	eventually(s.t, func() bool { page = s.status(); return len(page.Channels) == 1 }, "one channel")
	return page.Channels[0]
}
