package fcc

import (
	"net/netip"
	"slices"
	"time"

	"zapcast/fcc/wire"
)

// state is where a conversation stands.
//
//	asking ──answer──► granted ──media──► bursting ──sync──► joining ──reached──► ending ──► ended
//	   │ ▲ redirect       │                   │                 │                   ▲
//	   └─┘                └───────────────────┴─────────────────┴──── fall back ────┘
//
// The group may be joined in each of them: at once (hedged), or when the server
// says so, does not answer in time, or fails.
type state uint8

const (
	idle     state = iota
	asking         // a request is out
	granted        // a burst was promised
	bursting       // it comes
	joining        // the server was told, or said itself, where it ends
	ending         // a termination is out: does the server stop?
	ended
)

func (s state) String() string {
	return [...]string{"idle", "asking", "granted", "bursting", "joining", "ending", "ended"}[s]
}

// Why a source began, or went on, without a burst. docs/fcc.md explains each.
const (
	reasonNoAnswer  = "no answer"
	reasonRefused   = "refused"
	reasonJoin      = "server says join"
	reasonRedirects = "too many redirects"
	reasonNoMedia   = "granted, nothing came"
	reasonStopped   = "burst stopped early"
	reasonLonger    = "burst did not end"
	reasonMulticast = "multicast was first"
	reasonBare      = "multicast without sequence numbers"
	reasonUnrelated = "other sequence numbers than the multicast"
	reasonFull      = "too much multicast waited"
	reasonBusy      = "too many bursts of this server"
	reasonBarren    = "no multicast after the last burst"
	reasonSocket    = "no socket"
	reasonIPv6      = "no IPv6 form"
	reasonLeft      = "viewer left"
)

type actionKind uint8

const (
	actSend   actionKind = iota // bytes to an address
	actJoin                     // join the group, if that has not been done
	actSplice                   // wait for the burst no longer
)

// An action is what a machine wants done.
type action struct {
	kind   actionKind
	to     netip.AddrPort
	bytes  []byte // empty: an empty datagram
	signal bool   // from the signalling socket, where there is one
	copies int
}

// A machine is the client's half of a conversation. Its methods take events and
// the time; what is to be done is in actions afterwards. It ends by itself, at
// the latest longestTime and a second after it has begun, if tick is called.
type machine struct {
	subject
	join string // Hedged or OnSync
	plan []dialect
	next int // in plan: the dialect to be tried next

	state   state
	reason  string // of the fall back; empty: none
	actions []action

	tried     []dialect
	spoken    dialect        // that the server has answered in; nil: none yet
	implied   bool           // it has not answered but with the burst
	refusal   string         // what it said in a dialect, of several that are tried
	home      netip.AddrPort // the server that was configured
	server    netip.AddrPort // where signalling goes now
	asked     netip.Addr     // whom the last request went to
	answered  netip.Addr     // who sent the answer that counts
	named     netip.Addr     // who it says sends the burst; zero value: nobody
	pinned    netip.Addr     // whom the burst comes from
	redirects []netip.AddrPort
	redirect  time.Duration // how long the last redirect may be kept

	began     time.Time
	askedAt   time.Time     // first request in this dialect to this server
	replyTime time.Duration // of the answer that counts; 0: none
	retry     time.Duration
	retryAt   time.Time
	giveUpAt  time.Time // of asking, or of the grant
	joinAt    time.Time // join although no answer has come; zero: has been done
	syncAt    time.Time // join although no sync notice has come
	mediaAt   time.Time // last packet of the burst, later by what the line was silent for; zero: none
	heardAt   time.Time // last packet of the multicast; zero: none
	reportAt  time.Time
	joinAfter *time.Duration

	first    *uint16 // first packet of the multicast
	synced   bool
	tellAt   time.Time // by then the server should have stopped
	told     int       // terminations so far
	lastWord *uint16   // what they said
	graceAt  time.Time // a late answer may come until then
}

// newMachine returns a machine that will ask the server home, or another that it
// is known to name, as the advice has it.
func newMachine(s subject, home netip.AddrPort, a advice, join string) *machine {
	m := &machine{subject: s, home: home, server: a.server, plan: a.plan, join: join, retry: unknownRetry}
	if a.reply > 0 {
		m.retry = min(max(2*a.reply, leastRetry), mostRetry)
	}
	return m
}

