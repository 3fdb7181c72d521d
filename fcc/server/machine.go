package server

import (
	"net/netip"
	"slices"
	"time"

	"zapcast/fcc/wire"
	"zapcast/ingest"
)

const (
	// serverSSRC is what the server calls itself in RTCP.
	serverSSRC = 0x7A617063

	// retransmissionType is a dynamic payload type that no parity has.
	retransmissionType = 99

	// mostDatagram is the longest datagram from a client that is looked at.
	mostDatagram = 2048
)

// A channel is a group and its history.
type channel struct {
	spec     ingest.FlowSpec
	fixed    bool // by configuration
	history  history
	sessions int
	wanted   time.Time // last request
	left     bool      // nothing is to come of its join any more
}

// A datagram is to be sent, from the media socket or the other.
type datagram struct {
	to    netip.AddrPort
	media bool
	bytes []byte // valid until the machine's next event

	session *session // of a burst's packet, else nil
	packet  int64
}

// A machine is a server without its sockets. What is to be done is in out,
// joins and leaves after each event, and gone with forget.
type machine struct {
	cfg       Config
	address   netip.Addr // ours, as far as it is configured
	mediaPort uint16

	budget    int64 // bytes that histories may still take
	channels  []*channel
	sessions  map[netip.AddrPort]*session // by where messages come from
	clients   clients
	bandwidth bucket
	reserved  int64         // bit/s of all bursts
	number    func() uint32 // of Huawei's sessions; not to be guessed

	out    []datagram
	arena  []byte
	joins  []*channel
	leaves []*channel
	stats  Stats
}

// Stats counts what a server has done.
type Stats struct {
	Channels, Sessions, Clients  int
	Requests                     int64 // understood, copies left out
	Bursts                       int64 // begun, or waiting for the client's confirmation
	Refused                      int64
	Redirected                   int64
	Ignored                      int64 // datagrams of others, too many, or not understood
	Unsent                       int64 // datagrams that the system did not take
	BurstPackets, BurstBytes     int64 // of bursts that have ended
	Retransmitted, Unretrievable int64 // packets that NACKs named
	HistoryBytes                 int64
}

func newMachine(cfg Config, number func() uint32, now time.Time) *machine {
	m := &machine{
		cfg: cfg, mediaPort: cfg.MediaPort, budget: cfg.History, number: number,
		sessions: map[netip.AddrPort]*session{}, clients: clients{all: map[netip.Addr]*client{}},
	}
	if a := cfg.Listen.Addr(); !a.IsUnspecified() {
		m.address = a
	}
	perTick := float64(cfg.Rate) / 8 * mostIdle.Seconds()
	m.bandwidth = newBucket(float64(cfg.Rate)/8, max(perTick, 64<<10), now)
	for _, spec := range cfg.Channels {
		m.open(spec, true, now)
	}
	return m
}

func (m *machine) open(spec ingest.FlowSpec, fixed bool, now time.Time) *channel {
	c := &channel{spec: spec, fixed: fixed, wanted: now, history: *newHistory(m.cfg.ChannelHistory, &m.budget)}
	m.channels = append(m.channels, c)
	m.joins = append(m.joins, c)
	return c
}

// forget makes room for the actions of the next event.
func (m *machine) forget() {
	clear(m.out)
	m.out, m.arena, m.joins, m.leaves = m.out[:0], m.arena[:0], m.joins[:0], m.leaves[:0]
}

// received takes a datagram from a client.
func (m *machine) received(b []byte, from netip.AddrPort, media bool, now time.Time) {
	if !slices.ContainsFunc(m.cfg.Networks, func(p netip.Prefix) bool { return p.Contains(from.Addr()) }) || from.Port() == 0 {
		m.stats.Ignored++
		return
	}
	c := m.clients.get(from.Addr(), now, m.cfg.ClientRate)
	if c == nil || !c.requests.take(1, now) {
		m.stats.Ignored++
		return
	}
	if m.punched(b, from, media, now) {
		return
	}
	understood := false
	for p := range wire.Packets(b) {
		message, err := wire.ParseClient(p)
		if err != nil {
			understood = understood || p.Type != wire.TypeFeedback // reports tell nothing that is needed
			continue
		}
		if r, ok := understand(message, from); ok && m.speaks(r.dialect) {
			understood = true
			m.asked(r, c, now)
		} else if e, ok := understandEnd(message); ok {
			understood = true
			if s := m.sessions[from]; s != nil {
				s.terminate(e, now)
			}
		} else if n, ok := message.(*wire.NACK); ok && m.speaks(rams{}) {
			understood = true
			m.lost(n, c, from, now)
		}
	}
	if !understood {
		m.stats.Ignored++
	}
}

