package httpin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"zapcast/ingest"
	"zapcast/mpegts"
)

const (
	// blockBytes is the room of a block: about 64 KiB of whole packets.
	blockBytes = 348 * mpegts.PacketSize

	// blocks is how many there are: what is read between two ticks. At 25 ticks
	// a second they carry 200 Mbit/s.
	blocks = 16

	// datagramBytes is what Drain counts as a datagram.
	datagramBytes = 7 * mpegts.PacketSize

	maxRedirects = 5
)

// Config says how servers are spoken to. The zero value works.
type Config struct {
	// Timeout bounds the time until the header of the answer is there, over
	// all redirects. Default 5 s.
	Timeout time.Duration

	// UserAgent is how the program names itself. Default "zapcast".
	UserAgent string

	// Header is sent with each request besides. Default: nothing.
	Header http.Header

	// Allow says which addresses may be connected to, after redirects too.
	// Default: nil, all of them.
	Allow func(netip.Addr) bool

	// AllowRedirect says to which addresses redirects may lead, but for those
	// to the host and port that Open was given. Default: nil, all of them.
	AllowRedirect func(netip.Addr) bool

	// Private says that the stream is one viewer's own.
	Private bool
}

// A Source is one response that is being read.
type Source struct {
	name    string
	private bool
	cancel  context.CancelFunc
	done    chan struct{} // closed when the reader has ended
	free    chan *block
	full    chan *block
	local   string
	sender  string

	reads, junk atomic.Int64
	failure     atomic.Pointer[error] // why the reader has ended

	// The rest is the loop's.
	bytes    int64
	packets  int64
	lastData time.Time
	closed   bool
}

// A block is a piece of the body.
type block struct {
	buf  []byte
	runs [][]byte // of buf
}

var _ ingest.Session = (*Source)(nil)

var client = &http.Client{
	Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second, ControlContext: control}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		DisableKeepAlives:   true,
		DisableCompression:  true,
	},
	CheckRedirect: func(to *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("expected at most %d redirects, found more", maxRedirects)
		}
		if reach, ok := to.Context().Value(reachKey{}).(*reach); ok {
			reach.away.Store(to.URL.Host != via[0].URL.Host)
		}
		return nil
	},
}

// A reach is what one request may connect to.
type reach struct {
	allow, redirect func(netip.Addr) bool // nil: everything
	away            atomic.Bool           // a redirect has led to another host
}

func (r *reach) allows(addr netip.Addr) bool {
	return (r.allow == nil || r.allow(addr)) && (r.redirect == nil || !r.away.Load() || r.redirect(addr))
}

// reachKey is where a request's context has its reach.
type reachKey struct{}

// control refuses a connection to an address that is not allowed, once its name
// is resolved.
func control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	reach, _ := ctx.Value(reachKey{}).(*reach)
	to, err := netip.ParseAddrPort(address)
	if reach == nil || err == nil && reach.allows(to.Addr().Unmap()) {
		return nil
	}
	return fmt.Errorf("the address %s is not within the networks that servers may be in", address)
}

// Open asks for a stream and returns once the server has begun to answer. The
// error says what was expected of it and what was found, without passwords.
func Open(address string, cfg Config) (*Source, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("httpin: open: expected an address http://HOST/PATH")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "zapcast"
	}
	s := &Source{
		name: u.Redacted(), private: cfg.Private, done: make(chan struct{}),
		free: make(chan *block, blocks), full: make(chan *block, blocks),
	}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), reachKey{}, &reach{allow: cfg.Allow, redirect: cfg.AllowRedirect}))
	s.cancel = cancel
	late := time.AfterFunc(cfg.Timeout, cancel)
	body, err := s.get(ctx, u, cfg)
	if !late.Stop() && err == nil {
		body.Close()
		err = context.Canceled
	}
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %v", cfg.Timeout)
		}
		cancel()
		return nil, fmt.Errorf("httpin: get %s: %w", s.name, err)
	}
	for range blocks {
		s.free <- &block{}
	}
	go s.read(body)
	return s, nil
}

