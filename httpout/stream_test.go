package httpout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/ipv4"

	"zapcast/fanout"
	"zapcast/ingest"
	"zapcast/tune"
)

func TestStream_header(t *testing.T) {
	f := newFront(t, Config{})
	f.feed("239.1.1.1:5000")
	get := f.watch("/rtp/239.1.1.1:5000", "Range: bytes=0-", "User-Agent: test/1")
	head, body := f.request("HEAD", "/rtp/239.1.1.1:5000")
	want := http.Header{
		"Server": {"zapcast"}, "Content-Type": {"video/mp2t"}, "Cache-Control": {"no-cache, no-store"},
		"R2h-Upstream-Protocol": {"multicast"},
	}
	for _, response := range []*http.Response{head, get.Response} {
		if response.Header.Get("Date") == "" {
			t.Errorf("no Date in %v", response.Header)
		}
		response.Header.Del("Date")
		if !response.Close {
			t.Error("no Connection: close")
		}
	}
	if diff := cmp.Diff(want, head.Header); diff != "" || head.StatusCode != 200 || body != "" {
		t.Errorf("HEAD: %s, body %q, header (-want +got):\n%s", head.Status, body, diff)
	}
	want["R2h-Upstream-Payload"] = []string{"mp2t-rtp"}
	if diff := cmp.Diff(want, get.Header); diff != "" || get.ContentLength != -1 || get.TransferEncoding != nil {
		t.Errorf("GET: %s, length %d, coding %v, header (-want +got):\n%s", get.Status, get.ContentLength, get.TransferEncoding, diff)
	}
	if get.ProtoMinor != 1 {
		t.Errorf("protocol: got %s, want HTTP/1.1", get.Proto)
	}
}

func TestStream_oldClient(t *testing.T) {
	f := newFront(t, Config{})
	f.feed("239.1.1.1:5000")
	c := f.dial()
	io.WriteString(c, "GET /udp/239.1.1.1:5000/ HTTP/1.0\r\n\r\n")
	b := make([]byte, 4000)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(b), "HTTP/1.0 200 OK\r\n") {
		t.Errorf("got %.100q, want HTTP/1.0 200", b)
	}
	head, body, _ := strings.Cut(string(b), "\r\n\r\n")
	if body[0] != 0x47 || body[188] != 0x47 {
		t.Errorf("no TS after the header %q: % x…", head, body[:4])
	}
}

func TestStream_headJoinsNothing(t *testing.T) {
	f := newFront(t, Config{MaxClients: 1})
	for range 3 {
		if response, _ := f.request("HEAD", "/rtp/239.1.1.1:5000?fcc=127.0.0.1:9"); response.StatusCode != 200 {
			t.Errorf("got %s, want 200", response.Status)
		}
	}
	if events := f.network.Events(); len(events) != 0 {
		t.Errorf("events: got %v, want none", events)
	}
}

