package rtsp

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// A machine is the client's side of one session, without sockets, clock and
// goroutines: what happened goes in with the time, what is to be done comes out
// of next.
//
//	          dialed          200         200       bound       200        200
//	dialing ─────────► options ──► describe ──► binding ──► setup ──► play ──► playing
//	   ▲  ▲                └───────────┴──────────┴───────────┘         │          │
//	   │  └── 3xx: at the new URL ──────────────┘                       ▼          ▼
//	   └───── dead edge: once more at the entry                       ended ◄── ended
//
// 401 sends the same request again with credentials. Everything else that is
// not 200 ends the session; end says why. A session that only asks for the
// description ends after it, without an error.
type machine struct {
	cfg     *Config
	entry   URL    // what was asked for
	url     URL    // where the session is, after redirects
	ranged  string // Range of PLAY, empty: none
	headers bool   // describe only

	state   state
	actions []action
	started time.Time // of the handshake
	err     error     // once ended; nil: as it should

	cseq     int
	waits    method // the request under way; empty: none
	waitCSeq int
	deadline time.Time // of its answer
	auths    int       // how often that request was sent again with credentials
	retry    int       // 461: the single alternative that is tried, from 1
	standard bool      // 400: only transports of RFC 2326 are offered

	challenge *challenge
	session   string
	timeout   time.Duration // of the session; 0: not told
	options   string        // Public; empty: not told
	redirects int
	retried   bool // the entry server was tried again

	local, server netip.AddrPort
	base          string // Content-Base of DESCRIBE
	sdp           description
	ports         [2]uint16      // client's, 0: none
	mapped        netip.AddrPort // by STUN, or the zero value
	transport     transport
	scale, played string // of the answer to PLAY

	live      bool      // there is a session on the server that wants a TEARDOWN
	keepAlive time.Time // when the next is due
	byOptions bool      // keep-alive by OPTIONS: GET_PARAMETER is not known there
}

type (
	state  int
	method string
)

const (
	dialing state = iota
	options
	describe
	binding
	setup
	play
	playing
	teardown
	ended
)

var stateNames = [...]string{"connecting", "OPTIONS", "DESCRIBE", "preparing UDP", "SETUP", "PLAY", "playing", "TEARDOWN", "ended"}

func (s state) String() string { return stateNames[s] }

// An action is what the driver has to do next.
type action struct {
	kind actionKind
	url  URL    // dial
	data []byte // send
}

type actionKind int

const (
	actNone  actionKind = iota
	actDial             // close the connection there is, make one to url, then call dialed
	actBind             // open the UDP ports and ask STUN where wanted, then call bound
	actSend             // send data
	actPunch            // send punch packets from the UDP ports
)

func newMachine(cfg *Config, u URL, ranged string, describeOnly bool, now time.Time) *machine {
	m := &machine{cfg: cfg, entry: u, url: u, ranged: ranged, headers: describeOnly, started: now}
	m.dial(u, now)
	return m
}

// next returns what is to be done; actNone: nothing, until something happens or
// the time is wake.
func (m *machine) next(now time.Time) (a action, wake time.Time) {
	if len(m.actions) == 0 {
		m.tick(now)
	}
	if len(m.actions) > 0 {
		a = m.actions[0]
		m.actions = m.actions[1:]
		if len(m.actions) == 0 {
			m.actions = nil
		}
		return a, now
	}
	return action{}, m.wake()
}

func (m *machine) wake() time.Time {
	switch {
	case m.state == ended:
		return time.Time{}
	case m.waits != "" && (m.keepAlive.IsZero() || m.deadline.Before(m.keepAlive)):
		return m.deadline
	}
	return m.keepAlive
}

func (m *machine) tick(now time.Time) {
	switch {
	case m.state < playing && now.Sub(m.started) > m.cfg.Handshake:
		m.end(fail(statusTimeout, "%s: no session within %v (%s)", m.url, m.cfg.Handshake, m.state))
	case m.state < playing && m.waits != "" && !now.Before(m.deadline):
		m.lost(now, fail(statusTimeout, "%s: no answer to %s within %v", m.url, m.waits, m.cfg.Timeout))
	case m.state == teardown && !now.Before(m.deadline):
		m.state = ended
	case m.state == playing && !now.Before(m.keepAlive):
		m.sendKeepAlive(now)
	}
}

// end is the end of the session; err is nil where it is as it should be.
func (m *machine) end(err error) {
	if m.state != ended {
		m.state, m.err, m.waits, m.actions = ended, err, "", nil
	}
}

// finished reports whether the session is over.
func (m *machine) finished() bool { return m.state == ended }

func (m *machine) dial(u URL, now time.Time) {
	m.url, m.state = u, dialing
	m.session, m.waits, m.challenge, m.options, m.base, m.live = "", "", nil, "", "", false
	m.actions = append(m.actions, action{kind: actDial, url: u})
}

