package ingest

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A ringFlow is a socketFlow that goes over to a packet ring, and back.
//
//	            the ring brings the same          no longer in both
//	bySocket ─► inTandem ─────────────► toRing ──────────────────► byRing
//	   ▲           │ it does not                                     │ it falls silent, or brings
//	   │◄──────────┘                                                 ▼ what it cannot take apart
//	   └─────────────────────────────────────────────────────────── toSocket
//
// On the way to byRing the socket is muted: it holds the membership and queues
// nothing but what is too large for a frame. Each change waits until nothing can
// be under way in the kernel, and what both bring is told by its hash (tandem),
// so that no datagram is lost or comes twice.
type ringFlow struct {
	socketFlow
	owner  *ringReceiver
	group  ipAddr
	port   uint16
	source ipAddr // zero: any

	// The rest is the loop's.
	way     flowWay
	since   time.Time // of way
	pending *ring     // waits until the flow can be attached
	ring    *ring     // attached to it
	tandem  *tandem   // what the other way is behind by
	matches int       // datagrams in a row that both brought
	missed  int       // that the ring did not bring
	reason  string    // why it is on its socket, or goes there
	gone    bool      // closed
	pieced  bool      // a datagram came in fragments
	heardAt time.Time // by the ring
	before  int       // listed datagrams that came before the socket was unmuted: only large ones are in it

	// The ring's list of what waits for the flow, and those of the same group and port.
	list, last int32
	listed     int
	sibling    *ringFlow
}

type flowWay uint8

const (
	bySocket flowWay = iota
	inTandem
	toRing
	byRing
	toSocket
)

const (
	// matchesToTrust is how many datagrams in a row the ring must bring like
	// the socket.
	matchesToTrust = 16
	// missesToGiveUp is how many the ring may leave out before it is given up.
	missesToGiveUp = 512
	// flightTime is more than a datagram takes in the kernel from the ring to
	// the socket's queue, or the other way round.
	flightTime = 2 * time.Millisecond
	// ringSilence is how long the ring may bring nothing before the socket is
	// asked.
	ringSilence = 500 * time.Millisecond
	// tandemTime is how long what the ring has delivered is looked for in the
	// socket.
	tandemTime = time.Second
	// enoughSlack is what a loop may come late by without a loss. Where the
	// choice is the receiver's, a ring takes no flow that would leave it less:
	// sockets hold more.
	enoughSlack = 100 * time.Millisecond
	// learningTime is how long a new flow runs in tandem for the ring's rate to
	// show it, and no other is taken meanwhile.
	learningTime = 2 * paceWindow
	// ringBatch is how many datagrams one Read yields at most.
	ringBatch = 256
)

const (
	reasonNotSeen   = "the ring does not show what the socket receives"
	reasonTooLarge  = "its datagrams are larger than a frame of the ring"
	reasonOverflow  = "the ring overflowed, and sockets have more room"
	reasonCrowded   = "the ring would hold less than 100 ms of all that it gets, and sockets hold more (multicast.ring is its size)"
	reasonFragments = "its datagrams come in fragments"
)

func (f *ringFlow) wants(source ipAddr) bool { return f.source == ipAddr{} || f.source == source }

// join is called by the keeper, too: the ring of another interface is asked for
// when the group is joined there.
func (f *ringFlow) join(at place) error {
	if err := f.socketFlow.join(at); err != nil {
		return err
	}
	f.owner.rings.order(order{flow: f, index: at.index, name: at.name})
	return nil
}

func (f *ringFlow) Close() error {
	f.owner.rings.order(order{flow: f})
	f.owner.rings.post(letter{flow: f})
	return f.socketFlow.Close()
}

func (f *ringFlow) Read(limit int) (datagrams [][]byte, more bool) {
	if limit <= 0 {
		return nil, false
	}
	now := f.receiver.now
	if f.way != bySocket && f.next.Load() != nil { // joined on another interface
		f.moveOut()
	}
	switch f.way {
	case bySocket:
		return f.readSocket(now, limit)
	case inTandem, toRing:
		datagrams, more = f.socketFlow.Read(limit)
		for _, b := range datagrams {
			f.tandem.led(b)
		}
		if more {
			return datagrams, true
		}
		f.follow(now)
		return datagrams, f.way == byRing
	default:
		return f.readRing(now, limit)
	}
}