// Every spelling leads to the same membership; each viewer keeps his own query.
func TestStream_spellingsShareAChannel(t *testing.T) {
	f := newFront(t, Config{})
	f.feed("239.1.1.1:5000")
	targets := []string{
		"/rtp/239.1.1.1:5000", "/udp/239.1.1.1:5000", "/udp/239.1.1.1%5000", "/udp/239.1.1.1~5000", "/udp/239.1.1.1+5000",
		"/udp/239.1.1.1-5000", "/udp/239.1.1.1^5000", "/udp/239.1.1.1%3A5000", "/rtp/news.example:5000/?a=1$News",
		"/rtp/239.1.1.1:5000?fcc=127.0.0.1:9&fcc-type=huawei&fec=0", "http://test/rtp/239.1.1.1:5000", "/rtp/239.1.1.1:5000//x",
	}
	for _, target := range targets {
		f.watch(target)
	}
	if diff := cmp.Diff([]string{"join 239.1.1.1:5000"}, f.network.Events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	var urls []string
	for _, v := range f.snapshot(time.Now()).Viewers {
		urls = append(urls, v.URL)
	}
	if diff := cmp.Diff(targets, urls); diff != "" {
		t.Errorf("URLs of the viewers (-want +got):\n%s", diff)
	}
}

func TestStream_sourceAndInterface(t *testing.T) {
	f := newFront(t, Config{})
	f.tuner.Reconfigure(tune.Config{Interface: "lo"})
	f.network.Refuse("239.1.1.2:5000%lo", ingest.ErrInterface)
	f.network.Refuse("239.1.1.2:5000%iptv0", ingest.ErrInterface)
	for _, spec := range []string{"198.51.100.7@239.1.1.1:5000%lo", "[ff15::1]:1234%iptv0"} {
		f.feed(spec)
	}
	f.watch("/rtp/198.51.100.7:1@239.1.1.1:5000")
	f.watch("/rtp/[ff15::1]/?r2h-ifname=iptv0")

	// A missing interface is the request's fault only if the request named it.
	if response, body := f.request("GET", "/rtp/239.1.1.2:5000"); response.StatusCode != 503 || !strings.Contains(body, "no such interface") {
		t.Errorf("configured interface missing: got %s %q, want 503", response.Status, body)
	}
	if response, body := f.request("GET", "/rtp/239.1.1.2:5000?ifname=iptv0"); response.StatusCode != 400 || !strings.Contains(body, "no such interface") {
		t.Errorf("requested interface missing: got %s %q, want 400", response.Status, body)
	}
	failures := f.snapshot(time.Now()).Failures
	if len(failures) != 2 || failures[0].Channel != "239.1.1.2:5000%iptv0" || !strings.Contains(failures[1].Reason, "no such interface") {
		t.Errorf("failures: got %+v, want the newer first", failures)
	}
	f.tuner.Reconfigure(tune.Config{})
	f.feed("239.1.1.3:5000")
	f.watch("/rtp/239.1.1.3:5000")
}

func TestStream_limit(t *testing.T) {
	f := newFront(t, Config{MaxClients: 2})
	f.feed("239.1.1.1:5000")
	const target = "/rtp/239.1.1.1:5000"
	first := f.watch(target, "User-Agent: a")
	f.watch(target, "User-Agent: b")

	response, body := f.request("GET", target, "User-Agent: c")
	if response.StatusCode != 503 || response.Header.Get("Retry-After") != "5" || !strings.Contains(body, "all 2 places") {
		t.Errorf("third viewer: got %s, Retry-After %q, %q", response.Status, response.Header.Get("Retry-After"), body)
	}
	// One who zaps may overlap with himself, once.
	f.watch(target, "User-Agent: a")
	if response, _ := f.request("GET", target, "User-Agent: a"); response.StatusCode != 503 {
		t.Errorf("second overlap: got %s, want 503", response.Status)
	}
	first.conn.Close()
	f.eventually("the place is free", func() bool { return f.slots.count() == 2 })
	f.watch(target, "User-Agent: a")
	if got := f.counters.limit.Load(); got != 2 {
		t.Errorf("counted %d refusals at the limit, want 2", got)
	}
	f.Reconfigure(Config{MaxClients: 4})
	f.watch(target, "User-Agent: c")
}

func TestStream_failuresFreeTheirPlace(t *testing.T) {
	f := newFront(t, Config{MaxClients: 1})
	for range 2 {
		response, body := f.request("GET", "/rtp/239.9.9.9:5000")
		if response.StatusCode != 503 || !strings.Contains(body, "239.9.9.9:5000") || !strings.Contains(body, "test0") || !strings.Contains(body, "nothing") {
			t.Errorf("silent group: got %s %q, want 503 naming group, interface and what was seen", response.Status, body)
		}
	}
	f.network.Refuse("239.9.9.8:5000", fmt.Errorf("no route\nto the group"))
	if response, body := f.request("GET", "/rtp/239.9.9.8:5000"); response.StatusCode != 503 || !strings.HasSuffix(body, "no route; to the group\n") {
		t.Errorf("join refused: got %s %q, want 503 and one line", response.Status, body)
	}
	if got := f.counters.noStream.Load(); got != 3 {
		t.Errorf("counted %d failed streams, want 3", got)
	}
}

// A viewer who leaves while he waits gives up his place at once.
func TestStream_goneWhileWaiting(t *testing.T) {
	f := newFront(t, Config{MaxClients: 1})
	c := f.dial()
	io.WriteString(c, "GET /rtp/239.9.9.9:5000 HTTP/1.1\r\nHost: test\r\n\r\n")
	f.eventually("the group is joined", func() bool { return len(f.network.Joined()) == 1 })
	c.Close()
	f.eventually("the viewer is counted as gone", func() bool { return f.counters.gone.Load() == 1 })
	f.feed("239.1.1.1:5000")
	f.watch("/rtp/239.1.1.1:5000")
}

func TestStream_pipelinedRequestIsIgnored(t *testing.T) {
	f := newFront(t, Config{})
	f.feed("239.1.1.1:5000")
	c := f.dial()
	const request = "GET /rtp/239.1.1.1:5000 HTTP/1.1\r\nHost: test\r\n\r\n"
	io.WriteString(c, request+request+"GET /nothing HTTP/1.1\r\n\r\n")
	b := make([]byte, 100_000)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "HTTP/1.1 "); n != 1 {
		t.Errorf("%d answers in the stream, want 1", n)
	}
}