func (m *machine) speaks(d dialect) bool { return slices.Contains(m.cfg.Dialects, d.name()) }

// punched takes what a client sends to the media port to show that its address
// exists: a number that only it was told, or where the dialect has none an empty
// datagram or one of FiberHome's.
func (m *machine) punched(b []byte, from netip.AddrPort, media bool, now time.Time) bool {
	if len(b) == 0 && !media {
		return true // opens the way to the signalling port
	}
	punch, err := wire.ParseHuaweiPunch(b)
	numbered := err == nil
	if !media && !numbered {
		return false
	}
	for _, s := range m.sessions {
		if s.media.Addr() != from.Addr() || s.phase == over {
			continue
		}
		if _, huawei := s.dialect.(huawei); huawei {
			if numbered && punch.Session == s.number {
				s.confirm(from, now)
				return true
			}
		} else if s.media.Port() == from.Port() && !numbered {
			s.confirm(from, now)
			return true
		}
	}
	return media
}

// asked answers a request. Copies are answered again, since answers get lost.
func (m *machine) asked(r request, c *client, now time.Time) {
	old := m.sessions[r.from]
	if old != nil && old.group == r.group.Addr() && old.dialect == r.dialect && !now.After(old.began.Add(confirmTime)) {
		m.say(r.from, old.answer, 1)
		return
	}
	m.stats.Requests++
	if len(m.cfg.Redirect) > 0 {
		m.redirect(r)
		return
	}
	if old != nil {
		old.close() // it has zapped on
	}
	ch := m.find(r, now)
	c.channel = ch
	if ch == nil {
		m.refuse(r, refusedUnknown)
		return
	}
	ch.wanted = now
	cursor, ok := ch.history.begin()
	if !ok || ch.history.rate == 0 {
		m.refuse(r, refusedEmpty)
		return
	}
	rate := m.affordable(r, c, ch.history.rate)
	if rate == 0 {
		m.refuse(r, refusedBandwidth)
		return
	}
	m.grant(r, c, ch, cursor, rate, now)
}

func (m *machine) refuse(r request, why refusal) {
	m.stats.Refused++
	m.say(r.from, r.dialect.refused(&r, why), 1)
}

func (m *machine) redirect(r request) {
	b := r.group.Addr().As4()
	to := m.cfg.Redirect[(int(b[2])<<8|int(b[3]))%len(m.cfg.Redirect)]
	if message := r.dialect.redirected(&r, to, m.cfg.RedirectTime); message != nil {
		m.stats.Redirected++
		m.say(r.from, message, 1)
		return
	}
	m.refuse(r, refusedUnknown)
}

// find returns the channel of a request, and opens one that may be asked for.
func (m *machine) find(r request, now time.Time) *channel {
	var only *channel
	for _, c := range m.channels {
		switch {
		case !r.group.Addr().IsValid() && len(m.channels) == 1:
			return c
		case c.spec.Group.Addr() != r.group.Addr(),
			r.group.Port() != 0 && c.spec.Group.Port() != r.group.Port(),
			r.source.IsValid() && c.spec.Source != r.source:
		case only != nil:
			return nil // not said which
		default:
			only = c
		}
	}
	if only != nil || r.group.Port() == 0 {
		return only
	}
	spec := ingest.FlowSpec{Group: r.group, Interface: m.cfg.Interface}
	within := slices.ContainsFunc(m.cfg.Groups, func(p netip.Prefix) bool { return p.Contains(r.group.Addr()) })
	if !within || spec.Validate() != nil || len(m.channels)-len(m.cfg.Channels) >= m.cfg.MaxChannels {
		return nil
	}
	return m.open(spec, false, now)
}

