package failover

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"zapcast/ingest"
)

const (
	// retryPause is the least time between two attempts at one source.
	retryPause = time.Second

	// searchInterval bounds the tick while sources are being tried.
	searchInterval = 10 * time.Millisecond
)

// An Upstream is one of the sources of a channel.
type Upstream struct {
	// Name is the source's URL, for logs and status, without passwords.
	Name string

	// Open opens it. It may block.
	Open func(ingest.Receiver) (ingest.Source, error)
}

// Config says how a channel changes its source. The zero value works.
type Config struct {
	// Patience is how long the source that plays may bring nothing before the
	// next is tried beside it. Default 1 s.
	Patience time.Duration

	// Switch tells and chooses which source plays. Default: none.
	Switch *Switch

	// Logger takes the changes. Default: none.
	Logger *slog.Logger
}

// A Source is a channel with several upstreams.
type Source struct {
	upstreams []Upstream
	cfg       Config
	receiver  ingest.Receiver

	now      time.Time // of this Drain
	sink     ingest.Sink
	tries    []*attempt
	active   *attempt // one of tries; nil: nothing has come yet
	lastTry  time.Time
	lastData time.Time
	tried    []time.Time // by index: when it was last tried
	failed   []error     // by index: why it was given up, since it was last tried
	err      error       // why there will never be anything

	closing sync.WaitGroup
}

var _ ingest.Session = (*Source)(nil)

