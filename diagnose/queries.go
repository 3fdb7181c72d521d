package diagnose

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Queries listens for the membership queries of the network's routers: IGMP
// (RFC 3376 §4.1) and MLD (RFC 3810 §5.1). It wakes up for those alone, every
// minute or two.
type Queries struct {
	began time.Time
	stop  func()

	mu           sync.Mutex
	last4, last6 map[int]heard // by interface index; nil: not listening
}

type heard struct {
	times   int64
	at      time.Time
	from    netip.Addr
	version int
}

// Listen begins to listen, where the system lets it. Close ends it.
func Listen() *Queries {
	q := &Queries{began: time.Now()}
	q.stop = q.listen()
	return q
}

// Close stops listening and waits for it.
func (q *Queries) Close() {
	if q != nil && q.stop != nil {
		q.stop()
		q.stop = nil
	}
}

// note takes a query that was heard on an interface.
func (q *Queries) note(index int, from netip.Addr, version int, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	by := q.last6
	if from.Is4() {
		by = q.last4
	}
	by[index] = heard{times: by[index].times + 1, at: now, from: from, version: version}
}

// last returns what was heard on an interface.
func (q *Queries) last(name string, group netip.Addr) (out Query) {
	if q == nil {
		return out
	}
	ifi, err := net.InterfaceByName(name)
	q.mu.Lock()
	defer q.mu.Unlock()
	by := q.last6
	if group.Is4() {
		by = q.last4
	}
	if by == nil || err != nil {
		return out
	}
	out.Listening, out.Since = true, time.Since(q.began)
	if h, ok := by[ifi.Index]; ok {
		out.Heard, out.Ago, out.From, out.Version = h.times, time.Since(h.at), h.from, h.version
	}
	return out
}

// igmpQuery reads the version out of an IGMP message, 0 if it is no query.
//
//	0 type 0x11, 1 max response code, 2 checksum, 4 group; more in version 3
func igmpQuery(b []byte) (version int) {
	switch {
	case len(b) < 8 || b[0] != 0x11:
		return 0
	case len(b) >= 12:
		return 3
	case b[1] == 0:
		return 1
	}
	return 2
}

// mldQuery is the same for MLD: type 130, 24 bytes in version 1.
func mldQuery(b []byte) (version int) {
	switch {
	case len(b) < 24 || b[0] != 130:
		return 0
	case len(b) >= 28:
		return 2
	}
	return 1
}
