package httpout

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zapcast/fanout"
	"zapcast/tune"
	"zapcast/tune/tunetest"
)

// Ten channels zapped through and back again, each for a moment: every group is
// joined once and none is left before the linger is over, then each once.
func TestStream_zappingSparesTheNetwork(t *testing.T) {
	f := newFrontOn(t, Config{}, fanout.Config{StartWait: time.Millisecond, Linger: time.Minute})
	var specs []string
	for i := range 10 {
		specs = append(specs, fmt.Sprintf("239.1.1.%d:5000", i+1))
		f.feed(specs[i])
	}
	for range 3 {
		for _, spec := range specs {
			f.watch("/rtp/" + spec).conn.Close()
		}
	}
	f.eventually("all viewers are gone", func() bool { return len(f.engine.Status().Viewers) == 0 })
	events := f.network.Events()
	if slices.Sort(events); len(events) != len(specs) || !slices.IsSorted(events) || !strings.HasPrefix(events[len(events)-1], "join ") {
		t.Errorf("events while zapping: got %v, want one join of each group", events)
	}
	f.engine.Reconfigure(fanout.Config{Linger: time.Millisecond})
	f.eventually("all groups are left", func() bool { return len(f.network.Joined()) == 0 })
	if events := f.network.Events(); len(events) != 2*len(specs) {
		t.Errorf("events in all: got %v, want one join and one leave of each group", events)
	}
}

// A request without a source joins any source, whatever was asked for before.
func TestStream_anySourceAfterSourceSpecific(t *testing.T) {
	f := newFront(t, Config{})
	for _, spec := range []string{"198.51.100.7@232.1.1.1:5000", "198.51.100.8@232.1.1.1:5000", "232.1.1.1:5000"} {
		f.feed(spec)
		f.watch("/rtp/" + spec)
	}
	want := []string{"join 198.51.100.7@232.1.1.1:5000", "join 198.51.100.8@232.1.1.1:5000", "join 232.1.1.1:5000"}
	if got := f.network.Events(); !slices.Equal(got, want) {
		t.Errorf("events: got %v, want %v", got, want)
	}
}

// When a source ends under its viewers, so do they, and every count says so.
func TestStatus_countsWhatIsLeftWhenASourceEnds(t *testing.T) {
	for _, plain := range []bool{false, true} {
		f := newFrontOn(t, Config{MaxClients: 3}, fanout.Config{Plain: plain, StartWait: time.Millisecond, Silence: 300 * time.Millisecond})
		f.feed("239.1.1.1:5000")
		stop := make(chan struct{})
		var feeding sync.WaitGroup
		feeding.Go(func() {
			for ; ; time.Sleep(2 * time.Millisecond) {
				select {
				case <-stop:
					return
				default:
					f.network.Send("239.1.1.2:5000", make([]byte, 0))
					f.network.Send("239.1.1.2:5000", lineTS(0))
				}
			}
		})
		stays := f.watch("/rtp/239.1.1.1:5000")
		var ending []call
		for range 2 {
			ending = append(ending, f.watch("/rtp/239.1.1.2:5000"))
		}
		close(stop)
		feeding.Wait()
		for _, c := range ending {
			if _, err := io.Copy(io.Discard, c.Body); err != nil {
				t.Errorf("viewer of the source that ended: %v, want a clean end", err)
			}
		}
		f.eventually("only what is left is counted", func() bool {
			s := f.snapshot(time.Now())
			return len(s.Viewers) == 1 && len(s.Channels) == 1 && s.Channels[0].Viewers == 1 && s.Channels[0].Waiting == 0 && f.slots.count() == 1
		})
		f.watch("/rtp/239.1.1.1:5000").conn.Close() // there is room again
		if _, err := io.ReadFull(stays.Body, make([]byte, 188*100)); err != nil {
			t.Errorf("viewer of the other source: %v", err)
		}
	}
}

// An interface that exists but will not do is named, with what is wrong with
// it, to the viewer and in the status.
func TestStream_interfaceThatWillNotDo(t *testing.T) {
	f := newFront(t, Config{})
	f.tuner.Reconfigure(tune.Config{Interface: "eth0.12"})
	const spec, fault = "239.9.9.9:5000%eth0.12", "interface eth0.12 has no IPv4 address"
	f.network.Warn(spec, fault)
	response, body := f.request("GET", "/rtp/239.9.9.9:5000")
	if response.StatusCode != 503 || !strings.Contains(body, "received nothing; "+fault) {
		t.Errorf("got %s %q, want 503 with %q", response.Status, body, fault)
	}
	if failures := f.snapshot(time.Now()).Failures; len(failures) != 1 || failures[0].Channel != spec || !strings.Contains(failures[0].Reason, fault) {
		t.Errorf("failures in the status: got %+v, want the one of %s with %q", failures, spec, fault)
	}
}

// What users do every day is no warning and no error.
func TestLog_ofADayWithoutTrouble(t *testing.T) {
	f := newFront(t, Config{})
	f.feed("239.1.1.1:5000")
	for range 3 {
		f.request("HEAD", "/rtp/239.1.1.1:5000")
		c := f.watch("/rtp/239.1.1.1:5000?fcc=0&fec=x$News", "Range: bytes=0-", "Icy-MetaData: 1", "Cookie: a=b")
		c.conn.(*net.TCPConn).SetLinger(0) // as players hang up
		c.conn.Close()
		f.request("GET", "/api/status", "Connection: close")
		f.request("GET", "/healthz", "Connection: close")
		f.request("GET", "/favicon.ico")
		f.request("OPTIONS", "/rtp/239.1.1.1:5000")
		f.dial().Close() // a port check
	}
	f.eventually("all viewers are gone", func() bool { return len(f.engine.Status().Viewers) == 0 })
	if log := f.log.String(); strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
		t.Errorf("log: got\n%s", log)
	}
}