// start sends the first request.
func (m *machine) start(now time.Time) {
	m.began, m.giveUpAt, m.graceAt = now, now.Add(requestTime), now.Add(requestTime)
	m.state = asking
	if m.join == Hedged {
		m.wantJoin()
	} else {
		wait := unknownJoin
		if m.retry != unknownRetry {
			wait = min(max(2*m.retry, leastJoin), mostJoin)
		}
		m.joinAt = now.Add(wait)
	}
	m.ask(now, true)
}

// ask sends a request: in the next dialect of the plan, or in the last one again.
func (m *machine) ask(now time.Time, next bool) {
	if next || m.next == 0 {
		m.next = m.next%len(m.plan) + 1
		m.askedAt = now
	}
	d := m.plan[m.next-1]
	if !slices.Contains(m.tried, d) {
		m.tried = append(m.tried, d)
	}
	m.asked = m.server.Addr()
	m.redirected = len(m.redirects) > 0
	m.send(m.server, d, d.request(&m.subject), copies)
	m.retryAt = now.Add(m.retry)
}

func (m *machine) send(to netip.AddrPort, d dialect, b []byte, copies int) {
	m.actions = append(m.actions, action{kind: actSend, to: to, bytes: b, signal: d.twin(), copies: copies})
}

func (m *machine) wantJoin() {
	m.joinAt = time.Time{}
	m.actions = append(m.actions, action{kind: actJoin})
}

// received takes an RTCP packet.
func (m *machine) received(now time.Time, from netip.AddrPort, p wire.Packet) {
	if m.state == idle || m.state == ended {
		return
	}
	for _, d := range m.tried {
		a, ok := d.answer(&m.subject, p)
		if !ok {
			continue
		}
		if m.answered.IsValid() && !m.implied && !m.known(from.Addr()) {
			return // somebody else's word
		}
		m.hear(now, from, d, a)
		return
	}
}

// known reports whether an address has a part in the conversation once there
// was an answer.
func (m *machine) known(a netip.Addr) bool {
	return a == m.answered || a == m.asked || a == m.named || a == m.server.Addr()
}

func (m *machine) hear(now time.Time, from netip.AddrPort, d dialect, a answer) {
	if a.stream != nil {
		m.stream = *a.stream
	}
	switch m.state {
	case asking:
		if m.hasRedirected(from.Addr()) && from.Addr() != m.server.Addr() {
			return // a copy of what it said
		}
		m.answer(now, from, d, a)
	case granted, bursting, joining:
		switch {
		case a.kind == answerBurst && m.implied: // overtaken by its burst
			m.spoken, m.answered, m.implied = d, from.Addr(), false
			m.adopt(a)
		case a.kind == answerSync && d == m.spoken:
			m.sync(now)
		case a.kind == answerUpdate && d == m.spoken:
			m.joinAfter = a.joinAfter
			m.armJoin()
		case a.kind == answerBurst && d != m.spoken: // two bursts of one channel would be one too many
			m.send(m.server, d, d.termination(&m.subject, nil), copies)
		case a.kind == answerRefused && d == m.spoken && m.state != joining: // thought better of
			m.fallBack(now, reasonRefused+": "+a.reason)
		}
	case ending:
		if a.kind == answerBurst && !m.answered.IsValid() { // too late: nobody wants it any more
			m.spoken, m.answered = d, from.Addr()
			m.adopt(a)
			m.tell(now, m.lastWord)
		}
	}
}

func (m *machine) hasRedirected(a netip.Addr) bool {
	return slices.ContainsFunc(m.redirects, func(r netip.AddrPort) bool { return r.Addr() == a })
}

// answer acts on the answer to a request.
func (m *machine) answer(now time.Time, from netip.AddrPort, d dialect, a answer) {
	switch a.kind {
	case answerRedirect:
		m.follow(now, d, a)
	case answerBurst:
		m.spoken, m.answered, m.replyTime = d, from.Addr(), now.Sub(m.askedAt)
		m.grant(now, a)
	case answerJoin:
		m.spoken, m.answered, m.replyTime = d, from.Addr(), now.Sub(m.askedAt)
		m.fallBack(now, reasonJoin)
	case answerRefused:
		m.spoken, m.refusal = d, a.reason
		switch {
		case m.goHome(now):
		case d != m.plan[m.next-1]: // a copy of what made us try the next
		case len(m.plan) > len(m.tried):
			m.ask(now, true)
		default:
			m.replyTime = now.Sub(m.askedAt)
			m.fallBack(now, reasonRefused+": "+a.reason)
		}
	}
}