// get sends the request and judges the header of the answer.
func (s *Source) get(ctx context.Context, u *url.URL, cfg Config) (io.ReadCloser, error) {
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		s.local, s.sender = info.Conn.LocalAddr().String(), info.Conn.RemoteAddr().String()
	}}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, cfg.Header)
	request.Header.Set("User-Agent", cfg.UserAgent)
	answer, err := client.Do(request)
	if err != nil {
		if cause := (*url.Error)(nil); errors.As(err, &cause) {
			err = cause.Err // the URL is in it, with the password
		}
		return nil, err
	}
	if err := judge(answer); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer.Body, nil
}

// judge refuses an answer that is no stream.
func judge(answer *http.Response) error {
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("expected the status 200, found %d", answer.StatusCode)
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if strings.Contains(kind, "mpegurl") || strings.Contains(kind, "dash+xml") || kind == "text/html" {
		return fmt.Errorf("expected MPEG-TS, found %s", kind)
	}
	return nil
}

// read fills blocks until the body ends or the source is closed.
func (s *Source) read(body io.ReadCloser) {
	defer close(s.done)
	defer body.Close()
	var carry [mpegts.PacketSize]byte // what begins a packet, or may
	held, synced := 0, false
	for b := range s.free {
		if b.buf == nil {
			b.buf = make([]byte, blockBytes)
		}
		copy(b.buf, carry[:held])
		n, err := body.Read(b.buf[held:])
		if n > 0 {
			s.reads.Add(1)
			var rest []byte
			var junk int
			b.runs, rest, synced, junk = align(b.runs[:0], b.buf[:held+n], synced)
			held = copy(carry[:], rest)
			s.junk.Add(int64(junk))
			s.full <- b
		}
		if err != nil {
			s.failure.Store(&err)
			return
		}
	}
}

// Drain implements ingest.Source.
func (s *Source) Drain(now time.Time, max int, sink ingest.Sink) (more bool) {
	for left := max * datagramBytes; left > 0; {
		select {
		case b := <-s.full:
			n := 0
			for _, run := range b.runs {
				n += len(run)
			}
			if n > 0 {
				s.bytes += int64(n)
				s.packets++
				s.lastData = now
				sink.Append(b.runs)
			}
			left -= n
			if !s.closed {
				s.free <- b
			}
		default:
			return false
		}
	}
	return len(s.full) > 0
}

// Interval implements ingest.Source: what is not read waits.
func (s *Source) Interval() time.Duration { return 0 }

// Status implements ingest.Source.
func (s *Source) Status() ingest.Status {
	status := ingest.Status{
		Source: s.name, Local: s.local, Sender: s.sender,
		Datagrams: s.reads.Load(), Bytes: s.bytes, Packets: s.packets, LastData: s.lastData,
	}
	if s.bytes > 0 {
		status.Payload = "mp2t-direct"
	}
	if junk := s.junk.Load(); junk > 0 {
		status.BadTS = (junk + mpegts.PacketSize - 1) / mpegts.PacketSize
	}
	return status
}

// Seen implements ingest.Source.
func (s *Source) Seen() string {
	switch reads := s.reads.Load(); {
	case reads == 0:
		return "connected to " + s.sender + ", nothing received"
	case s.bytes == 0:
		return fmt.Sprintf("connected to %s, %d bytes received that are no MPEG-TS", s.sender, s.junk.Load())
	}
	return fmt.Sprintf("connected to %s, %d bytes of MPEG-TS received", s.sender, s.bytes)
}

// Rejoin implements ingest.Source. There is nothing to ask again.
func (s *Source) Rejoin() {}

// Ended implements ingest.Session: io.EOF or what broke the connection, once
// all that came before is drained.
func (s *Source) Ended() error {
	err := s.failure.Load()
	if err == nil || len(s.full) > 0 {
		return nil
	}
	return *err
}

// Private implements ingest.Session.
func (s *Source) Private() bool { return s.private }

// Waits implements ingest.Session: the server waits for its reader.
func (s *Source) Waits() bool { return true }

// Close ends the connection. Further calls do nothing.
func (s *Source) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.cancel()
	close(s.free)
	<-s.done
	return nil
}
