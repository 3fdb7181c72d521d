package playout

import (
	"fmt"
	"io"
	"time"

	"zapcast/mpegts"
)

const (
	// maxWait is how many packets are held while the next PCR is looked for:
	// 16 MiB, which is 100 ms at 1.3 Gbit/s, or 16 s at 8 Mbit/s.
	maxWait = 16 << 20 / packetSize

	// maxWaitConstant is enough for a first PCR and a first DTS, where the
	// pace does not depend on them.
	maxWaitConstant = 2048

	// maxPCRGap27M is the longest time between two PCRs that is taken for time
	// and not for a jump of the clock. 100 ms are allowed (ISO/IEC 13818-1
	// §2.7.2), but recordings have holes.
	maxPCRGap27M = 3 * ticksPerSecond

	// nominalRate stands in where a file's clock jumps before it has ticked.
	nominalRate = 8_000_000

	packetBits = packetSize * 8
	noPID      = 0xFFFF
)

// timeline plays files one after the other as one stream without an end in
// between, and knows when each packet is due.
//
// Packets from one PCR up to the next are spread evenly over the time between
// them. So those read since the last PCR, the span, are held until the next
// one comes; at the end of a file that is the first one of the file after it.
type timeline struct {
	rate Rate
	emit func(packet []byte, at time.Duration) error

	reader packetReader
	stamp  mpegts.Restamper
	span   []byte // whole packets, the first of them due at now27M
	raw    int    // where in span the packets not yet restamped begin
	lead   int    // packets at its beginning from before the very first PCR
	now27M int64
	excess int64 // what the last division by the constant rate left over

	cur    *pass
	before *pass // the file played before cur
}

// pass is one file on its way from beginning to end.
type pass struct {
	ends
	name     string
	joined   bool   // its times follow those of the file before
	clockPID uint16 // carrier of the PCR in use, or noPID
	waiting  int    // packets since the last PCR
	adrift   bool   // the span began elsewhere than at the last PCR

	// Packets from PCR to PCR so far and the time they took, for the mean rate.
	packets, spent27M int64
}

// estimate returns how long n packets take at the mean rate.
func (p *pass) estimate(n int) int64 {
	if p.packets == 0 {
		return int64(n) * packetBits * ticksPerSecond / nominalRate
	}
	return int64(n) * p.spent27M / p.packets
}

// run plays the files, over and over if loop is set, until emit returns an
// error. Packets are valid until emit returns, and their times never go back.
func (t *timeline) run(files []File, loop bool) error {
	known := make([]*ends, len(files))
	for {
		for i, f := range files {
			if err := t.play(f, known[i]); err != nil {
				return err
			}
			known[i] = &t.before.ends
		}
		if !loop {
			return t.close(t.before.estimate(t.held()))
		}
	}
}

// play plays one file. What comes behind its last PCR stays in the span, unless
// the rate is constant. The ends of the file are given if it was played before.
func (t *timeline) play(f File, known *ends) error {
	src, err := f.Open()
	if err != nil {
		return fmt.Errorf("playout: open %s: %w", f.Name, bare(err))
	}
	defer src.Close()

	t.cur = &pass{name: f.Name, clockPID: noPID, joined: t.before == nil}
	t.reader.reset(f.Name, src)
	for {
		p, err := t.reader.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = t.take(p, known)
		}
		if err != nil {
			return err
		}
	}
	if t.rate.BitsPerSecond == 0 && t.cur.pcrs < 2 {
		return t.cur.noClock("the whole file")
	}
	if !t.cur.joined {
		t.join(known)
	}
	t.restamp()
	t.before = t.cur
	if t.rate.BitsPerSecond > 0 {
		return t.close(0)
	}
	return nil
}

