package ingest

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"zapcast/fec"
	"zapcast/mpegts"
)

const (
	// defaultLatency spans a group of the operators' codes three times over.
	defaultLatency = 400 * time.Millisecond

	// parityLife is how long parity may stay away before it is not waited for.
	parityLife = time.Second

	// parityTurn bounds the parity datagrams that are read from a port in one
	// turn.
	parityTurn = 256

	payloadTypeTS = 33

	// MaxParity is how many ports a RepairConfig names at most.
	MaxParity = 4
)

// RepairConfig says how the losses of a stream may be repaired. With the zero
// value, parity on the media's own port is made use of.
type RepairConfig struct {
	// Parity is where parity comes: up to MaxParity ports, of the media's group
	// where the address is not valid. What kind it is shows by itself.
	Parity []netip.AddrPort

	// Latency bounds how long a hole waits. Default 400 ms.
	Latency time.Duration

	// Memory, if set, remembers which dialects have shown themselves.
	Memory *RepairMemory
}

// String returns the one spelling of what is repaired by which means, to be a
// part of a channel's key: "fec=4055", "fec=5002,239.1.1.2:5004". It is empty
// where nothing is configured.
func (c RepairConfig) String() string {
	ports := make([]string, len(c.Parity))
	for i, p := range c.Parity {
		ports[i] = strconv.Itoa(int(p.Port()))
		if p.Addr().IsValid() {
			ports[i] = p.String()
		}
	}
	if len(ports) == 0 {
		return ""
	}
	return "fec=" + strings.Join(ports, ",")
}

// repair is the stage beside a window that brings back what the window misses.
// Until there is parity, or a port for it, it costs a comparison a packet.
type repair struct {
	config  RepairConfig
	channel string
	decoder *fec.Decoder // nil: there is nothing that it could repair with
	ports   []*parityPort
	inBand  parityCount

	// What has come to the ports and waits for the media that were sent before
	// it: copies, whose memory is used again.
	gathered []gathered

	now     time.Time
	began   time.Time // when the first media came
	last    time.Time // when parity came; at first, when it could have
	resyncs int64     // of the window, as far as the decoder has heard
}

// A gathered datagram came to a port of parity.
type gathered struct {
	port  *parityPort
	bytes []byte
}

// A parityPort is a port that was configured for parity.
type parityPort struct {
	parityCount
	spec  FlowSpec
	flow  Flow  // nil: could not be joined
	fault error // why
}

// parityCount says what has come where parity may come.
type parityCount struct {
	parity    int64
	malformed int64 // parity by its type, but not by its header
	media     int64 // RTP with MPEG-TS, or MPEG-TS alone
	other     int64
	fault     error // of the last malformed one
}

// Repair opens the ports on which parity is to come. What cannot be opened is
// no error, for the media play without it: Status warns of it. It is called
// once, before the first Drain, and may block.
func (m *Multicast) Repair(receiver Receiver, config RepairConfig) {
	r := &m.repair
	r.config, r.channel = config, m.spec.String()
	for _, at := range config.Parity[:min(len(config.Parity), MaxParity)] {
		spec := m.spec
		spec.Group = netip.AddrPortFrom(spec.Group.Addr(), at.Port())
		if at.Addr().IsValid() {
			spec.Group = at
		}
		if spec == m.spec {
			continue // it is in band
		}
		p := &parityPort{spec: spec}
		p.flow, p.fault = receiver.Open(spec)
		r.ports = append(r.ports, p)
	}
	if len(r.ports) > 0 {
		m.beginRepair()
	}
}

// beginRepair makes the window wait for what parity may bring.
func (m *Multicast) beginRepair() {
	r := &m.repair
	r.decoder = fec.NewDecoder(fec.Config{Check: lengthOfTS})
	if dialect, ok := r.config.Memory.dialect(r.channel); ok {
		r.decoder.Remember(dialect)
	}
	latency := r.config.Latency
	if latency <= 0 {
		latency = defaultLatency
	}
	m.window.Await(r.hope, latency)
}

// hope tells the window whether a number may still be brought back.
func (r *repair) hope(seq uint16) bool {
	return r.now.Sub(r.last) < parityLife && r.decoder.Hope(seq)
}

// remember gives the decoder a datagram of the stream that has just entered the
// window.
func (m *Multicast) remember(h RTPHeader, b []byte, now time.Time) {
	r := &m.repair
	if h.SSRC != m.window.ssrc && m.lead == nil {
		return // a stray, so far
	}
	if r.began.IsZero() {
		r.began = now
		if r.last.IsZero() {
			r.last = now
		}
	}
	if m.window.stats.Resyncs != r.resyncs {
		r.resyncs = m.window.stats.Resyncs
		r.decoder.Forget()
	}
	r.decoder.Media(h.Sequence, b)
	m.mend(now)
}

// mend puts what has been computed in its place.
func (m *Multicast) mend(now time.Time) {
	for _, p := range m.repair.decoder.Take() {
		h, payload, ok := PeekRTP(p.Datagram)
		packet := Packet{Seq: h.Sequence, SSRC: h.SSRC, Payload: payload, Via: viaOf[p.Method]}
		if ok && (m.lead == nil || !m.lead.Hold(packet, now)) {
			m.out = m.window.Fill(packet, now, m.out)
		}
	}
}

