package failover

import (
	"sync"
	"time"

	"zapcast/ingest"
)

// An attempt is one source that is being opened, or is open.
type attempt struct {
	owner  *Source
	index  int
	asked  bool // by the operator: it takes over when it brings data
	source ingest.Source
	ready  bool // source is there

	mu      sync.Mutex // guards the rest
	done    bool
	opened  ingest.Source
	err     error
	dropped bool // nobody wants what is being opened
}

// try begins to open the source of an index.
func (s *Source) try(index int, now time.Time) *attempt {
	a := &attempt{owner: s, index: index}
	s.tries = append(s.tries, a)
	s.tried[index] = now
	s.lastTry = now
	go a.open(s.upstreams[index].Open, s.receiver)
	return a
}

func (a *attempt) open(open func(ingest.Receiver) (ingest.Source, error), r ingest.Receiver) {
	source, err := open(r)
	a.mu.Lock()
	a.done, a.opened, a.err = true, source, err
	dropped := a.dropped
	a.mu.Unlock()
	if dropped && err == nil {
		_ = source.Close()
	}
}

// poll takes what the opening has brought.
func (a *attempt) poll() (err error) {
	if a.ready {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done && a.err == nil {
		a.source, a.ready = a.opened, true
	}
	return a.err
}

// drop closes what was opened, now or as soon as it is open. It may block.
func (a *attempt) drop() error {
	a.mu.Lock()
	a.dropped = true
	opened := a.done && a.err == nil
	a.mu.Unlock()
	if opened {
		return a.opened.Close()
	}
	return nil
}

// ended says why a source brings nothing any more; nil: it may.
func (a *attempt) ended() error {
	if session, ok := a.source.(ingest.Session); ok {
		return session.Ended()
	}
	return nil
}

// Append implements ingest.Sink: it decides whether what a source brings plays.
func (a *attempt) Append(ts [][]byte) {
	s := a.owner
	if s.active != a && (s.active == nil || a.asked || s.quiet()) {
		s.play(a)
	}
	if s.active == a {
		s.lastData = s.now
		s.sink.Append(ts)
	}
}
