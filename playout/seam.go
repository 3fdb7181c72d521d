package playout

import "zapcast/mpegts"

const (
	ticksPerSecond = 27_000_000 // of a PCR
	ticksPer90k    = 300

	// maxSeam27M is the longest time from the last PCR of a file to the first
	// of the next that decoding times may ask for.
	maxSeam27M = ticksPerSecond

	// maxFrame90k is the longest picture or audio frame that is believed.
	maxFrame90k = 90_000
)

// ends holds the first and last clock times of a file: what must be known of
// two files so that the second goes on where the first one stops.
type ends struct {
	pcrs              int
	firstPCR, lastPCR int64 // 27 MHz

	// Decoding times of one elementary stream: the first video, else the
	// first of any kind.
	pid               uint16
	timed, video      bool
	firstDTS, lastDTS int64 // 90 kHz
	frame             int64 // 90 kHz, from the last but one to the last; 0 if unknown
}

// sawPCR takes a PCR of the file's clock.
func (e *ends) sawPCR(pcr27M int64) {
	if e.pcrs == 0 {
		e.firstPCR = pcr27M
	}
	e.pcrs++
	e.lastPCR = pcr27M
}

// sawPacket takes any packet of the file, for the decoding times.
func (e *ends) sawPacket(p mpegts.Packet) {
	dts, video, ok := decodeTime(p)
	switch pid := p.PID(); {
	case !ok:
	case !e.timed, video && !e.video:
		*e = ends{
			pcrs: e.pcrs, firstPCR: e.firstPCR, lastPCR: e.lastPCR,
			pid: pid, timed: true, video: video, firstDTS: dts, lastDTS: dts,
		}
	case pid == e.pid:
		e.frame = 0
		if d := (dts - e.lastDTS) & (mpegts.ClockWrap90k - 1); d <= maxFrame90k {
			e.frame = d
		}
		e.lastDTS = dts
	}
}

// seam returns what is to be added to the times of the file that follows, and
// how long it is then from the last PCR before to the first one after, both in
// 27 MHz ticks.
//
// The streams' own times know best: the next picture is due one picture after
// the last. Where they do not, guess27M is taken, the time that the packets
// between those PCRs should need. The shift is always a whole number of 90 kHz
// ticks, so that PCR and PTS stay together.
func seam(before, after *ends, guess27M int64) (shift27M, length27M int64) {
	bothPCR := before.pcrs > 0 && after.pcrs > 0
	bothDTS := before.timed && after.timed && before.video == after.video && before.frame > 0
	if bothDTS {
		shift27M = (before.lastDTS + before.frame - after.firstDTS) * ticksPer90k
		length27M = after.firstPCR + shift27M - before.lastPCR
		length27M = (length27M%mpegts.ClockWrap27M + mpegts.ClockWrap27M) % mpegts.ClockWrap27M
	}
	switch {
	case bothDTS && bothPCR && length27M > 0 && length27M <= maxSeam27M:
		return shift27M, length27M
	case bothPCR:
		shift27M = before.lastPCR + max(guess27M, 1) - after.firstPCR
		up := (ticksPer90k - shift27M%ticksPer90k) % ticksPer90k
		return shift27M + up, max(guess27M, 1) + up
	default:
		return shift27M, guess27M
	}
}

// decodeTime returns the decoding time of the PES packet that begins in p: its
// DTS or, where that is the same, its PTS (ISO/IEC 13818-1 §2.4.3.6).
func decodeTime(p mpegts.Packet) (dts90k int64, video, ok bool) {
	const (
		startSize  = 9 // up to and with PES_header_data_length
		timeSize   = 5
		privateID  = 0xBD // private_stream_1, which carries AC-3 among others
		audioID    = 0xC0 // to 0xDF
		videoID    = 0xE0 // to 0xEF
		videoEnd   = 0xF0
		ptsPresent = 0x80
		dtsPresent = 0x40
	)
	b := p.Payload()
	if !p.UnitStart() || p.Scrambled() || len(b) < startSize+timeSize {
		return 0, false, false
	}
	if b[0] != 0 || b[1] != 0 || b[2] != 1 || b[6]&0xC0 != 0x80 || b[7]&ptsPresent == 0 {
		return 0, false, false
	}
	id := b[3]
	if id != privateID && (id < audioID || id >= videoEnd) {
		return 0, false, false
	}
	t := b[startSize:]
	if b[7]&dtsPresent != 0 && len(t) >= 2*timeSize {
		t = t[timeSize:]
	}
	dts90k = int64(t[0]&0x0E)<<29 | int64(t[1])<<22 | int64(t[2]&0xFE)<<14 | int64(t[3])<<7 | int64(t[4])>>1
	return dts90k, id >= videoID, true
}
