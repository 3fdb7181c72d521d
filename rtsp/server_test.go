package rtsp

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// A stubborn is a server that does what a test tells it to, right or wrong. Each
// connection runs script, which reads requests with next and writes what it likes.
type stubborn struct {
	t     testing.TB
	ln    net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	log   []request // every request, in order
	conns []net.Conn
}

type request struct {
	message
	raw string
}

// A peer is one connection of a stubborn server.
type peer struct {
	net.Conn
	server *stubborn
	number int // of the connection, from 0
	in     *bufio.Reader
}

func newStubborn(t testing.TB, script func(p *peer)) *stubborn {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stubborn{t: t, ln: ln}
	s.wg.Go(func() {
		for number := 0; ; number++ {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, nc)
			s.mu.Unlock()
			p := &peer{Conn: nc, server: s, number: number, in: bufio.NewReader(nc)}
			s.wg.Go(func() {
				defer nc.Close()
				script(p)
			})
		}
	})
	t.Cleanup(s.close)
	return s
}

func (s *stubborn) close() {
	_ = s.ln.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *stubborn) url(rest string) URL {
	s.t.Helper()
	u, err := ParseURL("rtsp://" + s.ln.Addr().String() + rest)
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// methods are the requests so far, in order.
func (s *stubborn) methods() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.log {
		all = append(all, r.method)
	}
	return all
}

// find returns the last request with a method.
func (s *stubborn) find(method string) (r request, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.log {
		if r.method == method {
			found := r
			return found, true
		}
	}
	return r, false
}

// next reads a request; ok is false at the end of the connection.
func (p *peer) next() (r request, ok bool) {
	var raw strings.Builder
	for {
		line, err := p.in.ReadString('\n')
		if err != nil {
			return r, false
		}
		raw.WriteString(line)
		if line == "\r\n" {
			break
		}
	}
	m, _, err := parseMessage([]byte(raw.String()))
	if err != nil {
		p.server.t.Errorf("server: cannot read %q: %v", raw.String(), err)
		return r, false
	}
	r = request{m, raw.String()}
	p.server.mu.Lock()
	p.server.log = append(p.server.log, r)
	p.server.mu.Unlock()
	return r, true
}

// answer sends a response with the request's CSeq.
func (p *peer) answer(r request, status string, fields ...string) {
	p.send(answerTo(r, status, "", fields...))
}

func answerTo(r request, status, body string, fields ...string) string {
	var text strings.Builder
	text.WriteString("RTSP/1.0 " + status + "\r\nCSeq: " + r.header.get("CSeq") + "\r\n")
	for _, f := range fields {
		text.WriteString(f + "\r\n")
	}
	if body != "" {
		text.WriteString(fmt.Sprintf("Content-Length: %d\r\n", len(body)))
	}
	return text.String() + "\r\n" + body
}

func (p *peer) send(text string) { _, _ = io.WriteString(p.Conn, text) }

const plainSDP = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 33\r\na=control:trackID=1\r\n"

// serve answers as servers should, until the connection ends. Where special has
// an answer for a method, it is called instead; false: go on as usual.
func (p *peer) serve(special func(r request) bool, playing func()) {
	for {
		r, ok := p.next()
		if !ok {
			return
		}
		if special != nil && special(r) {
			continue
		}
		switch r.method {
		case "OPTIONS":
			p.answer(r, "200 OK", "Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN")
		case "DESCRIBE":
			p.send(answerTo(r, "200 OK", plainSDP, "Content-Type: application/sdp"))
		case "SETUP":
			p.answer(r, "200 OK", "Session: 123;timeout=60", "Transport: MP2T/RTP/TCP;unicast;interleaved=0-1")
		case "PLAY":
			p.answer(r, "200 OK", "Session: 123")
			if playing != nil {
				playing()
			}
		default:
			p.answer(r, "200 OK", "Session: 123")
		}
	}
}

// frame is an interleaved frame.
func frame(channel byte, payload []byte) []byte {
	b := []byte{'$', channel, 0, 0}
	binary.BigEndian.PutUint16(b[2:], uint16(len(payload)))
	return append(b, payload...)
}

// rtpFrames are frames with RTP packets of 7 TS packets, and what is in them.
func rtpFrames(first, n int) (frames, ts []byte) {
	for i := first; i < first+n; i++ {
		packets := ingesttest.TS(uint32(i), 7)
		frames = append(frames, frame(0, ingesttest.Datagram(uint16(i), 9, packets))...)
		ts = append(ts, packets...)
	}
	return frames, ts
}

// local lets a client reach the test's servers.
func local(cfg Config) Config {
	cfg.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Second
	}
	return cfg
}

func open(t testing.TB, cfg Config, u URL) (*Source, error) {
	t.Helper()
	return openRequest(t, cfg, Request{URL: u})
}

func openRequest(t testing.TB, cfg Config, r Request) (*Source, error) {
	t.Helper()
	client := NewClient(local(cfg))
	t.Cleanup(client.Close)
	source, err := client.Open(ingesttest.NewReceiver(), r)
	if err == nil {
		t.Cleanup(func() { _ = source.Close() })
	}
	return source, err
}

// watch opens u and reads n bytes.
func watch(t testing.TB, cfg Config, u URL, n int) (*Source, *ingesttest.Sink) {
	t.Helper()
	source, err := open(t, cfg, u)
	if err != nil {
		t.Fatal(err)
	}
	sink := &ingesttest.Sink{T: t}
	drain(t, source, sink, n)
	return source, sink
}

// drain reads until sink holds n bytes; n < 0: until the end.
func drain(t testing.TB, source ingest.Session, sink *ingesttest.Sink, n int) {
	t.Helper()
	for end := time.Now().Add(patience); n < 0 || len(sink.Bytes) < n; {
		if source.Drain(time.Now(), 256, sink) {
			continue
		}
		if err := source.Ended(); err != nil {
			if n >= 0 {
				t.Fatalf("got the end (%v) after %d bytes, want %d", err, len(sink.Bytes), n)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v: got %d bytes, want %d: %s", patience, len(sink.Bytes), n, source.Seen())
		}
		time.Sleep(time.Millisecond)
	}
}
