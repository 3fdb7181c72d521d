package httpout

import (
	"net/netip"
	"sync"
)

// Seat takes a viewer's place for a client of another front, under the limit of
// this one: leave gives it back. It is false when all are taken.
func (s *Server) Seat(addr netip.Addr, agent string) (leave func(), ok bool) {
	client := clientKey{addr: addr, agent: clip(agent, maxAgent)}
	if !s.slots.take(client, s.config.Load().MaxClients) {
		s.counters.limit.Add(1)
		return nil, false
	}
	return func() { s.slots.give(client) }, true
}

// A clientKey tells viewers apart as far as HTTP lets one.
type clientKey struct {
	addr  netip.Addr
	agent string
}

// slots counts viewers under the limit. A player that zaps opens the new
// channel before it closes the old one, so a client that holds a slot gets one
// more when all are taken, until one of its own is free again.
type slots struct {
	mu      sync.Mutex
	taken   int
	clients map[clientKey]holding
}

type holding struct {
	taken int
	grace bool // one of them is above the limit
}

// take takes a slot for a client; limit 0 is none. The client must give it back.
func (s *slots) take(client clientKey, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.clients[client]
	if limit > 0 && s.taken >= limit {
		if h.taken == 0 || h.grace {
			return false
		}
		h.grace = true
	}
	h.taken++
	s.taken++
	if s.clients == nil {
		s.clients = make(map[clientKey]holding)
	}
	s.clients[client] = h
	return true
}

// give gives a slot back.
func (s *slots) give(client clientKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	h := s.clients[client]
	h.taken--
	h.grace = false
	if h.taken == 0 {
		delete(s.clients, client)
		return
	}
	s.clients[client] = h
}

func (s *slots) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}
