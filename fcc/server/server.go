package server

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"time"

	"zapcast/ingest"
)

const (
	// tick is the grain of the pace: at 100 Mbit/s 45 packets. Without bursts
	// the groups are only read before they overflow.
	tick     = 4 * time.Millisecond
	idleTick = 20 * time.Millisecond

	// mostWaiting bounds what clients have said that is not yet looked at.
	mostWaiting = 512

	// mostRead bounds what one channel may take of a tick.
	mostRead = 1024

	retryJoin = 5 * time.Second
)

// A Server serves fast channel change. Open makes one, Run runs it.
type Server struct {
	cfg      Config
	machine  *machine
	receiver ingest.Receiver
	signal   *port
	media    *port

	heard  chan heard
	joined chan joined
	opens  sync.WaitGroup
	flows  map[*channel]ingest.Flow
	retry  map[*channel]time.Time

	mu    sync.Mutex // guards stats
	stats Stats
}

// heard is a datagram from a client.
type heard struct {
	bytes []byte
	from  netip.AddrPort
	media bool
}

type joined struct {
	channel *channel
	flow    ingest.Flow
	err     error
}

// Open opens the sockets of a server. Its error says what is wrong with cfg, or
// what the system refuses.
func Open(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, heard: make(chan heard, mostWaiting), joined: make(chan joined),
		flows: map[*channel]ingest.Flow{}, retry: map[*channel]time.Time{},
	}
	var err error
	if s.signal, err = openPort(cfg.Listen); err != nil {
		return nil, err
	}
	if s.media, err = openPort(netip.AddrPortFrom(cfg.Listen.Addr(), cfg.MediaPort)); err != nil {
		return nil, errors.Join(err, s.signal.close())
	}
	s.receiver, err = ingest.NewReceiver(ingest.ReceiverConfig{ReadBuffer: cfg.ReadBuffer, Plain: cfg.Plain, Logger: cfg.Logger})
	if err != nil {
		return nil, errors.Join(err, s.signal.close(), s.media.close())
	}
	s.cfg.MediaPort = s.media.address().Port()
	s.machine = newMachine(s.cfg, secretNumber, time.Now())
	return s, nil
}

// secretNumber is one that nobody can guess.
func secretNumber() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:])
}

// Address is where requests go.
func (s *Server) Address() netip.AddrPort { return s.signal.address() }

// Status returns what the server has done, a moment ago at most. It may be
// called from any goroutine.
func (s *Server) Status() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Run serves until ctx ends, and closes all. It is called once.
func (s *Server) Run(ctx context.Context) error {
	var reading sync.WaitGroup
	for _, p := range []*port{s.signal, s.media} {
		reading.Go(func() { s.listen(p, p == s.media) })
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case h := <-s.heard:
			s.machine.received(h.bytes, h.from, h.media, time.Now())
			s.act()
		case j := <-s.joined:
			s.took(j)
			s.act()
		case <-timer.C:
			timer.Reset(s.tick(time.Now()))
		}
	}
	err := errors.Join(s.signal.close(), s.media.close())
	reading.Wait()
	return errors.Join(err, s.leaveAll())
}

// listen hands on what clients say. What the loop has no time for is lost: they
// repeat it.
func (s *Server) listen(p *port, media bool) {
	buf := make([]byte, mostDatagram)
	for {
		n, from, err := p.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			if p.closed() {
				return
			}
			continue // what an ICMP message has left behind
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		select {
		case s.heard <- heard{append([]byte(nil), buf[:n]...), from, media}:
		default:
		}
	}
}

// tick reads the groups and sends what is due. It returns when to come back.
func (s *Server) tick(now time.Time) time.Duration {
	next := idleTick
	s.receiver.Begin(now)
	for c, f := range s.flows {
		for left, more := mostRead, true; more && left > 0; {
			var datagrams [][]byte
			datagrams, more = f.Read(left)
			s.machine.media(c, datagrams, now)
			if left -= len(datagrams); len(datagrams) == 0 {
				break
			}
		}
		if i := f.Interval(); i > 0 {
			next = min(next, i)
		}
	}
	s.receiver.End()
	s.machine.tick(now)
	for c, at := range s.retry {
		if now.After(at) {
			delete(s.retry, c)
			s.join(c)
		}
	}
	s.act()
	if len(s.machine.sessions) > 0 {
		next = min(next, tick)
	}
	s.mu.Lock()
	s.stats = s.machine.status()
	s.mu.Unlock()
	return next
}

// act does what the machine wants done.
func (s *Server) act() {
	m := s.machine
	for _, c := range m.joins {
		s.join(c)
	}
	for _, c := range m.leaves {
		if f := s.flows[c]; f != nil {
			delete(s.flows, c)
			s.leave(c, f)
		}
	}
	// In runs for one socket, so that the order stays.
	for i := 0; i < len(m.out); {
		n := 1
		for i+n < len(m.out) && m.out[i+n].media == m.out[i].media {
			n++
		}
		p := s.signal
		if m.out[i].media {
			p = s.media
		}
		if sent := p.send(m.out[i : i+n]); sent < n {
			m.unsent(m.out[i+sent:])
			break
		}
		i += n
	}
	m.forget()
}

// join opens a group elsewhere: it may take the system a moment.
func (s *Server) join(c *channel) {
	spec := c.spec
	s.opens.Go(func() {
		f, err := s.receiver.Open(spec)
		s.joined <- joined{c, f, err}
	})
}

func (s *Server) leave(c *channel, f ingest.Flow) {
	s.cfg.Logger.Info("channel left", "channel", c.spec)
	if err := f.Close(); err != nil {
		s.cfg.Logger.Warn("channel not left", "channel", c.spec, "err", err)
	}
}

// took takes up a group that was opened, or was not.
func (s *Server) took(j joined) {
	switch {
	case j.err != nil && j.channel.fixed:
		s.cfg.Logger.Warn("channel cannot be joined now", "channel", j.channel.spec, "err", j.err)
		s.retry[j.channel] = time.Now().Add(retryJoin)
	case j.err != nil:
		s.cfg.Logger.Warn("channel cannot be joined", "channel", j.channel.spec, "err", j.err)
		s.machine.failed(j.channel)
	case j.channel.left:
		s.leave(j.channel, j.flow)
	default:
		s.cfg.Logger.Info("channel joined", "channel", j.channel.spec)
		s.flows[j.channel] = j.flow
	}
}

// leaveAll closes the groups, also those that are just being opened.
func (s *Server) leaveAll() error {
	done := make(chan struct{})
	go func() { s.opens.Wait(); close(done) }()
	for waiting := true; waiting; {
		select {
		case j := <-s.joined:
			if j.err == nil {
				s.flows[j.channel] = j.flow
			}
		case <-done:
			waiting = false
		}
	}
	var errs []error
	for _, f := range s.flows {
		errs = append(errs, f.Close())
	}
	return errors.Join(append(errs, s.receiver.Close())...)
}