var viaOf = [...]Via{fec.ReedSolomon: ViaReedSolomon, fec.Row: ViaRow, fec.Column: ViaColumn}

// takeParity takes a datagram where parity may come, and counts what it is. It
// reports whether it is parity.
func (m *Multicast) takeParity(b []byte, count *parityCount, now time.Time) bool {
	r := &m.repair
	if len(b) >= rtpHeaderBytes && b[0]>>6 == rtpVersion && b[1]&rtpPayloadType != payloadTypeTS {
		h, payload, ok := PeekRTP(b)
		if ok && (h.PayloadType == fec.RSPayloadType || h.PayloadType == fec.RSOtherType) {
			if head, parity, err := fec.ParseRS(payload); err == nil {
				m.useParity(count, now)
				r.decoder.RS(head, parity)
				m.mend(now)
				return true
			} else if h.PayloadType == fec.RSPayloadType {
				count.malformed++
				count.fault = err
				return false
			}
		}
		if head, data, err := fec.ParseXOR(b); err == nil {
			m.useParity(count, now)
			r.decoder.XOR(head, data)
			m.mend(now)
			return true
		}
	}
	switch Classify(b) {
	case KindRTP, KindTS:
		count.media++
	default:
		count.other++
	}
	return false
}

// useParity counts parity. The first in band begins the repair.
func (m *Multicast) useParity(count *parityCount, now time.Time) {
	if m.repair.decoder == nil {
		m.beginRepair()
	}
	count.parity++
	m.repair.last = now
}

// gather reads the configured ports, unless what was read before is still to be
// used. It reports whether something waits.
func (r *repair) gather() bool {
	if len(r.gathered) > 0 {
		return true
	}
	for _, p := range r.ports {
		if p.flow == nil {
			continue
		}
		for more, left := true, parityTurn; more && left > 0; {
			var datagrams [][]byte
			datagrams, more = p.flow.Read(left)
			for _, b := range datagrams {
				r.keep(p, b)
			}
			if len(datagrams) == 0 {
				break
			}
			left -= len(datagrams)
		}
	}
	return len(r.gathered) > 0
}

// keep copies a datagram into memory that was used before, where there is some.
func (r *repair) keep(p *parityPort, b []byte) {
	n := len(r.gathered)
	if n == cap(r.gathered) {
		r.gathered = append(r.gathered, gathered{})
	}
	r.gathered = r.gathered[:n+1]
	g := &r.gathered[n]
	g.port, g.bytes = p, append(g.bytes[:0], b...)
}

// useGathered takes what waits.
func (m *Multicast) useGathered(now time.Time) {
	r := &m.repair
	for _, g := range r.gathered {
		m.takeParity(g.bytes, &g.port.parityCount, now)
	}
	r.gathered = r.gathered[:0]
}

// interval is how soon the ports must be read.
func (r *repair) interval(least time.Duration) time.Duration {
	for _, p := range r.ports {
		if p.flow == nil {
			continue
		}
		if d := p.flow.Interval(); d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

func (r *repair) rejoin() {
	for _, p := range r.ports {
		if p.flow != nil {
			p.flow.Rejoin()
		}
	}
}

func (r *repair) close() error {
	if r.decoder != nil {
		r.config.Memory.note(r.channel, r.decoder.Code())
	}
	var errs []error
	for _, p := range r.ports {
		if p.flow != nil {
			errs = append(errs, p.flow.Close())
		}
	}
	return errors.Join(errs...)
}

// lengthOfTS tells how long a datagram is that parity has brought back, as far
// as its TS packets show: the rest is zeros that were added for the sum.
func lengthOfTS(b []byte) int {
	start, end := rtpHeaderBytes, len(b)
	if b[0]&^(rtpVersion<<6) != 0 {
		var ok bool
		if start, end, ok = rtpPayloadBounds(b); !ok {
			return 0
		}
	}
	n := start
	for n+mpegts.PacketSize <= end && b[n] == mpegts.SyncByte {
		n += mpegts.PacketSize
	}
	if n == end {
		return len(b)
	}
	for _, rest := range b[n:] {
		if rest != 0 {
			return 0
		}
	}
	return n
}

// A RepairMemory keeps the dialects that channels have been found to speak, so
// that their next viewer's first loss is not the one that finds out. It is safe
// for concurrent use; a nil one remembers nothing.
type RepairMemory struct {
	mu       sync.Mutex // guards dialects
	dialects map[string]fec.Dialect
}

// maxRemembered bounds a RepairMemory: more channels than a line has.
const maxRemembered = 4096

func (m *RepairMemory) dialect(channel string) (fec.Dialect, bool) {
	if m == nil {
		return 0, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dialect, ok := m.dialects[channel]
	return dialect, ok
}

func (m *RepairMemory) note(channel string, code fec.Code) {
	if m == nil || !code.Recognised {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dialects == nil || len(m.dialects) >= maxRemembered {
		m.dialects = make(map[string]fec.Dialect)
	}
	m.dialects[channel] = code.Dialect
}