// take adds a packet to the span. Before that, a PCR in it closes the span.
func (t *timeline) take(p mpegts.Packet, known *ends) error {
	cur := t.cur
	cur.sawPacket(p)

	var err error
	switch pcr, ok := cur.clock(p); {
	case ok && cur.pcrs == 0:
		cur.sawPCR(pcr)
		if cur.joined {
			t.lead = t.held()
		} else {
			err = t.close(t.join(known))
		}
		cur.waiting = 0
	case ok:
		err = t.close(t.lasted(pcr))
		cur.sawPCR(pcr)
		cur.waiting, cur.adrift = 0, false
	case t.rate.BitsPerSecond > 0 && cur.waiting >= maxWaitConstant:
		if !cur.joined {
			t.join(known)
		}
		err = t.close(0)
		cur.waiting, cur.adrift = 0, true
	case cur.waiting >= maxWait && cur.pcrs < 2:
		err = cur.noClock("its first 16 MiB")
	case cur.waiting >= maxWait:
		// The program may have changed and its clock with it.
		err = t.close(cur.estimate(t.held()))
		cur.clockPID = noPID
		cur.waiting, cur.adrift = 0, true
	}
	t.span = append(t.span, p...)
	cur.waiting++
	return err
}

// clock returns the PCR in p if it is one of the clock in use, and a new one:
// packets sent twice repeat theirs.
func (p *pass) clock(pkt mpegts.Packet) (pcr27M int64, ok bool) {
	pcr27M, ok = pkt.PCR()
	if !ok || p.clockPID != noPID && p.clockPID != pkt.PID() {
		return 0, false
	}
	p.clockPID = pkt.PID()
	return pcr27M, p.pcrs == 0 || pcr27M != p.lastPCR
}

// lasted returns how long the span has lasted if pcr27M is the time at its end.
func (t *timeline) lasted(pcr27M int64) int64 {
	cur, n := t.cur, t.held()-t.lead
	gap := (pcr27M - cur.lastPCR + mpegts.ClockWrap27M) % mpegts.ClockWrap27M
	if gap > maxPCRGap27M || cur.adrift {
		return cur.estimate(t.held())
	}
	cur.packets += int64(n)
	cur.spent27M += gap
	return gap + gap*int64(t.lead)/int64(n)
}

// join lets the times of the file at hand follow those of the one before, and
// returns how long the span is with that.
func (t *timeline) join(known *ends) int64 {
	if known == nil {
		known = &t.cur.ends
	}
	shift, length := seam(&t.before.ends, known, t.before.estimate(t.before.waiting+t.cur.waiting))
	t.stamp.Loop((shift%mpegts.ClockWrap27M + mpegts.ClockWrap27M) % mpegts.ClockWrap27M)
	t.cur.joined = true
	return length
}

// held returns the number of packets in the span.
func (t *timeline) held() int { return len(t.span) / packetSize }

// restamp moves the times of the packets read so far.
func (t *timeline) restamp() {
	for ; t.raw < len(t.span); t.raw += packetSize {
		t.stamp.Packet(t.span[t.raw : t.raw+packetSize])
	}
}

// close hands out the span, which lasts for length27M unless the rate is
// constant, and begins the next one.
func (t *timeline) close(length27M int64) error {
	t.restamp()
	n := int64(t.held())
	if rate := t.rate.BitsPerSecond; rate > 0 {
		t.excess += n * packetBits * ticksPerSecond
		length27M = t.excess / rate
		t.excess %= rate
	}
	for i := range n {
		at := t.time(t.now27M + length27M*i/n)
		if err := t.emit(t.span[i*packetSize:(i+1)*packetSize], at); err != nil {
			return err
		}
	}
	t.now27M += length27M
	t.span, t.raw, t.lead = t.span[:0], 0, 0
	return nil
}

// time turns 27 MHz ticks of the stream into time on the line.
func (t *timeline) time(ticks27M int64) time.Duration {
	d := time.Duration(ticks27M * 1000 / 27)
	if t.rate.Factor != 0 && t.rate.Factor != 1 {
		d = time.Duration(float64(d) / t.rate.Factor)
	}
	return d
}

// noClock says that a file cannot be paced by its PCR.
func (p *pass) noClock(where string) error {
	found := "no PCR"
	if p.pcrs == 1 {
		found = "only one PCR"
	}
	return fmt.Errorf("playout: read %s: %s in %s: say how fast to play it, as in --rate 8M", p.name, found, where)
}
