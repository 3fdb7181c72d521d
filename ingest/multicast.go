package ingest

import (
	"errors"
	"time"

	"zapcast/mpegts"
)

// waitingInterval bounds the tick while packets wait, so that a stream with few
// packets does not keep them much longer than the window means to.
const waitingInterval = 15 * time.Millisecond

// The kinds of payload that Status reports.
const (
	payloadRTP  = "mp2t-rtp"
	payloadBare = "mp2t-direct"
)

// Multicast is the Source of a multicast group that carries MPEG-TS, in RTP or
// bare. Which of them it is shows in each datagram.
type Multicast struct {
	spec   FlowSpec
	flow   Flow
	window *Window
	lead   Lead // nil: none
	repair repair
	closed bool

	out     [][]byte // what the batch in hand yields
	runs    [][]byte // what a damaged datagram yields
	surplus int      // slices in out beyond one for each RTP packet or datagram

	kinds     [kinds]int64 // datagrams of each kind
	malformed int64
	badTS     int64
	spaced    bool // RTP carried TS packets of 192 or 204 bytes
	packets   int64
	bytes     int64
	payload   string
	lastData  time.Time
	strange   sample // the first datagram that could not be used
}

var _ Source = (*Multicast)(nil)

// OpenMulticast joins the group that spec names. The error says what is wrong
// with spec, or is the receiver's.
func OpenMulticast(r Receiver, spec FlowSpec) (*Multicast, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	flow, err := r.Open(spec)
	if err != nil {
		return nil, err
	}
	return newMulticast(spec, flow), nil
}

// NewUnicast returns the same for datagrams that come by another way than a
// group: sorted, put in order and counted alike. It closes the flow.
func NewUnicast(flow Flow) *Multicast { return newMulticast(FlowSpec{}, flow) }

func newMulticast(spec FlowSpec, flow Flow) *Multicast {
	return &Multicast{spec: spec, flow: flow, window: NewWindow(WindowConfig{})}
}

// Drain implements Source. Every batch that the flow yields is one Append.
func (m *Multicast) Drain(now time.Time, max int, sink Sink) (more bool) {
	m.repair.now = now
	left, more := m.read(now, max, sink)
	if !more && m.repair.gather() {
		// The media that were sent before that parity are here by now, and no loss.
		if _, more = m.read(now, left, sink); !more {
			m.useGathered(now)
		}
	}
	if !more { // else what fills the hole may be waiting already
		m.out = m.window.Expire(now, m.out)
	}
	m.deliver(now, sink)
	return more
}

// read takes up to max datagrams of the media and delivers them, before another
// flow takes their memory. It returns how many it could still have taken.
func (m *Multicast) read(now time.Time, max int, sink Sink) (left int, more bool) {
	for more = true; more && max > 0; {
		var datagrams [][]byte
		datagrams, more = m.flow.Read(max)
		for _, b := range datagrams {
			m.take(b, now)
		}
		m.deliver(now, sink)
		if len(datagrams) == 0 {
			break
		}
		max -= len(datagrams)
	}
	return max, more
}

// take sorts one datagram.
func (m *Multicast) take(b []byte, now time.Time) {
	kind := Classify(b)
	switch kind {
	case KindRTP:
		m.takeRTP(b, now)
	case KindFEC:
		m.takeParity(b, &m.repair.inBand, now)
	case KindTS:
		if m.lead != nil {
			m.lead.Bare(now)
		}
		m.takeBare(b)
	case KindForeign:
		if m.salvage(b) {
			kind = KindTS
		} else {
			m.strange.note(b)
		}
	}
	m.kinds[kind]++
}

func (m *Multicast) takeRTP(b []byte, now time.Time) {
	h, payload, ok := PeekRTP(b)
	if !ok {
		m.malformed++
		m.strange.note(b)
		return
	}
	switch {
	case mpegts.Whole(payload):
		if m.payload == "" {
			m.payload = payloadRTP
		}
	case len(payload) > 0 && h.PayloadType != payloadTypeTS && m.takeParity(b, &m.repair.inBand, now):
		return
	case len(payload) > 0:
		m.badTS++
		m.strange.note(payload)
		if !m.spaced {
			runs, bad := mpegts.Runs(nil, payload)
			m.spaced = len(runs) > 1 && bad == 0
		}
		payload = nil // its place in the sequence is not worth waiting for
	}
	packet := Packet{Seq: h.Sequence, SSRC: h.SSRC, Payload: payload}
	if m.lead == nil || !m.lead.Hold(packet, now) {
		m.out = m.window.Push(packet, now, m.out)
	}
	if m.repair.decoder != nil {
		m.remember(h, b, now)
	}
}

// takeBare hands on a datagram of TS packets as it comes.
func (m *Multicast) takeBare(b []byte) {
	if !mpegts.Whole(b) {
		if !m.salvage(b) {
			m.badTS++
			m.strange.note(b)
		}
		return
	}
	if m.payload == "" {
		m.payload = payloadBare
	}
	m.out = append(m.window.Flush(m.out), b)
}

// salvage hands on the whole packets of a datagram that has something else
// between or around them. It reports false, and hands on nothing, if they are
// less than half of it: then the sync bytes are there by chance.
func (m *Multicast) salvage(b []byte) bool {
	if len(b) < 2*mpegts.PacketSize {
		return false
	}
	var bad, good int
	m.runs, bad = mpegts.Runs(m.runs[:0], b)
	for _, run := range m.runs {
		good += len(run)
	}
	if good < len(b)/2 {
		return false
	}
	if bad > 0 {
		m.badTS++
	}
	if m.payload == "" {
		m.payload = payloadBare
	}
	m.out = append(m.window.Flush(m.out), m.runs...)
	m.surplus += len(m.runs) - 1
	return true
}

// deliver hands what the batch has yielded to sink.
func (m *Multicast) deliver(now time.Time, sink Sink) {
	if len(m.out) > 0 {
		for _, ts := range m.out {
			m.bytes += int64(len(ts))
		}
		m.packets += int64(len(m.out) - m.surplus)
		m.lastData = now
		sink.Append(m.out)
	}
	m.out, m.surplus = m.out[:0], 0
	m.window.Recycle()
}

// Interval implements Source.
func (m *Multicast) Interval() time.Duration {
	interval := m.repair.interval(m.flow.Interval())
	if _, waits := m.window.Deadline(); waits && (interval == 0 || interval > waitingInterval) {
		return waitingInterval
	}
	return interval
}

// HandedOn reports whether anything has been handed on yet.
func (m *Multicast) HandedOn() bool { return m.packets > 0 }

// Rejoin implements Source.
func (m *Multicast) Rejoin() {
	m.flow.Rejoin()
	m.repair.rejoin()
}

// Close leaves the group. Further calls do nothing.
func (m *Multicast) Close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	return errors.Join(m.flow.Close(), m.repair.close())
}
