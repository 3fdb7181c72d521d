package httpout

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zapcast/fanout"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
	"zapcast/internal/testlog"
	"zapcast/tune"
	"zapcast/tune/tunetest"
)

// patience bounds every wait of these tests; nothing should ever take so long.
const patience = 10 * time.Second

// A front is a server on loopback before an engine whose network is in memory.
type front struct {
	*Server
	t       *testing.T
	addr    string // of the TCP listener
	network *ingesttest.Receiver
	log     *testlog.Log
	serving *sync.WaitGroup
}

func newFront(t *testing.T, config Config) *front {
	t.Helper()
	return newFrontOn(t, config, fanout.Config{StartWait: time.Millisecond, Silence: time.Second})
}

// newFrontOn is newFront with the settings of the engine.
func newFrontOn(t *testing.T, config Config, engineConfig fanout.Config) *front {
	t.Helper()
	f := &front{t: t, network: ingesttest.NewReceiver(), log: new(testlog.Log), serving: new(sync.WaitGroup)}
	if config.Logger == nil {
		config.Logger = f.log.Logger()
	}
	engineConfig.Receiver = func() (ingest.Receiver, error) { return f.network, nil }
	engineConfig.Logger = config.Logger
	engine, err := fanout.New(engineConfig)
	if err != nil {
		t.Fatal(err)
	}
	f.Server = New(config, engine, tune.New(tune.Config{Lineup: config.Lineup}, tunetest.Resolver()))
	f.addr = f.listen(t, "tcp", "127.0.0.1:0")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		f.Shutdown(ctx)
		f.serving.Wait()
		engine.Close()
	})
	return f
}

// listen serves one more listener and returns its address.
func (f *front) listen(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	f.serving.Go(func() {
		if err := f.Serve(l); err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
	})
	return l.Addr().String()
}

// feed sends TS packets to a flow in memory from now on.
func (f *front) feed(spec string) {
	f.feedTo(func(datagram []byte) { f.network.Send(spec, datagram) })
}

// feedTo sends RTP with TS packets from now on.
func (f *front) feedTo(send func(datagram []byte)) {
	stop := make(chan struct{})
	var feeding sync.WaitGroup
	feeding.Go(func() {
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for n := uint32(0); ; n++ {
			send(ingesttest.Datagram(uint16(n), 1, ingesttest.TS(n, 7)))
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	})
	f.t.Cleanup(func() { close(stop); feeding.Wait() })
}

// dial connects to the server.
func (f *front) dial() net.Conn { return f.dialAt("tcp", f.addr, "") }

// dialAt connects from another address of the loopback network, if local is not empty.
func (f *front) dialAt(network, addr, local string) net.Conn {
	f.t.Helper()
	dialer := net.Dialer{Timeout: patience}
	if local != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(local)}
	}
	c, err := dialer.Dial(network, addr)
	if err != nil {
		f.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	f.t.Cleanup(func() { c.Close() })
	return c
}

// raw sends request as it stands and returns all that comes back.
func (f *front) raw(request string) string {
	f.t.Helper()
	c := f.dial()
	defer c.Close()
	io.WriteString(c, request)
	b, err := io.ReadAll(c)
	if err != nil && len(b) == 0 {
		f.t.Errorf("request %.80q: %v", request, err)
	}
	return string(b)
}

// A call is a connection with one request on it, and the header of the answer.
type call struct {
	*http.Response
	conn net.Conn
}

// open makes one request on a connection of its own.
func (f *front) open(method, target string, headers ...string) call {
	f.t.Helper()
	var head strings.Builder
	head.WriteString(method + " " + target + " HTTP/1.1\r\n")
	if !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Host:") }) {
		head.WriteString("Host: test\r\n")
	}
	for _, h := range headers {
		head.WriteString(h + "\r\n")
	}
	c := f.dial()
	io.WriteString(c, head.String()+"\r\n")
	response, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		f.t.Fatalf("%s %.80s: %v", method, target, err)
	}
	return call{response, c}
}

// request makes one request that is not answered by a stream.
func (f *front) request(method, target string, headers ...string) (*http.Response, string) {
	f.t.Helper()
	c := f.open(method, target, headers...)
	defer c.conn.Close()
	if c.StatusCode == http.StatusOK && c.ContentLength < 0 && method != http.MethodHead {
		f.t.Fatalf("%s %.80s: answered by a stream", method, target)
	}
	body, err := io.ReadAll(c.Body)
	if err != nil {
		f.t.Fatalf("%s %.80s: body: %v", method, target, err)
	}
	return c.Response, string(body)
}

// watch opens a stream and reads a few TS packets of it.
func (f *front) watch(target string, headers ...string) call {
	f.t.Helper()
	c := f.open(http.MethodGet, target, headers...)
	if c.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(c.Body)
		f.t.Fatalf("GET %s: got %s %q, want 200", target, c.Status, body)
	}
	packets := make([]byte, 10*188)
	if _, err := io.ReadFull(c.Body, packets); err != nil {
		f.t.Fatalf("GET %s: %v", target, err)
	}
	for i := 0; i < len(packets); i += 188 {
		if packets[i] != 0x47 {
			f.t.Fatalf("GET %s: byte %d is %#x, want a sync byte", target, i, packets[i])
		}
	}
	return c
}

// eventually waits until ok.
func (f *front) eventually(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("waited in vain until %s", what)
		}
	}
}
