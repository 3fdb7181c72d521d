package fcc

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	maxServers = 256 // that are remembered
	maxMoved   = 100
	maxBarren  = 256

	// serverAge is how long what was learned of a server holds after it was
	// last asked: servers are exchanged, lines are moved.
	serverAge = 6 * time.Hour

	// forgetAfter is how many times in a row a server may leave the dialect
	// that it was known to speak unanswered before all are tried again.
	forgetAfter = 3

	// barrenTime is how long a group is joined without a burst after one that
	// no multicast followed.
	barrenTime = 30 * time.Second

	// mostRedirectTime bounds how long a redirect is kept, whatever it says.
	mostRedirectTime = time.Hour
)

// A Book is what was learned of FCC servers, for all sources of a process. Its
// methods may be called from any goroutine; none is called for each packet.
type Book struct {
	mu        sync.Mutex // guards the rest
	servers   map[netip.AddrPort]*page
	redirects map[target]redirect
	barren    map[netip.AddrPort]time.Time // groups, and until when
}

// A page is what is known of one server.
type page struct {
	spoken   dialect // nil: nothing answered yet
	reply    time.Duration
	works    bool
	reason   string // of the last fall back
	silent   int    // times in a row without an answer
	open     int    // bursts
	asked    int64
	bursts   int64
	lastUsed time.Time
}

// A target is what is asked of whom.
type target struct{ server, group netip.AddrPort }

type redirect struct {
	to    netip.AddrPort
	until time.Time
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{servers: map[netip.AddrPort]*page{}, redirects: map[target]redirect{}, barren: map[netip.AddrPort]time.Time{}}
}

// advice is what the book has to say before a conversation.
type advice struct {
	refusal string         // why there is to be none; empty: go on
	server  netip.AddrPort // to be asked: a redirect is remembered
	plan    []dialect
	reply   time.Duration
}

// begin takes one of the server's bursts, to be given back by end, unless the
// advice is against it.
func (b *Book) begin(now time.Time, t target, named string, most int) advice {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until, ok := b.barren[t.group]; ok {
		if now.Before(until) {
			return advice{refusal: reasonBarren}
		}
		delete(b.barren, t.group)
	}
	p := b.page(now, t.server)
	if p.open >= most {
		p.reason = reasonBusy
		return advice{refusal: reasonBusy}
	}
	p.open++
	p.asked++
	a := advice{server: t.server, plan: dialects, reply: p.reply}
	switch {
	case named != "":
		a.plan = []dialect{dialectOf(named)}
	case p.spoken != nil:
		a.plan = []dialect{p.spoken}
	}
	if r, ok := b.redirects[t]; ok {
		if now.Before(r.until) {
			a.server = r.to
		} else {
			delete(b.redirects, t)
		}
	}
	return a
}

// page returns what is known of a server, making room for it.
func (b *Book) page(now time.Time, server netip.AddrPort) *page {
	p := b.servers[server]
	if p != nil && now.Sub(p.lastUsed) > serverAge && p.open == 0 {
		p = nil
	}
	if p == nil {
		if len(b.servers) >= maxServers {
			b.forgetOldest()
		}
		p = &page{}
		b.servers[server] = p
	}
	p.lastUsed = now
	return p
}

func (b *Book) forgetOldest() {
	var oldest netip.AddrPort
	for server, p := range b.servers {
		if p.open == 0 && (!oldest.IsValid() || p.lastUsed.Before(b.servers[oldest].lastUsed)) {
			oldest = server
		}
	}
	delete(b.servers, oldest) // if all have bursts open there is none: those bound their number
}

// heard takes what a conversation has shown so far: it is called when a burst
// has begun to come, and at the end.
func (b *Book) heard(now time.Time, t target, m *machine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.page(now, t.server)
	if m.spoken != nil {
		p.spoken, p.silent = m.spoken, 0
	}
	if m.replyTime > 0 {
		if p.reply == 0 {
			p.reply = m.replyTime
		} else { // as TCP does it, RFC 6298 §2
			p.reply += (m.replyTime - p.reply) / 8
		}
	}
	if !m.pinned.IsValid() {
		return
	}
	p.works, p.reason = true, ""
	if len(m.redirects) > 0 && m.redirect > 0 {
		if len(b.redirects) >= maxMoved {
			b.dropRedirect(now)
		}
		b.redirects[t] = redirect{m.server, now.Add(min(m.redirect, mostRedirectTime))}
	}
}

// dropRedirect makes room for a redirect.
func (b *Book) dropRedirect(now time.Time) {
	var first target
	for t, r := range b.redirects {
		if !now.Before(r.until) || !first.server.IsValid() || r.until.Before(b.redirects[first].until) {
			first = t
		}
	}
	delete(b.redirects, first)
}

// end gives back what begin took.
func (b *Book) end(now time.Time, t target, m *machine, barren bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.page(now, t.server)
	p.open--
	if m.pinned.IsValid() {
		p.bursts++
	} else {
		delete(b.redirects, t)
	}
	if m.reason != "" && m.reason != reasonLeft && m.reason != reasonMulticast {
		p.reason = m.reason
		p.works = p.works && m.pinned.IsValid()
	}
	if m.reason == reasonNoAnswer {
		if p.silent++; p.silent >= forgetAfter {
			p.spoken, p.reply, p.silent = nil, 0, 0
		}
	}
	if barren {
		if len(b.barren) >= maxBarren {
			clear(b.barren)
		}
		b.barren[t.group] = now.Add(barrenTime)
	}
}

// ServerStatus is what is known of one server.
type ServerStatus struct {
	Server  netip.AddrPort
	Dialect string        // that it answers in; empty: none yet
	Reply   time.Duration // its usual time to answer; 0: not known
	Works   bool          // the last bursts came
	Reason  string        // of the last fall back since a burst came; empty: none
	Open    int           // bursts now
	Asked   int64         // conversations
	Bursts  int64         // of them with a burst
	Age     time.Duration // since it was last asked
}

// Status returns what is known, by server.
func (b *Book) Status(now time.Time) []ServerStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]ServerStatus, 0, len(b.servers))
	for server, p := range b.servers {
		s := ServerStatus{
			Server: server, Reply: p.reply, Works: p.works, Reason: p.reason,
			Open: p.open, Asked: p.asked, Bursts: p.bursts, Age: now.Sub(p.lastUsed),
		}
		if p.spoken != nil {
			s.Dialect = p.spoken.name()
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(x, y ServerStatus) int { return cmp.Compare(x.Server.String(), y.Server.String()) })
	return out
}