func TestStream_unixSocket(t *testing.T) {
	f := newFront(t, Config{MaxPendingPerAddress: 1})
	f.feed("239.1.1.1:5000")
	path := f.listen(t, "unix", filepath.Join(t.TempDir(), "s"))
	for range 3 { // no limit per address here
		f.dialAt("unix", path, "")
	}
	c := f.dialAt("unix", path, "")
	io.WriteString(c, "GET /rtp/239.1.1.1:5000 HTTP/1.1\r\nHost: test\r\n\r\n")
	b := make([]byte, 2000)
	if _, err := io.ReadFull(c, b); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 200") {
		t.Fatalf("got %.80q, %v, want a stream", b, err)
	}
	if viewers := f.snapshot(time.Now()).Viewers; len(viewers) != 1 || viewers[0].Address != "unix" {
		t.Errorf("viewers: got %+v, want one at a unix socket", viewers)
	}
}

func TestServer_shutdownAnswersTheWaiting(t *testing.T) {
	f := newFront(t, Config{})
	f.feed("239.1.1.1:5000")
	running := f.watch("/rtp/239.1.1.1:5000")
	idle, waiting := f.dial(), f.dial()
	io.WriteString(waiting, "GET /rtp/239.9.9.9:5000 HTTP/1.1\r\nHost: test\r\n\r\n")
	f.eventually("the group is joined", func() bool { return slices.Contains(f.network.Joined(), "239.9.9.9:5000") })

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: got %v, want nil", err)
	}
	if b, _ := io.ReadAll(waiting); !strings.HasPrefix(string(b), "HTTP/1.1 503") || !strings.Contains(string(b), errShuttingDown.Error()) {
		t.Errorf("waiting viewer: got %q, want 503", b)
	}
	if b, _ := io.ReadAll(idle); len(b) != 0 {
		t.Errorf("idle connection: got %q, want its end", b)
	}
	if _, err := io.ReadFull(running.Body, make([]byte, 188*100)); err != nil {
		t.Errorf("running stream: %v, want it to go on", err)
	}
	if _, err := net.Dial("tcp", f.addr); err == nil {
		t.Error("the listener is still open")
	}
}

// What is kept for a viewer, all told, is small.
func TestStream_memoryPerViewer(t *testing.T) {
	f := newFront(t, Config{MaxPendingPerAddress: 1000})
	f.feed("239.1.1.1:5000")
	request := []byte("GET /rtp/239.1.1.1:5000 HTTP/1.1\r\nHost: test\r\nUser-Agent: player/" + strings.Repeat("1", 150) +
		"\r\nCookie: " + strings.Repeat("c", 3000) + "\r\n\r\n")
	answer := make([]byte, 12)
	open := func() {
		c := f.dial()
		c.Write(request)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 200" {
			t.Fatalf("got %q, %v, want a stream; log:\n%s", answer, err, f.log)
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	open()
	const viewers, most = 200, 4 << 10
	before := heap()
	for range viewers {
		open()
	}
	if each := int64(heap()-before) / viewers; each > most {
		t.Errorf("%d bytes of heap for each viewer, the test's end included, want at most %d", each, most)
	} else {
		t.Logf("%d bytes of heap for each viewer and the test's end", each)
	}
	if n := f.pending.count(); n != 0 {
		t.Errorf("%d connections pending, want 0: they are the engine's", n)
	}
}

// The whole way with the kernel's multicast on loopback.
func TestStream_loopbackMulticast(t *testing.T) {
	const group = "239.255.71.5:40123"
	receiver := func() (ingest.Receiver, error) { return ingest.NewReceiver(ingest.ReceiverConfig{}) }
	engine, err := fanout.New(fanout.Config{Receiver: receiver, StartWait: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	f := newFront(t, Config{})
	f.Server.engine = engine
	f.tuner = tune.New(tune.Config{Interface: "nosuch0"}, tune.System())

	sender, err := multicastSender(group)
	if err != nil {
		t.Skipf("no multicast on loopback: %v", err)
	}
	defer sender.Close()
	f.feedTo(func(datagram []byte) { sender.Write(datagram) })

	if response, body := f.request("GET", "/rtp/"+group); response.StatusCode != 503 || !strings.Contains(body, "nosuch0") {
		t.Errorf("configured interface that does not exist: got %s %q, want 503 that names it", response.Status, body)
	}
	if response, body := f.request("GET", "/rtp/"+group+"?r2h-ifname=nosuch1"); response.StatusCode != 400 || !strings.Contains(body, "nosuch1") {
		t.Errorf("requested interface that does not exist: got %s %q, want 400 that names it", response.Status, body)
	}
	f.watch("/rtp/" + group + "?r2h-ifname=lo")
	channels := f.snapshot(time.Now()).Channels
	if len(channels) != 1 || channels[0].Interface != "lo" || channels[0].ID != group+"%lo" {
		t.Errorf("channels: got %+v, want the one on lo", channels)
	}
}

// multicastSender opens a socket that sends to a group on loopback.
func multicastSender(group string) (net.Conn, error) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("udp4", group)
	if err != nil {
		return nil, err
	}
	p := ipv4.NewPacketConn(c.(*net.UDPConn))
	if err := errors.Join(p.SetMulticastInterface(lo), p.SetMulticastLoopback(true)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