// moveOut leaves the ring because the group is joined on another interface. What
// the ring has brought and the socket has not goes out first.
func (f *ringFlow) moveOut() {
	if f.way == inTandem {
		f.discard()
	}
	f.way = byRing
	if f.list == noNode {
		f.unmute()
		f.detach()
		f.turn(bySocket)
	}
}

func (f *ringFlow) readSocket(now time.Time, limit int) (datagrams [][]byte, more bool) {
	f.discard()
	datagrams, more = f.socketFlow.Read(limit)
	if f.tandem != nil { // the ring was ahead
		datagrams = slices.DeleteFunc(datagrams, func(b []byte) bool {
			known, _ := f.tandem.followed(b)
			return known
		})
		if f.tandem.waiting() == 0 || now.Sub(f.since) > tandemTime {
			f.tandem = nil
		}
		return datagrams, more
	}
	if more || f.next.Load() != nil {
		return datagrams, more
	}
	if f.ring == nil && f.pending != nil && f.pending.index == f.socket.index {
		switch {
		case f.choosy() && f.pending.full:
			f.giveUp(reasonCrowded)
		case !f.choosy() || now.Sub(f.pending.joined) >= learningTime:
			f.pending.joined = now
			f.attach()
		}
	}
	if f.ring != nil {
		f.turn(inTandem)
	}
	return datagrams, false
}

// follow compares what the ring has with what the socket has brought.
func (f *ringFlow) follow(now time.Time) {
	for f.list != noNode {
		b := f.ring.data(f.list)
		if b == nil && f.way == inTandem {
			f.giveUp(reasonTooLarge)
			return
		}
		known, missed := f.tandem.followed(b)
		if !known && f.way == toRing {
			break // the ring is ahead
		}
		if f.matches++; !known || missed > 0 {
			f.matches = 0
		}
		f.missed += missed
		f.ring.pop(f)
	}
	switch {
	case f.way == toRing:
		if now.Sub(f.since) >= flightTime {
			f.turn(byRing)
			f.reason = ""
			f.owner.cfg.Logger.Debug("source is received by the ring", "source", f.spec, "interface", f.ring.name)
		}
	case f.pieced:
		f.giveUp(reasonFragments)
	case f.missed+f.tandem.waiting() > missesToGiveUp:
		f.giveUp(reasonNotSeen)
	case f.matches < matchesToTrust || f.tandem.waiting() > 0:
	case f.choosy() && now.Sub(f.since) < learningTime:
	case f.choosy() && f.ring.crowded():
		r := f.ring
		f.giveUp(reasonCrowded)
		r.full = true // until one of the others leaves
	case f.mute():
		f.turn(toRing)
	}
}

// readRing hands out what the ring has sorted into the flow's list.
func (f *ringFlow) readRing(now time.Time, limit int) (datagrams [][]byte, more bool) {
	out := f.owner.out[:0]
	for ; len(out) < min(limit, ringBatch) && f.list != noNode; f.before-- {
		i := f.list
		b := f.ring.data(i)
		f.ring.pop(f)
		if b == nil {
			if f.way == byRing && f.leave(reasonTooLarge) {
				f.before++
			}
			if f.before > 0 { // one in each Read: they share a slab
				f.before--
				out = f.readLarge(out)
				break
			}
			continue
		}
		if f.way == toSocket {
			if f.before <= 0 {
				f.tandem.led(b)
			}
		} else if f.tandem != nil { // the socket has been ahead
			if known, _ := f.tandem.followed(b); known {
				continue
			}
			f.tandem = nil
		}
		if len(out) == 0 {
			if from, ok := f.ring.sender(i); ok {
				f.senders.see(now, from)
			}
		}
		out = append(out, b)
	}
	f.before = max(f.before, 0)
	f.owner.out = out
	f.datagrams += int64(len(out))
	if len(out) > 0 {
		f.heardAt = now
	}
	switch {
	case f.list != noNode:
		return out, true
	case f.way == toSocket:
		if now.Sub(f.since) >= flightTime {
			f.way = bySocket
			if f.reason != "" {
				f.giveUp(f.reason)
			}
		}
	case f.pieced:
		f.leave(reasonFragments)
	case f.ring.lostAt.After(f.since) && f.choosy():
		f.leave(reasonOverflow)
	case now.Sub(f.heardAt) >= ringSilence:
		f.leave("")
	}
	return out, false
}

// readLarge takes from the muted socket the datagram that the ring showed cut:
// only such wait there.
func (f *ringFlow) readLarge(out [][]byte) [][]byte {
	f.slab = f.receiver.jumboSlab()
	if n, _ := f.slab.receive(f.socket.fd, 1); n > 0 {
		out = append(out, f.slab.collect(n)...)
	}
	return out
}