// Open returns the source of a channel with upstreams, of which the first is
// being opened. It does not block.
func Open(r ingest.Receiver, upstreams []Upstream, cfg Config) (*Source, error) {
	if len(upstreams) == 0 {
		return nil, errors.New("failover: open: the channel has no source")
	}
	if cfg.Patience <= 0 {
		cfg.Patience = time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Switch == nil {
		cfg.Switch = new(Switch)
	}
	cfg.Switch.take()
	s := &Source{
		upstreams: upstreams, cfg: cfg, receiver: r,
		tried: make([]time.Time, len(upstreams)), failed: make([]error, len(upstreams)),
	}
	return s, nil
}

// Drain implements ingest.Source.
func (s *Source) Drain(now time.Time, max int, sink ingest.Sink) (more bool) {
	s.now, s.sink = now, sink
	if s.lastTry.IsZero() {
		s.try(0, now)
	}
	if i := s.cfg.Switch.take(); i >= 0 && i < len(s.upstreams) {
		s.want(i)
	}
	for i := 0; i < len(s.tries); { // one that fails leaves the list
		a := s.tries[i]
		err := a.poll()
		if err == nil && a.ready {
			more = a.source.Drain(now, max, a) || more
			err = a.ended()
		}
		if err != nil {
			s.fail(a, err)
			continue
		}
		i++
	}
	if s.active != nil && s.lastData.Equal(now) {
		s.settle()
	}
	s.search()
	return more
}

// want begins to go to the source of an index.
func (s *Source) want(index int) {
	if s.active != nil && s.active.index == index {
		return
	}
	for _, a := range s.tries {
		if a.index == index {
			a.asked = true
			return
		}
	}
	s.try(index, s.now).asked = true
}

// quiet reports whether what plays has brought nothing for too long.
func (s *Source) quiet() bool { return s.now.Sub(s.lastData) >= s.cfg.Patience }

// play makes a the source that plays.
func (s *Source) play(a *attempt) {
	if s.active != nil || a.index != 0 {
		s.cfg.Logger.Info("source changed", "source", s.upstreams[a.index].Name, "number", a.index+1, "of", len(s.upstreams))
	}
	s.active, a.asked = a, false
	s.failed[a.index] = nil
	s.cfg.Switch.active.Store(int32(a.index) + 1)
}

// settle closes the sources that are not needed since one plays: all that the
// operator has not asked for.
func (s *Source) settle() {
	s.tries = slices.DeleteFunc(s.tries, func(a *attempt) bool {
		if a == s.active || a.asked {
			return false
		}
		s.retire(a)
		return true
	})
}

// fail gives a source up.
func (s *Source) fail(a *attempt, err error) {
	s.tries = slices.DeleteFunc(s.tries, func(o *attempt) bool { return o == a })
	s.failed[a.index] = err
	s.cfg.Logger.Warn("source lost", "source", s.upstreams[a.index].Name, "number", a.index+1, "of", len(s.upstreams), "err", err)
	if s.active == a {
		s.active = nil
		s.cfg.Switch.active.Store(0)
	}
	s.retire(a)
}

func (s *Source) retire(a *attempt) {
	s.closing.Go(func() {
		if err := a.drop(); err != nil {
			s.cfg.Logger.Debug("source did not close cleanly", "source", s.upstreams[a.index].Name, "err", err)
		}
	})
}

// search tries the next source where what is there brings nothing.
func (s *Source) search() {
	since := s.lastTry
	if s.lastData.After(since) {
		since = s.lastData
	}
	if len(s.tries) > 0 && s.now.Sub(since) < s.cfg.Patience {
		return
	}
	next, ok := s.next()
	switch {
	case ok:
		s.cfg.Logger.Debug("trying another source", "source", s.upstreams[next].Name)
		s.try(next, s.now)
	case len(s.tries) == 0 && s.lastData.IsZero() && s.err == nil && !slices.Contains(s.failed, nil):
		s.err = errors.New(s.Seen())
	}
}

// next chooses the source to try: in order from the one that plays or was tried
// last, none twice within retryPause.
func (s *Source) next() (index int, ok bool) {
	last := 0
	for i, at := range s.tried {
		if at.After(s.tried[last]) {
			last = i
		}
	}
	for n := range s.upstreams {
		i := (last + 1 + n) % len(s.upstreams)
		held := slices.ContainsFunc(s.tries, func(a *attempt) bool { return a.index == i })
		if !held && (s.tried[i].IsZero() || s.now.Sub(s.tried[i]) >= retryPause) {
			return i, true
		}
	}
	return 0, false
}

// Interval implements ingest.Source.
func (s *Source) Interval() time.Duration {
	least := time.Duration(0)
	for _, a := range s.tries {
		if a.ready {
			if d := a.source.Interval(); d > 0 && (least == 0 || d < least) {
				least = d
			}
		}
	}
	if (s.active == nil || len(s.tries) > 1) && (least == 0 || least > searchInterval) {
		return searchInterval
	}
	return least
}

// Status implements ingest.Source. Its counters are those of the source that
// plays, and begin anew with each change.
func (s *Source) Status() ingest.Status {
	status := ingest.Status{Source: s.upstreams[0].Name}
	if shown := s.shown(); shown != nil {
		status = shown.source.Status()
		status.Source = s.upstreams[shown.index].Name
	}
	status.LastData = s.lastData
	for i, err := range s.failed {
		if err != nil {
			status.Warnings = append(slices.Clip(status.Warnings), fmt.Sprintf("source %d of %d, %s: %v", i+1, len(s.upstreams), s.upstreams[i].Name, err))
		}
	}
	if s.active != nil && s.active.index != 0 {
		status.Warnings = append(slices.Clip(status.Warnings), fmt.Sprintf("source %d of %d plays", s.active.index+1, len(s.upstreams)))
	}
	return status
}

// shown is the source whose figures stand for the channel's; nil: none is open.
func (s *Source) shown() *attempt {
	if s.active != nil {
		return s.active
	}
	for _, a := range s.tries {
		if a.ready {
			return a
		}
	}
	return nil
}

// Seen implements ingest.Source.
func (s *Source) Seen() string {
	var parts []string
	for i, u := range s.upstreams {
		what := "not tried"
		if err := s.failed[i]; err != nil {
			what = err.Error()
		}
		for _, a := range s.tries {
			switch {
			case a.index == i && a.ready:
				what = a.source.Seen()
			case a.index == i:
				what = "no answer yet"
			}
		}
		parts = append(parts, fmt.Sprintf("source %d, %s: %s", i+1, u.Name, what))
	}
	return strings.Join(parts, "; ")
}

// Ended implements ingest.Session: nil as long as there is hope, else why no
// source could be opened.
func (s *Source) Ended() error { return s.err }

// Private implements ingest.Session: the stream is everybody's.
func (s *Source) Private() bool { return false }

// Waits implements ingest.Session.
func (s *Source) Waits() bool { return false }

// Rejoin implements ingest.Source.
func (s *Source) Rejoin() {
	for _, a := range s.tries {
		if a.ready {
			a.source.Rejoin()
		}
	}
}

// Close implements ingest.Source. A source that is still being opened is closed
// when it is open; Close does not wait for that.
func (s *Source) Close() error {
	s.cfg.Switch.active.Store(0)
	var errs []error
	for _, a := range s.tries {
		errs = append(errs, a.drop())
	}
	s.tries = nil
	s.closing.Wait()
	return errors.Join(errs...)
}