// affordable is the rate of a burst of a channel that runs at a rate, within all
// caps; 0: there is none to be had.
func (m *machine) affordable(r request, c *client, rate int64) int64 {
	if len(m.sessions) >= m.cfg.Sessions || c.sessions >= m.cfg.ClientSessions {
		return 0
	}
	burst := min(int64(float64(rate)*m.cfg.Factor), m.cfg.ClientRate-c.reserved, m.cfg.Rate-m.reserved)
	if r.most > 0 {
		burst = min(burst, r.most)
	}
	if float64(burst) < leastFactor*float64(rate) {
		return 0
	}
	return burst
}

func (m *machine) grant(r request, c *client, ch *channel, cursor, rate int64, now time.Time) {
	group := r.group.Addr()
	if !group.IsValid() {
		group = ch.spec.Group.Addr()
	}
	s := &session{
		machine: m, dialect: r.dialect, channel: ch, client: c, group: group, from: r.from,
		media: netip.AddrPortFrom(r.from.Addr(), r.media), number: m.number() | 1,
		began: now, until: now.Add(confirmTime), rate: rate, cursor: cursor,
	}
	m.sessions[r.from] = s
	m.stats.Bursts++
	c.sessions++
	c.reserved += rate
	m.reserved += rate
	ch.sessions++
	s.answer = r.dialect.granted(s)
	m.say(r.from, s.answer, 1)
	if m.cfg.Unconfirmed || !r.dialect.confirms() || now.Before(c.trusted) {
		s.start(now)
	}
}

// media takes what a group has brought.
func (m *machine) media(c *channel, datagrams [][]byte, now time.Time) {
	for _, b := range datagrams {
		c.history.add(b, now)
	}
}

// tick does what is due. It is called after media, every few milliseconds while
// there are sessions and now and then without.
func (m *machine) tick(now time.Time) {
	due := make([]*session, 0, len(m.sessions))
	for _, s := range m.sessions { // in any order: where the cap bites, nobody is always last
		due = append(due, s)
	}
	for _, s := range due {
		s.tick(now)
	}
	m.channels = slices.DeleteFunc(m.channels, func(c *channel) bool {
		if c.fixed || c.sessions > 0 || now.Sub(c.wanted) < m.cfg.Linger {
			return false
		}
		m.drop(c)
		return true
	})
	m.clients.sweep(now)
}

// failed hears that a group cannot be joined.
func (m *machine) failed(c *channel) {
	if at := slices.Index(m.channels, c); at >= 0 && !c.fixed {
		m.channels = slices.Delete(m.channels, at, at+1)
		m.drop(c)
	}
}

func (m *machine) drop(c *channel) {
	for _, s := range m.sessions {
		if s.channel == c {
			s.finish()
		}
	}
	for _, known := range m.clients.all {
		if known.channel == c {
			known.channel = nil
		}
	}
	c.history.free()
	c.left = true
	m.leaves = append(m.leaves, c)
}

// unsent hears which datagrams the system has not taken. Those of bursts are
// sent again.
func (m *machine) unsent(rest []datagram) {
	m.stats.Unsent += int64(len(rest))
	for _, d := range rest {
		if s := d.session; s != nil && s.phase != over && d.packet < s.cursor {
			back := s.cursor - d.packet
			s.cursor = d.packet
			s.packets -= back
			if s.dialect == (rams{}) {
				s.sequence -= uint16(back)
			}
		}
	}
}

// status adds up what there is.
func (m *machine) status() Stats {
	s := m.stats
	s.Channels, s.Sessions, s.Clients = len(m.channels), len(m.sessions), len(m.clients.all)
	s.HistoryBytes = m.cfg.History - m.budget
	for _, open := range m.sessions {
		s.BurstPackets += open.packets
		s.BurstBytes += open.bytes
	}
	return s
}
