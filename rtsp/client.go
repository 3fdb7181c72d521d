package rtsp

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"zapcast/ingest"
)

// A Client opens sessions. It is safe for concurrent use.
type Client struct {
	config  atomic.Pointer[Config]
	scratch sync.Map // ingest.Receiver, which stands for a loop, to its *scratch
	ctx     context.Context
	cancel  context.CancelFunc
	ending  sync.WaitGroup // sessions that came to nothing, being torn down
}

// A Request says what is to be played.
type Request struct {
	URL       URL
	Interface string // network interface to use; empty: the routing table's choice
	Range     string // Range of PLAY, "npt=30-" or "clock=…"; empty: none
	Private   bool   // the stream is one viewer's own: it begins where he wants it to
}

// A Description is what a server tells of a stream before it plays.
type Description struct {
	Duration time.Duration // of a recording; 0: open-ended or not told
}

// NewClient returns a client.
func NewClient(cfg Config) *Client {
	c := &Client{}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.Reconfigure(cfg)
	return c
}

// Reconfigure changes the settings of sessions to come.
func (c *Client) Reconfigure(cfg Config) {
	cfg = cfg.withDefaults()
	c.config.Store(&cfg)
}

// Close gives up the handshakes under way, and waits for the ends of sessions
// that came to nothing. Sources are their owners' to close.
func (c *Client) Close() {
	c.cancel()
	c.ending.Wait()
}

// Allows reports whether a server may have this address. A nil client knows no
// exceptions to the default.
func (c *Client) Allows(addr netip.Addr) bool {
	if c == nil {
		return Config{}.allows(addr)
	}
	return c.config.Load().allows(addr)
}

// Open plays r. It blocks until the server has answered PLAY; the first media may
// be yet to come. The source belongs to the loop of receiver, which a session
// that the server sends to a group joins by. An error is an *Error, or the
// receiver's.
func (c *Client) Open(receiver ingest.Receiver, r Request) (*Source, error) {
	s := newSession(c.config.Load(), r, false)
	err := s.run(c.ctx)
	if err == nil {
		var source *Source
		if source, err = c.source(receiver, s, r); err == nil {
			return source, nil
		}
	}
	c.ending.Go(s.teardown)
	return nil, err
}

// Describe asks for r's description and plays nothing.
func (c *Client) Describe(ctx context.Context, r Request) (Description, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	s := newSession(c.config.Load(), r, true)
	defer s.hangUp()
	if err := s.run(ctx); err != nil {
		return Description{}, err
	}
	return Description{Duration: s.m.sdp.duration}, nil
}

// scratchOf returns the memory of receiver's loop.
func (c *Client) scratchOf(receiver ingest.Receiver) *scratch {
	if buf, ok := c.scratch.Load(receiver); ok {
		return buf.(*scratch)
	}
	buf, _ := c.scratch.LoadOrStore(receiver, new(scratch))
	return buf.(*scratch)
}
