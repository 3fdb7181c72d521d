package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// testConfig is a server on a free port of this machine alone, which joins on
// the loopback interface and does not wait for pictures.
func testConfig(t *testing.T) serveConfig {
	t.Helper()
	cfg := defaultConfig()
	cfg.listen = []string{"127.0.0.1:0"}
	cfg.iface = loopback(t)
	cfg.startWait = 100 * time.Millisecond
	return cfg
}

// loopback returns the name of the loopback interface.
func loopback(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, dev := range all {
		if dev.Flags&net.FlagLoopback != 0 {
			return dev.Name
		}
	}
	t.Skip("no loopback interface")
	return ""
}

func openTestServer(t *testing.T, cfg serveConfig, log *slog.Logger) *server {
	t.Helper()
	s, err := openServer(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

const (
	tsPacket       = 188
	packetsASecond = 3500 // 500 datagrams of 7 packets, about 5 Mbit/s
)

// play sends numbered TS packets to a group on the loopback interface until the
// test ends, and returns the group's part of a URL.
func play(t *testing.T) string {
	t.Helper()
	probe, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := probe.LocalAddr().(*net.UDPAddr).Port // free a moment ago, and the group is ours
	probe.Close()
	group := &net.UDPAddr{IP: net.IPv4(239, 255, 77, 1), Port: port}
	conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, group)
	if err != nil {
		t.Skip("no multicast on the loopback interface: ", err)
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	t.Cleanup(func() { close(stop); <-done; conn.Close() })
	go func() {
		defer close(done)
		tick := time.NewTicker(7 * time.Second / packetsASecond)
		defer tick.Stop()
		var datagram [7 * tsPacket]byte
		for number := uint32(0); ; {
			for p := datagram[:]; len(p) > 0; p = p[tsPacket:] {
				copy(p, []byte{0x47, 0x01, 0x00, 0x10 | byte(number&15)}) // PID 256, payload only
				binary.BigEndian.PutUint32(p[4:], number)
				number++
			}
			conn.Write(datagram[:])
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return group.String()
}

// A watcher reads a stream and checks that no packet is missing.
type watcher struct {
	body  io.ReadCloser
	in    *bufio.Reader
	begun bool
	next  uint32
}

func watch(t *testing.T, addr, group string) *watcher {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/udp/" + group)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(resp.Body)
		t.Fatalf("status: got %s (%s), want 200", resp.Status, reason)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return &watcher{body: resp.Body, in: bufio.NewReader(resp.Body)}
}

// read reads packets; io.EOF is the end of the stream.
func (w *watcher) read(packets int) error {
	var p [tsPacket]byte
	for range packets {
		if _, err := io.ReadFull(w.in, p[:]); err != nil {
			return err
		}
		number := binary.BigEndian.Uint32(p[4:])
		if p[0] != 0x47 || w.begun && number != w.next {
			return fmt.Errorf("packet: got %d (sync %#x), want %d", number, p[0], w.next)
		}
		w.begun, w.next = true, number+1
	}
	return nil
}

func TestStartServer_servesUntilTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	addr, wait, err := (&server{log: slog.New(slog.DiscardHandler)}).start(ctx, testConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t, addr, play(t))
	if err := w.read(1000); err != nil {
		t.Fatal(err)
	}

	start := time.Now()
	cancel()
	if err := wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("stop: took %v, want at most 2s", d)
	}
	for err = nil; err == nil; {
		err = w.read(1)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("stream: got %v, want its end", err)
	}
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Errorf("%s: still open", addr)
	}
}

func TestStartServer_portInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	cfg := testConfig(t)
	cfg.listen = []string{"127.0.0.1:0", ln.Addr().String()}
	cfg.origin["listen"] = "zapcast.toml:7"
	_, _, err = (&server{log: slog.New(slog.DiscardHandler)}).start(t.Context(), cfg)
	want := fmt.Sprintf("zapcast.toml:7: listen: expected an address that is free, found %q: ", ln.Addr())
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

// A wildcard and an address of the machine exclude each other on one port; a
// reload may still go from one to the other.
func TestReconfigure_samePortOtherAddress(t *testing.T) {
	cfg := testConfig(t)
	s := openTestServer(t, cfg, slog.New(slog.DiscardHandler))
	_, port, _ := net.SplitHostPort(s.listeners[endpoint{"listen", "127.0.0.1:0"}].Addr().String())

	for _, address := range []string{"127.0.0.1:" + port, ":" + port, "127.0.0.1:" + port} {
		next := cfg
		next.listen = []string{address}
		if err := s.reconfigure(next); err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		conn.Close()
	}

	// An address that cannot be had leaves the old one open.
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	next := cfg
	next.listen = []string{":" + port, used.Addr().String()}
	if err := s.reconfigure(next); err == nil {
		t.Fatal("no error for a port in use")
	}
	if got, want := s.cfg.listen[0], "127.0.0.1:"+port; got != want {
		t.Errorf("configuration: got %s, want still %s", got, want)
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatalf("old address: %v", err)
	}
	conn.Close()
}

// footprint is what a process holds once it is at rest.
type footprint struct {
	goroutines, descriptors int
	heap                    uint64
}

func measure(t *testing.T) footprint {
	t.Helper()
	runtime.GC()
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	f := footprint{goroutines: runtime.NumGoroutine(), heap: mem.HeapAlloc}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		f.descriptors = len(fds)
	}
	return f
}

