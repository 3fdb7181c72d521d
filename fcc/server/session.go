package server

import (
	"encoding/binary"
	"net/netip"
	"time"

	"zapcast/fcc/wire"
)

// A phase is where a burst stands.
//
//	unconfirmed ──punch──► bursting ──caught up──► following ──► over
//	     └────timeout──────────┴───termination, timeout────────────┘
type phase uint8

const (
	unconfirmed phase = iota // answered; the address is still to be shown
	bursting                 // faster than the channel
	following                // at the channel's end, told so
	over
)

// A session is a burst to a client.
type session struct {
	machine *machine
	dialect dialect
	channel *channel
	client  *client
	from    netip.AddrPort // where messages go
	media   netip.AddrPort // where the burst goes
	group   netip.Addr
	number  uint32 // what Huawei's punch shows
	answer  wire.Message
	said    byte // RAMS: messages so far

	phase  phase
	until  time.Time // the phase ends at the latest
	began  time.Time
	rate   int64 // bit/s
	pace   bucket
	cursor int64 // the next packet
	end    *ending

	sequence uint16 // RAMS: of the next packet
	packets  int64
	bytes    int64
}

// firstSequence is the number of the packet that the burst begins with.
func (s *session) firstSequence() uint16 { return s.channel.history.entry(s.cursor).sequence }

// confirm hears that the client's address exists, from the port that its burst
// is to go to where a router has changed that.
func (s *session) confirm(media netip.AddrPort, now time.Time) {
	s.client.trusted = now.Add(trustTime)
	if s.phase != unconfirmed {
		return
	}
	s.media = media
	s.start(now)
}

func (s *session) start(now time.Time) {
	s.phase, s.until = bursting, now.Add(catchUpTime)
	perTick := float64(s.rate) / 8 * mostIdle.Seconds()
	s.pace = newBucket(float64(s.rate)/8, max(perTick, 16<<10), now)
	s.pace.level = 4 << 10 // the first packets at once, not a whole tick's
	s.send(now)
}

// terminate hears where the client wants the burst to end.
func (s *session) terminate(e ending, now time.Time) {
	s.end = &e
	if e.forced || s.phase == unconfirmed {
		s.close()
		return
	}
	s.send(now) // which may find that it is there
}

// tick ends what has lasted too long, and sends what is due.
func (s *session) tick(now time.Time) {
	if s.phase != over && !now.Before(s.until) {
		s.finish()
		return
	}
	s.send(now)
}

// send sends as much as the pace, the caps and the history allow.
func (s *session) send(now time.Time) {
	if s.phase != bursting && s.phase != following {
		return
	}
	h := &s.channel.history
	if s.cursor < h.first {
		s.finish() // overtaken: the history was too short
		return
	}
	s.pace.fill(now)
	for ; s.cursor < h.next; s.cursor++ {
		e := h.entry(s.cursor)
		if s.end != nil && int16(e.sequence-s.end.first) >= 0 {
			s.close()
			return
		}
		if s.pace.level < float64(e.size) || !s.machine.bandwidth.take(float64(e.size), now) {
			return
		}
		s.pace.level -= float64(e.size)
		s.emit(h.packet(s.cursor))
	}
	if s.phase == bursting {
		s.phase, s.until = following, now.Add(overlapTime)
		s.machine.say(s.from, s.dialect.synced(s), copies)
	}
}

// emit sends a packet of the history.
func (s *session) emit(packet []byte) {
	s.packets++
	s.bytes += int64(len(packet))
	d := datagram{to: s.media, media: true, bytes: packet, session: s, packet: s.cursor}
	if s.dialect == (rams{}) {
		d.media, d.bytes = false, s.machine.retransmission(packet, s.sequence)
		s.sequence++
	}
	s.machine.out = append(s.machine.out, d)
}

// finish ends the burst on the server's side.
func (s *session) finish() {
	if s.phase == over {
		return
	}
	s.machine.say(s.from, s.dialect.finished(s), copies)
	s.close()
}

// close frees what the burst holds.
func (s *session) close() {
	if s.phase == over {
		return
	}
	s.phase = over
	s.client.sessions--
	s.client.reserved -= s.rate
	s.machine.reserved -= s.rate
	s.channel.sessions--
	s.machine.stats.BurstPackets += s.packets
	s.machine.stats.BurstBytes += s.bytes
	delete(s.machine.sessions, s.from)
	s.machine.cfg.Logger.Debug("burst ended", "client", s.media, "channel", s.channel.spec, "dialect", s.dialect.name(),
		"packets", s.packets, "told", s.end != nil)
}

// retransmission writes a packet as RFC 4588 §4 has it: the header with another
// payload type and sequence number, the original sequence number, and the rest.
// Sessions are told apart by their addresses, so the SSRC stays.
func (m *machine) retransmission(packet []byte, sequence uint16) []byte {
	const (
		typeOffset, sequenceOffset = 1, 2
		marker                     = 0x80
		extension                  = 0x10
		csrcs                      = 0x0f
		fixed                      = 12
	)
	header := fixed + 4*int(packet[0]&csrcs)
	if packet[0]&extension != 0 {
		header += 4 + 4*int(binary.BigEndian.Uint16(packet[header+2:]))
	}
	at := len(m.arena)
	m.arena = append(m.arena, packet[:header]...)
	m.arena = append(m.arena, packet[sequenceOffset], packet[sequenceOffset+1])
	m.arena = append(m.arena, packet[header:]...)
	b := m.arena[at:len(m.arena):len(m.arena)]
	b[typeOffset] = b[typeOffset]&marker | retransmissionType
	binary.BigEndian.PutUint16(b[sequenceOffset:], sequence)
	return b
}

// say sends a message, if there is one.
func (m *machine) say(to netip.AddrPort, message wire.Message, copies int) {
	if message == nil {
		return
	}
	at := len(m.arena)
	if _, standard := message.(*wire.RAMSInformation); standard {
		m.arena = wire.AppendCompound(m.arena, serverSSRC, "zapcast")
	}
	m.arena = message.Append(m.arena)
	b := m.arena[at:len(m.arena):len(m.arena)]
	for range copies {
		m.out = append(m.out, datagram{to: to, bytes: b})
	}
}