// dialed takes the outcome of actDial.
func (m *machine) dialed(local, server netip.AddrPort, err error, now time.Time) {
	if err != nil {
		m.lost(now, err)
		return
	}
	m.local, m.server = unmap(local), unmap(server)
	m.request(options, "OPTIONS", m.url.String(), nil, now)
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// bound takes the outcome of actBind: the client's ports (0: there are none) and
// the address that STUN found, if any.
func (m *machine) bound(ports [2]uint16, mapped netip.AddrPort, now time.Time) {
	m.ports, m.mapped = ports, unmap(mapped)
	m.sendDescribe(now)
}

// closed says that the connection ended. While the session plays that is its
// end, and nothing is wrong with it.
func (m *machine) closed(err error, now time.Time) {
	switch {
	case m.state == playing:
		m.end(nil)
	case m.state == teardown:
		m.end(m.err)
	default:
		m.lost(now, fail(0, "%s: connection lost while waiting for the answer to %s: %v", m.url, m.waits, err))
	}
}

// lost is a server that is of no use. One that a redirect led to may have died
// since the entry server chose it: the entry is asked once more.
func (m *machine) lost(now time.Time, err error) {
	if m.state < playing && m.redirects > 0 && !m.retried {
		m.retried, m.redirects = true, 0
		m.cfg.Logger.Info("rtsp: the server of a redirect does not serve: asking the first one again", "source", m.url.String(), "err", err)
		m.dial(m.entry, now)
		return
	}
	m.end(err)
}

// request sends a request and goes to the state that waits for its answer.
func (m *machine) request(next state, method method, url string, extra header, now time.Time) {
	if m.waits != method || m.state != next {
		m.auths = 0
	}
	m.state = next
	m.send(method, url, extra)
	m.deadline = now.Add(m.cfg.Timeout)
}

func (m *machine) send(method method, url string, extra header) {
	m.cseq++
	m.waits, m.waitCSeq = method, m.cseq
	h := header{{"CSeq", strconv.Itoa(m.cseq)}, {"User-Agent", m.cfg.Agent}}
	if m.challenge != nil {
		user, password := m.credentials()
		h = append(h, field{"Authorization", m.challenge.authorize(user, password, string(method), url)})
	}
	if m.session != "" {
		h = append(h, field{"Session", m.session})
	}
	h = append(h, extra...)
	m.actions = append(m.actions, action{kind: actSend, data: appendRequest(nil, string(method), url, h)})
}

// credentials are those of the URL where the session is, else those of the URL
// that was asked for, as far as they may go there.
func (m *machine) credentials() (user, password string) {
	if m.url.User != "" {
		return m.url.User, m.url.Password
	}
	if m.url.Host == m.entry.Host || m.cfg.TrustRedirects {
		return m.entry.User, m.entry.Password
	}
	return "", ""
}

func (m *machine) sendDescribe(now time.Time) {
	extra := append(header{{"Accept", "application/sdp"}}, m.nat()...)
	m.request(describe, "DESCRIBE", m.url.String(), extra, now)
}

// clientAddr is the client as a vendor's servers behind NAT want it named.
func (m *machine) clientAddr() (netip.AddrPort, bool) {
	if m.cfg.NoVendor || !m.local.Addr().Is4() {
		return netip.AddrPort{}, false
	}
	if m.mapped.IsValid() && m.mapped.Addr().Is4() {
		return m.mapped, true
	}
	return m.local, true
}

func (m *machine) nat() header {
	if addr, ok := m.clientAddr(); ok {
		return header{{"x-NAT", addr.String()}}
	}
	return nil
}

func (m *machine) sendSetup(now time.Time) {
	client, ports := "", m.ports
	if addr, ok := m.clientAddr(); ok {
		client = addr.Addr().String()
	}
	if m.mapped.IsValid() {
		ports = [2]uint16{m.mapped.Port(), m.mapped.Port() + 1}
	}
	list := offers(m.cfg.Transports, ports, client, m.standard)
	if len(list) == 0 {
		m.end(fail(0, "%s: no UDP ports to be had, and UDP is the only transport allowed", m.url))
		return
	}
	if m.retry > 0 {
		list = list[m.retry-1 : m.retry]
	}
	var value strings.Builder
	value.WriteString(list[0])
	for _, more := range list[1:] {
		value.WriteString("," + more)
	}
	extra := append(header{{"Transport", value.String()}}, m.nat()...)
	m.request(setup, "SETUP", setupURL(m.url, m.base, m.sdp.control), extra, now)
}

func (m *machine) sendPlay(now time.Time) {
	var extra header
	if m.ranged != "" {
		extra = header{{"Range", m.ranged}}
	}
	m.request(play, "PLAY", m.url.String(), extra, now)
}

// interval is the pause between keep-alives.
func (m *machine) interval() time.Duration {
	if m.timeout > 0 {
		return max(keepAliveMin, min(keepAliveMax, m.timeout/2))
	}
	return keepAliveMax
}

// sendKeepAlive sends the next one. One that has not been answered within the
// interval is given up: its answer, should it come, is stale.
func (m *machine) sendKeepAlive(now time.Time) {
	m.keepAlive = now.Add(m.interval())
	name := method("GET_PARAMETER")
	if m.byOptions || m.options != "" && !listed(m.options, "GET_PARAMETER") {
		name = "OPTIONS"
	}
	m.send(name, m.url.String(), nil)
	m.deadline = m.keepAlive
	if m.transport.way == OverUDP {
		m.actions = append(m.actions, action{kind: actPunch})
	}
}

// close asks for the end of the session. It reports whether there is a session
// on the server that has to be told.
func (m *machine) close(now time.Time) bool {
	if !m.live {
		m.end(nil)
		return false
	}
	m.live, m.state, m.actions = false, teardown, nil
	m.send("TEARDOWN", m.url.String(), nil)
	m.deadline = now.Add(m.cfg.Timeout)
	return true
}

func (m *machine) String() string { return fmt.Sprintf("%s (%s)", m.url, m.state) }