// flat waits until the process is back at what it held before, or fails.
func flat(t *testing.T, before footprint) {
	t.Helper()
	const heapSlack = 2 << 20 // caches of net/http, timers, the test's own
	var now footprint
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		now = measure(t)
		if now.goroutines <= before.goroutines && now.descriptors <= before.descriptors && now.heap <= before.heap+heapSlack {
			return
		}
	}
	t.Errorf("at rest: got %+v, want at most %+v", now, before)
}

func TestReload_manyWhileStreaming(t *testing.T) {
	dir := t.TempDir()
	opts := options{file: filepath.Join(dir, "zapcast.toml")}
	write := func(round int) {
		t.Helper()
		doc := fmt.Sprintf("listen = [\"127.0.0.1:0\", %q]\ninterface = %q\nmax-clients = %d\n[viewer]\nstart-wait = \"100ms\"\nlag = \"%ds\"\n",
			filepath.Join(dir, fmt.Sprintf("%d.sock", round%2)), loopback(t), 10+round%7, 5+round%5)
		if round%10 == 9 {
			doc += "nonsense = 1\n"
		}
		if err := os.WriteFile(opts.file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	cfg, err := opts.load()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := openTestServer(t, cfg, log)
	w := watch(t, s.listeners[endpoint{"listen", "127.0.0.1:0"}].Addr().String(), play(t))
	if err := w.read(100); err != nil {
		t.Fatal(err)
	}

	reloads := 500
	if testing.Short() {
		reloads = 50
	}
	var before footprint
	for round := range reloads {
		write(round)
		if got, want := opts.reload(s) == nil, round%10 != 9; got != want {
			t.Fatalf("reload %d: got %v, want %v", round, got, want)
		}
		if err := w.read(1); err != nil {
			t.Fatalf("reload %d: %v", round, err)
		}
		if round == 19 {
			before = measure(t)
		}
	}
	if err := w.read(100); err != nil {
		t.Fatal(err)
	}
	flat(t, before)
}

func TestServer_refusedRequestsLeaveNothing(t *testing.T) {
	cfg := testConfig(t)
	socket := filepath.Join(t.TempDir(), "http.sock") // no ports that stay in TIME_WAIT
	cfg.listen = []string{socket}
	cfg.iface = "nosuchif0"
	openTestServer(t, cfg, slog.New(slog.DiscardHandler))

	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) },
	}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	refused := []struct {
		path   string
		status int
	}{
		{"/no/such/page", http.StatusNotFound},
		{"/rtp/", http.StatusBadRequest},
		{"/rtp/192.0.2.1:5000", http.StatusBadRequest},
		{"/rtp/239.255.77.2:5000?r2h-ifname=nosuchif1", http.StatusBadRequest},
		{"/udp/239.255.77.2:5000", http.StatusServiceUnavailable}, // the interface is missing
	}
	ask := func(n int) {
		t.Helper()
		for i := range n {
			r := refused[i%len(refused)]
			resp, err := client.Get("http://zapcast" + r.path)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != r.status {
				t.Fatalf("%s: got %s (%s), want %d", r.path, resp.Status, body, r.status)
			}
			if r.status == http.StatusServiceUnavailable && !strings.Contains(string(body), "nosuchif0") {
				t.Fatalf("%s: reason %q does not name the interface", r.path, body)
			}
		}
	}
	requests := 10_000
	if testing.Short() {
		requests = 500
	}
	ask(100)
	before := measure(t)
	ask(requests)
	flat(t, before)
}