// Settings change a hundred times, from two sides at once, while requests are
// answered and streams run.
func TestReconfigure_besideEverythingElse(t *testing.T) {
	f := newFront(t, Config{})
	f.feed("239.1.1.1:5000")
	running := f.watch("/rtp/239.1.1.1:5000")
	const rounds = 100
	var sides sync.WaitGroup
	for side := range 2 {
		sides.Go(func() {
			for i := range rounds {
				f.Reconfigure(Config{MaxClients: 10 + i, Hosts: []string{"test", fmt.Sprint("side", side)}, Logger: f.log.Logger()})
				f.engine.Reconfigure(fanout.Config{Linger: time.Duration(i) * time.Millisecond, StartWait: time.Millisecond})
			}
		})
	}
	for range rounds {
		if response, body := f.request("GET", "/api/status", "Connection: close"); response.StatusCode != 200 {
			t.Fatalf("status meanwhile: got %s %q", response.Status, body)
		}
	}
	sides.Wait()
	f.Reconfigure(Config{MaxClients: 1})
	if response := f.open("GET", "/rtp/239.1.1.1:5000", "User-Agent: another"); response.StatusCode != 503 {
		t.Errorf("after the last change, which allows one viewer: a second one got %s, want 503", response.Status)
	}
	if _, err := io.ReadFull(running.Body, make([]byte, 188*100)); err != nil {
		t.Errorf("running stream: %v", err)
	}
}

// The server is no relay into other networks: what is not multicast is refused
// and nothing is opened, however it is written.
func TestServer_relaysNothingButMulticast(t *testing.T) {
	f := newFront(t, Config{})
	resolver := tunetest.Resolver()
	resolver.Lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		return map[string][]netip.Addr{
			"localhost":       {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")},
			"rebound.example": {netip.MustParseAddr("169.254.169.254")},
			"mapped.example":  {netip.MustParseAddr("::ffff:127.0.0.1")},
		}[host], nil
	}
	f.tuner = tune.New(tune.Config{}, resolver)
	for target, code := range map[string]int{
		"/rtp/127.0.0.1:22":                   400,
		"/udp/127.0.0.1:22":                   400,
		"/rtp/127.1:22":                       400,
		"/rtp/2130706433:22":                  400,
		"/rtp/0x7f000001:22":                  400,
		"/rtp/0.0.0.0:22":                     400,
		"/rtp/255.255.255.255:22":             400,
		"/rtp/169.254.169.254:80":             400,
		"/rtp/10.0.0.1:554":                   400,
		"/rtp/[::1]:22":                       400,
		"/rtp/[::]:22":                        400,
		"/rtp/[::ffff:127.0.0.1]:22":          400,
		"/rtp/[fe80::1%25lo]:22":              400,
		"/rtp/127.0.0.1%3A22":                 400,
		"/rtp/239.1.1.1@127.0.0.1:22":         400,
		"/rtp/127.0.0.1:22?fcc=192.0.2.9:80":  400,
		"/rtp/localhost:22":                   400,
		"/rtp/rebound.example:80":             400,
		"/rtp/mapped.example:22":              400,
		"/http/127.0.0.1:22/":                 404,
		"/rtsp/127.0.0.1:22/":                 404,
		"/rtp/http://127.0.0.1:22/":           400,
		"http://127.0.0.1:22/secret":          404,
		"http://127.0.0.1:22/rtp/192.0.2.1:1": 400,
	} {
		if response, body := f.request("GET", target); response.StatusCode != code {
			t.Errorf("GET %s: got %s %q, want %d", target, response.Status, body, code)
		}
	}
	if events := f.network.Events(); len(events) != 0 {
		t.Errorf("events: got %v, want none", events)
	}
}

// IPv6 addresses keep their brackets: the listener's, the viewer's, those of
// the Host header and of the group.
func TestStream_ipv6EverywhereInBrackets(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skipf("no IPv6 on loopback: %v", err)
	} else {
		l.Close()
	}
	f := newFront(t, Config{Hosts: []string{"::1"}})
	f.addr = f.listen(t, "tcp", "[::1]:0")
	const spec = "[2001:db8::7]@[ff3e::1]:5000"
	f.feed(spec)
	for _, host := range []string{f.addr, "[::1]", "[::1]:80", "[0:0:0:0:0:0:0:1]:80"} {
		c := f.dial()
		io.WriteString(c, "GET /rtp/"+spec+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		b := make([]byte, 2000)
		if _, err := io.ReadFull(c, b); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 200") {
			t.Errorf("Host %s: got %.80q, %v, want a stream", host, b, err)
		}
	}
	s := f.snapshot(time.Now())
	if len(s.Channels) != 1 || s.Channels[0].ID != spec || s.Channels[0].Source != "rtp://"+spec {
		t.Errorf("channels: got %+v, want one, %s", s.Channels, spec)
	}
	for _, v := range s.Viewers {
		if host, _, err := net.SplitHostPort(v.Address); err != nil || host != "::1" || v.URL != "/rtp/"+spec {
			t.Errorf("viewer: got address %s, URL %s", v.Address, v.URL)
		}
	}
	answer := f.raw("GET /rtp/ff3e::1:5000 HTTP/1.1\r\nHost: [::1]\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 400") || !strings.Contains(answer, "brackets") {
		t.Errorf("without brackets: got %q, want 400", answer)
	}
}
