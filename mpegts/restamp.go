package mpegts

const (
	ptsFlag  = 0x80 // byte 7 of the PES header
	dtsFlag  = 0x40
	ptsStart = pesHeaderSize
	dtsStart = ptsStart + stampSize90k

	stampSize90k = 5 // bytes of a PTS or DTS
)

// Restamper makes a file that is played again and again one endless stream: it
// moves PCR, OPCR, PTS, DTS and continuity counters so that the start of each
// pass continues the end of the one before. What happens within the file is
// kept: duplicates, gaps of the counters, discontinuity indicators. The zero
// value is ready; it is not safe for concurrent use.
type Restamper struct {
	offset27M int64 // added to every time stamp, 0 to ClockWrap27M-1
	pids      [numPIDs]counter
}

// counter maps the continuity counters of one PID.
type counter struct {
	seen  bool
	renew bool  // the next packet is the first of a pass: choose shift anew
	last  uint8 // counter last written
	shift uint8 // added to the file's counters
}

// Packet rewrites one packet of the file in place. Time stamps of a PES header
// are rewritten as far as they lie in the packet that starts it, and if that is
// not scrambled.
func (r *Restamper) Packet(p Packet) {
	pid := p.PID()
	if pid == NullPID {
		return
	}
	r.pids[pid].rewrite(p)
	if r.offset27M == 0 {
		return
	}
	for _, bit := range [...]byte{pcrBit, opcrBit} {
		if field := p.clock(bit); field != nil {
			putClock27M(field, (clock27M(field)+r.offset27M)%ClockWrap27M)
		}
	}
	if p.UnitStart() && !p.Scrambled() {
		r.stamps(p.Payload())
	}
}

// Loop says that the file begins again. What it lasts in 27 MHz ticks (see Info)
// is added to all time stamps from now on.
func (r *Restamper) Loop(duration27M int64) {
	r.offset27M = (r.offset27M + duration27M%ClockWrap27M + ClockWrap27M) % ClockWrap27M
	for i := range r.pids {
		r.pids[i].renew = r.pids[i].seen
	}
}

func (c *counter) rewrite(p Packet) {
	if c.renew {
		c.renew = false
		c.shift = c.last - p.Continuity()
		if p.HasPayload() {
			c.shift++
		}
	}
	c.seen = true
	p.setContinuity(p.Continuity() + c.shift)
	c.last = p.Continuity()
}

// stamps moves PTS and DTS of the PES header that b begins with, ISO/IEC
// 13818-1 §2.4.3.6.
func (r *Restamper) stamps(b []byte) {
	if len(b) < pesHeaderSize || b[0] != 0 || b[1] != 0 || b[2] != 1 || !hasOptionalHeader(b[3]) || b[6]&0xC0 != 0x80 {
		return
	}
	offset90k := r.offset27M / ticksPer90k
	end := min(pesHeaderSize+int(b[8]), len(b))
	if b[7]&ptsFlag != 0 && end >= ptsStart+stampSize90k {
		moveStamp(b[ptsStart:], offset90k)
	}
	if b[7]&(ptsFlag|dtsFlag) == ptsFlag|dtsFlag && end >= dtsStart+stampSize90k {
		moveStamp(b[dtsStart:], offset90k)
	}
}

func moveStamp(b []byte, offset90k int64) {
	putStamp90k(b, (stamp90k(b)+offset90k)%ClockWrap90k)
}

// hasOptionalHeader: table 2-21. Audio, video, private_stream_1 and most others
// carry the flags and stamps; these stream_ids carry bare data.
func hasOptionalHeader(streamID byte) bool {
	switch streamID {
	case 0xBC, 0xBE, 0xBF, 0xF0, 0xF1, 0xF2, 0xF8, 0xFF:
		return false
	}
	return streamID >= 0xBD
}
