package server

import (
	"time"

	"zapcast/fanout"
)

// reportInterval is the time between two sender reports (RFC 3550 §6.2).
const reportInterval = 5 * time.Second

// A player is a connection in which a stream is interleaved. The engine's loop
// drives its machine.
type player struct {
	conn     *conn
	feed     *fanout.Feed
	waiting  bool      // the machine waits for the stream to go on
	heard    bool      // something came since the last tick
	lastWord time.Time // about when something came
	reported time.Time
}

var _ fanout.Control = (*player)(nil)

// Begin implements fanout.Control.
func (p *player) Begin(feed *fanout.Feed, first int64, at time.Time) []byte {
	p.feed, p.waiting = feed, false
	answer := p.conn.machine.started(uint16(first), at)
	p.drive() // what came behind PLAY
	return answer
}

// Receive implements fanout.Control.
func (p *player) Receive(b []byte) {
	p.heard = true
	p.conn.machine.feed(b)
	if p.feed != nil && !p.waiting {
		p.drive()
	}
}

// drive does what the machine says until it waits.
func (p *player) drive() {
	for {
		a := p.conn.machine.next()
		if a.kind == pause {
			p.feed.Pause()
		}
		if len(a.reply) > 0 {
			p.feed.Send(a.reply)
		}
		switch a.kind {
		case send, pause:
		case resume:
			p.waiting = true
			p.feed.Resume()
			return
		case end:
			p.feed.Close("the client says so")
			return
		default:
			return
		}
	}
}

// Tick implements fanout.Control: it sends reports, and ends a pause that is
// forgotten. While a stream runs, the connection itself shows that the client is
// there.
func (p *player) Tick(now time.Time, frames, bytes int64) {
	if p.heard || p.lastWord.IsZero() {
		p.heard, p.lastWord = false, now
	}
	m := &p.conn.machine
	switch {
	case p.feed == nil:
	case m.state == paused:
		if limit := p.conn.config.sessionTimeout; now.Sub(p.lastWord) > limit {
			p.feed.Close("paused, and no word from the client for " + limit.String())
		}
	case now.Sub(p.reported) >= reportInterval:
		p.reported = now
		p.feed.Send(inFrame(uint8(m.chosen.second), senderReport(m.ssrc, now, frames, bytes)))
	}
}