// leave begins the way back to the socket.
func (f *ringFlow) leave(reason string) bool {
	if !f.unmute() {
		return false
	}
	f.turn(toSocket)
	f.reason, f.before = reason, f.listed
	return true
}

// giveUp leaves the ring for good, or until the group is joined elsewhere.
func (f *ringFlow) giveUp(reason string) {
	r := cmp.Or(f.ring, f.pending)
	if f.way == inTandem {
		f.turn(bySocket)
	}
	f.reason = reason
	f.owner.cfg.Logger.Info("source is received by its socket", "source", f.spec, "interface", r.name, "reason", reason)
	f.detach()
	f.promise(nil)
	f.owner.rings.order(order{flow: f})
}

func (f *ringFlow) turn(way flowWay) {
	f.way, f.since = way, f.receiver.now
	switch way {
	case inTandem:
		f.tandem, f.matches, f.missed, f.pieced = newTandem(), 0, 0, false
	case toSocket:
		f.tandem = newTandem()
	case bySocket:
		f.tandem = nil
	case byRing:
		f.heardAt = f.since
	}
}

// promise keeps a ring that the flow can be attached to; nil: none.
func (f *ringFlow) promise(r *ring) {
	if f.pending != nil {
		f.owner.disuse(f.pending)
	}
	if f.pending = r; r != nil {
		r.users++
	}
}

// attach makes the ring sort datagrams for the flow, from the next walk on.
func (f *ringFlow) attach() {
	r := f.pending
	f.pending, f.ring = nil, r
	r.flows = append(r.flows, f)
	r.table.build(r.flows)
	if !slices.Contains(f.owner.active, r) {
		f.owner.active = append(f.owner.active, r)
	}
}

// beginOnRing is for tests: what they send first is to come by the ring.
func (f *ringFlow) beginOnRing() {
	f.owner.rings.settle()
	for n := 1; f.mute() && n > 0; {
		n, _ = f.slab.receive(f.socket.fd, 1)
	}
}

// choosy reports whether the ring has to be at least as safe as the socket.
func (f *ringFlow) choosy() bool { return f.owner.cfg.Receive != ReceiveRing }

func (f *ringFlow) detach() {
	r := f.ring
	if r == nil {
		return
	}
	f.discard()
	r.flows = slices.DeleteFunc(r.flows, func(other *ringFlow) bool { return other == f })
	r.table.build(r.flows)
	r.pace.relearn()
	r.full = false
	f.ring = nil
	f.owner.disuse(r)
}

// discard lets go of what waits in the ring.
func (f *ringFlow) discard() {
	for f.list != noNode {
		f.ring.pop(f)
	}
}

// mute makes the socket drop what a frame of the ring has room for.
func (f *ringFlow) mute() bool {
	header := uint32(ip4Header)
	if f.spec.Group.Addr().Is6() {
		header = ip6Header
	}
	// A filter of a UDP socket begins at the UDP header.
	f.muted = f.socket.filter(
		unix.SockFilter{Code: loadLength},
		unix.SockFilter{Code: jumpMore, K: frameRoom - header, Jf: 1},
		unix.SockFilter{Code: answer, K: takeAll},
		unix.SockFilter{Code: answer, K: takeNone})
	return f.muted
}

// unmute makes the socket queue again. What was muted is no overflow.
func (f *ringFlow) unmute() bool {
	if f.muted && f.socket.filter() {
		f.muted = false
		_, f.dropped = f.socket.memory()
	}
	return !f.muted
}

func (f *ringFlow) Status(s *Status) {
	f.socketFlow.Status(s)
	s.Receive = ReceiveRing
	if f.way != byRing {
		s.Receive = receiveSocket
		if f.reason != "" {
			s.Receive += ": " + f.reason
		}
	}
	if f.ring != nil && f.way != inTandem && !f.ring.lostAt.IsZero() && f.receiver.now.Sub(f.ring.lostAt) < time.Minute {
		s.Warnings = append(s.Warnings, "the packet ring of "+f.ring.name+" overflowed within the last minute: a larger one (multicast.ring) may help")
	}
}

func (f *ringFlow) Interval() time.Duration {
	own := f.socketFlow.Interval()
	if f.way == bySocket {
		return own
	}
	shared := f.ring.pace.interval(ringParts)
	if f.way == byRing || own == 0 || (shared > 0 && shared < own) {
		return shared
	}
	return own
}
