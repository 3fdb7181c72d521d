package httpout

import (
	"net"
	"net/netip"
	"sync"
)

// pending holds the connections that have no viewer's place: silent ones, idle
// ones, requests being answered. Viewers, those who wait for a first picture too,
// have a limit of their own. What is pending is bounded, so that a flood of
// connections that say nothing costs a fixed number of descriptors and goroutines.
type pending struct {
	total, perAddress int // limits

	mu      sync.Mutex
	next    uint64 // order of arrival
	conns   map[*conn]uint64
	byAddr  map[netip.Addr]int
	closing bool
}

// add takes c in. Where that would break a limit, the oldest connection that
// has no request in hand makes room: it is returned, for the caller to close.
// If there is none, c is refused.
func (p *pending) add(c *conn) (evicted *conn, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return nil, false
	}
	switch {
	case c.addr.IsValid() && p.byAddr[c.addr] >= p.perAddress:
		evicted = p.oldestIdle(func(o *conn) bool { return o.addr == c.addr })
	case len(p.conns) >= p.total:
		evicted = p.oldestIdle(func(*conn) bool { return true })
	default:
		p.insert(c)
		return nil, true
	}
	if evicted == nil {
		return nil, false
	}
	p.delete(evicted)
	p.insert(c)
	return evicted, true
}

func (p *pending) oldestIdle(match func(*conn) bool) (oldest *conn) {
	for c, order := range p.conns {
		if !c.busy && match(c) && (oldest == nil || order < p.conns[oldest]) {
			oldest = c
		}
	}
	return oldest
}

// remove lets c go: it is closed, or the engine's.
func (p *pending) remove(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delete(c)
}

// setBusy says whether c has a request in hand, which keeps it from making room.
func (p *pending) setBusy(c *conn, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.busy = busy
}

// closeIdle closes the connections without a request in hand, and lets no new
// one in.
func (p *pending) closeIdle() {
	p.mu.Lock()
	var idle []*conn
	for c := range p.conns {
		if !c.busy {
			idle = append(idle, c)
		}
	}
	p.closing = true
	p.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}

func (p *pending) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *pending) insert(c *conn) {
	if p.conns == nil {
		p.conns = make(map[*conn]uint64)
		p.byAddr = make(map[netip.Addr]int)
	}
	p.next++
	p.conns[c] = p.next
	p.byAddr[c.addr]++
}

func (p *pending) delete(c *conn) {
	if _, held := p.conns[c]; !held {
		return
	}
	delete(p.conns, c)
	if p.byAddr[c.addr]--; p.byAddr[c.addr] == 0 {
		delete(p.byAddr, c.addr)
	}
}

// clientAddr is the address of a peer without its port; the zero Addr for a
// unix socket, behind which there may be any number of clients.
func clientAddr(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
