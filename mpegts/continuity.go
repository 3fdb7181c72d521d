package mpegts

// Continuity checks that the packets of each PID count on, ISO/IEC 13818-1
// §2.4.3.3. The zero value is ready; it is not safe for concurrent use.
type Continuity struct {
	pids [numPIDs]uint8 // counter of the last packet, and the bits below
}

const (
	countSeen     = 0x10 // a packet of the PID was seen
	countRepeated = 0x20 // its last payload was sent twice
)

// Check takes the next packet of the stream. It returns false when its counter
// does not continue that of its PID, and goes on from the new one. A payload
// may be sent twice. The counter may jump where the discontinuity_indicator is
// set, and at the first packet of a PID. Null packets do not count.
func (c *Continuity) Check(p Packet) bool {
	pid := p.PID()
	if pid == NullPID {
		return true
	}
	last, cc := c.pids[pid], p.Continuity()
	c.pids[pid] = countSeen | cc
	switch {
	case last&countSeen == 0 || p.Discontinuity():
		return true
	case !p.HasPayload():
		c.pids[pid] |= last & countRepeated
		return cc == last&counterBits
	case cc == last&counterBits:
		c.pids[pid] |= countRepeated
		return last&countRepeated == 0
	}
	return cc == (last+1)&counterBits
}
