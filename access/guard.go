package access

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// maxWrong is how many different wrong tokens an address may try within
	// wrongWindow. A player that tries the same over and over counts once.
	maxWrong    = 10
	wrongWindow = time.Minute

	// maxOffenders bounds what is remembered of addresses.
	maxOffenders = 4096
)

// Config says who may do what. The zero value lets everybody play and view, and
// nobody but the machine itself administer.
type Config struct {
	Tokens []Token

	// LinkKey signs links to streams; see Sign. Empty: there are none.
	LinkKey string
}

// A Guard checks requests. It is safe for concurrent use.
type Guard struct {
	keys    keyring
	linkKey []byte
	now     func() time.Time

	mu        sync.Mutex // guards offenders
	offenders map[netip.Prefix]*offender
}

// An offender is an address that has tried wrong tokens.
type offender struct {
	since time.Time
	wrong []digest // different ones, at most maxWrong
}

// NewGuard returns a guard.
func NewGuard(cfg Config) *Guard {
	return &Guard{
		keys: newKeyring(cfg.Tokens), linkKey: []byte(cfg.LinkKey), now: time.Now,
		offenders: map[netip.Prefix]*offender{},
	}
}

// A Request is what a decision is made of.
type Request struct {
	Credentials
	Client netip.Addr // zero: a unix socket
	Local  bool       // it comes from the machine itself, addressed as such
	Target string     // the target without credentials, for links
}

// A Refusal is why a request may not be answered: a status code, and a sentence
// for whoever asked.
type Refusal struct {
	Code       int
	Reason     string
	RetryAfter time.Duration // zero: no use
	Wrong      bool          // a token was given, and is none of ours
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// Needs reports whether a right takes a token.
func (g *Guard) Needs(right Right) bool { return g.keys.granted(right) }

// Check decides on a request. Where it is allowed, token is the one that allows
// it; nil: it takes none. A refusal is a *Refusal.
func (g *Guard) Check(r Request, right Right) (token *Token, err error) {
	now := g.now()
	if !g.keys.granted(right) {
		if right != Admin || r.Local {
			return nil, nil
		}
		return nil, &Refusal{Code: http.StatusForbidden, Reason: "without a token for it, this is for requests from the server's own machine only"}
	}
	if right == Stream && r.Link != "" {
		switch err := g.checkLink(r.Target, r.Link, now); {
		case err == nil:
			return nil, nil
		case len(r.Secrets) == 0:
			return nil, &Refusal{Code: http.StatusUnauthorized, Reason: err.Error(), Wrong: true}
		}
	}
	if len(r.Secrets) == 0 {
		return nil, &Refusal{Code: http.StatusUnauthorized, Reason: "expected a token, found none"}
	}
	if wait := g.blocked(r.Client, now); wait > 0 {
		return nil, &Refusal{Code: http.StatusTooManyRequests, Reason: "too many wrong tokens from your address", RetryAfter: wait}
	}
	expired, poor := false, false
	for _, secret := range r.Secrets {
		t := g.keys.find(secret)
		switch {
		case t == nil:
		case !t.Expires.IsZero() && now.After(t.Expires):
			expired = true
		case !t.grants(right):
			poor = true
		default:
			return t, nil
		}
	}
	switch {
	case poor:
		return nil, &Refusal{Code: http.StatusForbidden, Reason: fmt.Sprintf("the token does not grant the right %q", right)}
	case expired:
		return nil, &Refusal{Code: http.StatusUnauthorized, Reason: "the token has expired"}
	}
	g.offend(r.Client, r.Secrets[0], now)
	return nil, &Refusal{Code: http.StatusUnauthorized, Reason: "the token is none of this server's", Wrong: true}
}

// Local reports whether a request without a token may be taken for one of the
// machine's own user: it comes over loopback or a unix socket, through nobody
// else's hands, and asks for a name that only means this machine.
func Local(client netip.Addr, forwarded bool, host string) bool {
	if client.IsValid() && !client.IsLoopback() || forwarded {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || !client.IsValid()
}

// place is what counts as one address: a home's IPv6 network is one.
func place(client netip.Addr) netip.Prefix {
	bits := 32
	if client.Is6() {
		bits = 64
	}
	p, _ := client.Prefix(bits) // the zero Prefix for a unix socket
	return p
}

// blocked is how long an address has to wait.
func (g *Guard) blocked(client netip.Addr, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.offenders[place(client)]
	if o == nil || len(o.wrong) < maxWrong {
		return 0
	}
	return max(o.since.Add(wrongWindow).Sub(now), 0)
}

// offend notes a wrong token.
func (g *Guard) offend(client netip.Addr, secret string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := place(client)
	o := g.offenders[at]
	if o == nil || now.Sub(o.since) >= wrongWindow {
		if o == nil && len(g.offenders) >= maxOffenders {
			g.forget(now)
		}
		o = &offender{since: now}
		g.offenders[at] = o
	}
	d := sha256.Sum256([]byte(secret))
	if slices.Contains(o.wrong, d) {
		return
	}
	if len(o.wrong) < maxWrong {
		o.wrong = append(o.wrong, d)
	}
	if len(o.wrong) == maxWrong {
		o.since = now
	}
}

// forget makes room among the offenders: for those whose time is over, else for
// any.
func (g *Guard) forget(now time.Time) {
	for at, o := range g.offenders {
		if now.Sub(o.since) >= wrongWindow {
			delete(g.offenders, at)
		}
	}
	for at := range g.offenders {
		if len(g.offenders) <= maxOffenders/2 { // not one by one: a flood would cost a search each
			return
		}
		delete(g.offenders, at)
	}
}

// Seconds writes a Retry-After.
func (r *Refusal) Seconds() string {
	return strconv.Itoa(int((r.RetryAfter + time.Second - 1) / time.Second))
}