// follow asks the server that a redirect names.
func (m *machine) follow(now time.Time, d dialect, a answer) {
	target := m.server
	if a.server.IsValid() {
		target = netip.AddrPortFrom(a.server, target.Port())
	}
	if a.signalPort != 0 {
		target = netip.AddrPortFrom(target.Addr(), a.signalPort)
	}
	if target == m.server && len(m.redirects) > 0 {
		return // a copy of what brought us here
	}
	m.redirects = append(m.redirects, m.server)
	if len(m.redirects) > maxRedirects || !goodTarget(target) {
		m.fallBack(now, reasonRedirects)
		return
	}
	m.server, m.redirect = target, a.valid
	m.plan, m.next = []dialect{d}, 0
	m.spoken, m.giveUpAt, m.graceAt = d, now.Add(requestTime), now.Add(requestTime)
	m.ask(now, true)
}

// goHome asks the server that was configured, where a redirect that was
// remembered has led nowhere.
func (m *machine) goHome(now time.Time) bool {
	if m.server == m.home || len(m.redirects) > 0 {
		return false
	}
	m.tell(now, nil)
	m.told, m.next = 0, 0
	m.server = m.home
	m.ask(now, true)
	return true
}

// goodTarget keeps a redirect from making us send to many.
func goodTarget(to netip.AddrPort) bool {
	a := to.Addr()
	return a.Is4() && to.Port() != 0 && !a.IsMulticast() && !a.IsUnspecified() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func (m *machine) move(a answer) {
	host, port := m.server.Addr(), m.server.Port()
	if a.server.IsValid() && goodTarget(netip.AddrPortFrom(a.server, 1)) {
		m.named, host = a.server, a.server
	}
	if a.sender.IsValid() {
		m.named = a.sender
	}
	if a.signalPort != 0 {
		port = a.signalPort
	}
	m.server = netip.AddrPortFrom(host, port)
}

// grant takes up a promised burst.
func (m *machine) grant(now time.Time, a answer) {
	m.adopt(a)
	m.joinAfter = a.joinAfter
	m.expect(now, granted)
}

// adopt takes over where a grant says that things are, and opens the way from
// there through a translating router.
func (m *machine) adopt(a answer) {
	old := m.server
	m.move(a)
	if a.mediaPort != 0 {
		host := m.server.Addr()
		if m.named.IsValid() {
			host = m.named
		}
		m.actions = append(m.actions, action{kind: actSend, to: netip.AddrPortFrom(host, a.mediaPort), bytes: a.punch, copies: copies})
	}
	if m.server != old {
		m.send(m.server, m.spoken, nil, copies)
	}
}

// expect goes to a state in which a burst is expected.
func (m *machine) expect(now time.Time, s state) {
	m.state, m.joinAt = s, time.Time{} // it has answered: the join is the server's to say
	m.giveUpAt, m.syncAt = now.Add(firstMedia), now.Add(syncTime)
	m.reportAt = now.Add(m.reportEvery())
}

func (m *machine) reportEvery() time.Duration {
	return min(max(2*m.replyTime, 50*time.Millisecond), time.Second)
}

// media takes notice of a packet that may be the burst's, and reports whether
// it is.
func (m *machine) media(now time.Time, from netip.AddrPort) bool {
	if m.pinned.IsValid() && from.Addr() != m.pinned || m.named.IsValid() && !m.known(from.Addr()) {
		return false
	}
	switch m.state {
	case asking: // as good as an answer, from whoever was asked
		if from.Addr() != m.asked {
			return false
		}
		m.spoken, m.answered, m.replyTime, m.implied = m.plan[m.next-1], from.Addr(), now.Sub(m.askedAt), true
		m.expect(now, granted)
	case granted, bursting, joining:
	case ending:
		m.mediaAt = now
		if !now.Before(m.tellAt) && m.told < terminations {
			m.tell(now, m.lastWord)
		}
		return true
	default:
		return false
	}
	m.pinned = from.Addr()
	if m.mediaAt.IsZero() {
		m.mediaAt = now
		m.armJoin()
	}
	m.mediaAt = now
	if m.state == granted {
		m.state = bursting
	}
	return true
}

// armJoin sets the time of the join that RAMS servers tell, which counts from
// the first packet.
func (m *machine) armJoin() {
	if m.joinAfter != nil && !m.mediaAt.IsZero() {
		m.syncAt = m.mediaAt.Add(*m.joinAfter)
		m.joinAfter = nil
	}
}

// sync hears that the burst has caught up.
func (m *machine) sync(now time.Time) {
	if m.synced {
		return
	}
	m.synced = true
	m.wantJoin()
	if m.first != nil {
		m.joined(now, *m.first)
	}
}

// joined hears of the group's first packet, once. A server that has not said
// yet that its burst has caught up is told when it has: see reached.
func (m *machine) joined(now time.Time, first uint16) {
	m.first = &first
	if m.synced && (m.state == granted || m.state == bursting) {
		m.state = joining
		m.tell(now, new(first+overlap))
	}
}

// reached hears that burst and multicast have met.
func (m *machine) reached(now time.Time) {
	switch m.state {
	case granted, bursting:
		var first *uint16
		if m.first != nil {
			first = new(*m.first + overlap)
		}
		m.tell(now, first)
	case joining:
	default:
		return
	}
	m.end(now)
}

// fallBack gives the burst up for the multicast.
func (m *machine) fallBack(now time.Time, reason string) {
	if m.state == ending || m.state == ended || m.state == idle {
		return
	}
	m.reason = reason
	m.wantJoin()
	m.actions = append(m.actions, action{kind: actSplice})
	if m.told == 0 {
		m.tell(now, nil)
	}
	m.end(now)
}

// leave hears that nobody is there any more.
func (m *machine) leave(now time.Time) {
	m.joinAt = time.Time{}
	switch m.state {
	case asking, granted, bursting:
		m.reason = reasonLeft
		m.tell(now, nil)
		m.end(now)
	case joining:
		m.end(now)
	case idle:
		m.state = ended
	}
}

func (m *machine) end(now time.Time) {
	m.state = ending
	m.tellAt = now.Add(stubborn)
}

// tell sends the termination: to the server that has granted the burst, or in
// every dialect that it was asked in.
func (m *machine) tell(now time.Time, first *uint16) {
	said := m.tried
	if m.answered.IsValid() {
		said = []dialect{m.spoken}
	}
	for _, d := range said {
		m.send(m.server, d, d.termination(&m.subject, first), copies)
	}
	m.lastWord = first
	m.told++
	m.tellAt = now.Add(stubborn)
}

// tick does what is due.
func (m *machine) tick(now time.Time) {
	due := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	if m.state != ended && due(m.joinAt) {
		m.wantJoin()
	}
	switch m.state {
	case asking:
		switch {
		case due(m.giveUpAt) && m.refusal != "":
			m.fallBack(now, reasonRefused+": "+m.refusal)
		case due(m.giveUpAt):
			m.fallBack(now, reasonNoAnswer)
		case due(m.retryAt) && !m.goHome(now):
			m.ask(now, len(m.plan) > 1)
		}
	case granted:
		if due(m.giveUpAt) {
			m.fallBack(now, reasonNoMedia)
		}
	case bursting, joining:
		m.tickBurst(now, due)
	case ending:
		switch {
		case !due(m.tellAt):
		case m.told == terminations, now.Sub(m.mediaAt) >= stubborn && (due(m.graceAt) || m.answered.IsValid()):
			m.state = ended
		}
	}
}

func (m *machine) tickBurst(now time.Time, due func(time.Time) bool) {
	switch {
	case now.Sub(m.mediaAt) >= mediaPause, m.heardAt.Sub(m.mediaAt) >= heldPause:
		m.fallBack(now, reasonStopped)
	case now.Sub(m.began) >= longestTime:
		m.fallBack(now, reasonLonger)
	case due(m.syncAt):
		m.sync(now)
	}
	if b := m.spoken.report(&m.subject); due(m.reportAt) && m.state != ending && b != nil {
		m.send(m.server, m.spoken, b, 1)
		m.reportAt = now.Add(m.reportEvery())
	}
}

// heard notes that the multicast goes on. Time in which the whole line was
// silent, or nobody read it, is no pause of the burst.
func (m *machine) heard(now time.Time) {
	if gap := now.Sub(m.heardAt); gap > linePause && !m.heardAt.IsZero() && !m.mediaAt.IsZero() {
		m.mediaAt = m.mediaAt.Add(gap)
		if m.mediaAt.After(now) {
			m.mediaAt = now
		}
	}
	m.heardAt = now
}

// open reports whether the server may be sending, or about to.
func (m *machine) open() bool { return m.state != idle && m.state != ended }

// take returns the actions since the last take; they are valid until the next
// event.
func (m *machine) take() []action {
	a := m.actions
	m.actions = m.actions[:0]
	return a
}
