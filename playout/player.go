package playout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"time"
)

// reportInterval is how often a player tells how far it is.
const reportInterval = 2 * time.Second

// Config says what a player does. Only Destinations has no useful zero value.
type Config struct {
	Destinations []Destination
	Interface    string      // name of the interface for multicast; empty: the routing table's choice
	TTL          int         // time to live of multicast, 0 to 255; 0 stays on this host
	Loop         bool        // begin again after the last file
	Rate         Rate        // zero: in the stream's own time
	Parity       Parity      // zero: none
	Impairments  Impairments // zero: none
	Seed         uint64      // of everything random, so that a run can be repeated

	// Report, if set, is called every two seconds while the player runs, from
	// the goroutine of Run.
	Report func(Stats)
}

// Stats counts what a player has done. Datagrams are those of the stream;
// what has been sent is counted per destination.
type Stats struct {
	Position  time.Duration // when the last datagram taken is due, from the beginning
	Datagrams int64
	Bytes     int64 // of TS packets
	Parity    int64 // datagrams of parity beside them

	Dropped, Duplicated, Reordered int64 // by the impairments

	Sent, Failed int64         // by all destinations together
	LastError    error         // why the last of those failed
	Skipped      time.Duration // stalls too long to be caught up with
}

// Player plays TS files to its destinations.
type Player struct {
	cfg     Config
	sockets []sender
	parity  protection
	line    *line
	toLine  func(datagram)
	queue   queue
	push    func(datagram)
	batch   [batchSize]datagram
	pace    *pace
	stats   Stats
	report  time.Time // when the next is due
}

// sender is a socket, or what stands for one.
type sender interface {
	send([]datagram) error
	totals() (sent, failed int64, last error)
	unblock()
	close() error
}

// Open checks the configuration and opens a socket for each destination.
func Open(cfg Config) (*Player, error) {
	if len(cfg.Destinations) == 0 {
		return nil, errors.New("playout: no destination")
	}
	if cfg.TTL < 0 || cfg.TTL > 255 {
		return nil, fmt.Errorf("playout: time to live %d: want 0 to 255", cfg.TTL)
	}
	if err := errors.Join(cfg.Rate.validate(), cfg.Impairments.validate()); err != nil {
		return nil, err
	}
	encoder, err := cfg.Parity.encoder()
	if err != nil {
		return nil, err
	}
	if encoder != nil {
		if err := cfg.protectable(); err != nil {
			return nil, err
		}
	}
	var ifi *net.Interface
	if cfg.Interface != "" {
		if ifi, err = net.InterfaceByName(cfg.Interface); err != nil {
			return nil, fmt.Errorf("playout: interface %q: %w", cfg.Interface, bare(err))
		}
	}
	var sockets []sender
	for _, d := range cfg.Destinations {
		s, err := openSocket(d, ifi, cfg.TTL)
		if err != nil {
			for _, s := range sockets {
				s.close()
			}
			return nil, err
		}
		sockets = append(sockets, s)
	}
	p := newPlayer(cfg, sockets)
	p.parity.encoder = encoder
	return p, nil
}

func newPlayer(cfg Config, sockets []sender) *Player {
	p := &Player{cfg: cfg, sockets: sockets, line: newLine(cfg.Impairments, cfg.Seed)}
	p.push = p.queue.push
	p.toLine = func(d datagram) { p.line.send(d, p.push) }
	return p
}

// protectable says why there can be no parity with these destinations.
func (c *Config) protectable() error {
	rtp := false
	for _, d := range c.Destinations {
		rtp = rtp || d.RTP
		if port := d.Addr.Port(); d.RTP && port > math.MaxUint16-maxShift {
			return fmt.Errorf("playout: port %d has no room for ports of parity above it, want %d at most", port, math.MaxUint16-maxShift)
		}
	}
	if !rtp {
		return errors.New("playout: parity needs sequence numbers, want a destination rtp://GROUP:PORT")
	}
	return nil
}

// Close releases the sockets. It is called after Run, or instead of it.
func (p *Player) Close() error {
	var errs []error
	for _, s := range p.sockets {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// Run plays the files one after the other, once or, if so configured, until
// ctx ends. It is called once. It returns what has been done in any case, and
// the error of ctx if that is what ended it.
func (p *Player) Run(ctx context.Context, files ...File) (Stats, error) {
	if len(files) == 0 {
		return Stats{}, errors.New("playout: no file")
	}
	stop := context.AfterFunc(ctx, func() {
		for _, s := range p.sockets {
			s.unblock()
		}
	})
	defer stop()

	pack := newPacker(p.cfg.Seed, func(d datagram) error { return p.take(ctx, d) })
	err := (&timeline{rate: p.cfg.Rate, emit: pack.add}).run(files, p.cfg.Loop)
	if err == nil {
		err = pack.flush()
	}
	if err == nil {
		err = p.drain(ctx)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return p.Stats(), err
}

// take sends what comes before d, waits until it is time for d, and puts it on
// the line.
func (p *Player) take(ctx context.Context, d datagram) error {
	if p.pace == nil {
		p.pace = newPace()
		p.report = p.pace.zero.Add(reportInterval)
	}
	for d.due > p.pace.position {
		if err := p.sendDue(); err != nil {
			return err
		}
		if err := p.wait(ctx, d.due); err != nil {
			return err
		}
	}
	p.stats.Position = d.due
	p.stats.Datagrams++
	p.stats.Bytes += int64(len(d.data) - rtpHeaderSize)
	p.toLine(d)
	p.parity.add(d, p.toLine)
	if p.queue.len < batchSize {
		return nil
	}
	return p.sendDue()
}

// drain sends what is still on the line and in the queue.
func (p *Player) drain(ctx context.Context) error {
	p.parity.flush(datagram{due: p.stats.Position}, p.toLine)
	p.line.flush(p.push)
	for {
		if err := p.sendDue(); err != nil || p.queue.len == 0 {
			return err
		}
		if err := p.wait(ctx, p.queue.peek(0).due); err != nil {
			return err
		}
	}
}

// wait sleeps until the given time, or until the queue's first datagram is due.
func (p *Player) wait(ctx context.Context, due time.Duration) error {
	if p.queue.len > 0 {
		due = min(due, p.queue.peek(0).due)
	}
	if err := p.pace.wait(ctx, due); err != nil {
		return err
	}
	if now := time.Now(); p.cfg.Report != nil && !now.Before(p.report) {
		p.report = now.Add(reportInterval)
		p.cfg.Report(p.Stats())
	}
	return nil
}

// sendDue sends what is due in the queue, the same to every destination.
func (p *Player) sendDue() error {
	for {
		n := 0
		for n < min(batchSize, p.queue.len) && p.queue.peek(n).due <= p.pace.position {
			p.batch[n] = p.queue.peek(n)
			n++
		}
		if n == 0 {
			return nil
		}
		for _, s := range p.sockets {
			if err := s.send(p.batch[:n]); err != nil {
				return err
			}
		}
		p.queue.drop(n)
	}
}

// Stats returns what has been done so far. It must not be called while Run
// runs, but from Report.
func (p *Player) Stats() Stats {
	s := p.stats
	s.Parity = p.parity.sent
	s.Dropped, s.Duplicated, s.Reordered = p.line.dropped, p.line.duplicated, p.line.reordered
	for _, socket := range p.sockets {
		sent, failed, last := socket.totals()
		s.Sent += sent
		s.Failed += failed
		if last != nil {
			s.LastError = last
		}
	}
	if p.pace != nil {
		s.Skipped = p.pace.skipped
	}
	return s
}
