package mpegts

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
)

const (
	measureBlock = 512 * PacketSize

	// maxClockStep27M is the longest time between two PCRs that is taken for
	// time passed. The standard allows 100 ms; careless muxers take more, and a
	// jump is rarely this short.
	maxClockStep27M = 10 * 27_000_000
)

// Info is what Measure finds out about a file. Clock values are in 27 MHz ticks.
type Info struct {
	Packets  int64  // whole packets in the file
	PCRPID   uint16 // whose PCRs the rest is about
	PCRs     int64  // how many there are
	FirstPCR int64
	LastPCR  int64

	// Jumps counts the places where the clock does not go on by 10 s at most.
	// The time around them is estimated, and a loop has the same jumps again.
	Jumps int64

	// Duration27M is what one pass lasts when every packet takes the average
	// time: last PCR − first PCR, and the packets before and after them.
	Duration27M int64
}

// pcrTrack adds up the clock of one PID.
type pcrTrack struct {
	count, jumps int64
	first, last  int64  // PCR values
	at           int64  // packet of the last PCR
	ticks        uint64 // time between PCRs without a jump
	packets      uint64 // packets in that time
}

// Measure reads a file of whole packets to its end. A last packet cut short is
// ignored. It is an error when there is no clock to go by, or a packet does not
// begin with a sync byte.
//
// The PID measured is the one that the PMT names, or else the one with the most
// PCRs.
func Measure(r io.Reader) (Info, error) {
	var (
		info    Info
		scanner Scanner
		tracks  = map[uint16]*pcrTrack{}
		block   = make([]byte, measureBlock)
	)
	for {
		n, err := io.ReadFull(r, block)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return info, fmt.Errorf("mpegts: measure: %w", err)
		}
		whole := block[:n-n%PacketSize]
		for at := 0; at < len(whole); at += PacketSize {
			p := Packet(whole[at : at+PacketSize])
			if p[0] != SyncByte {
				return info, fmt.Errorf("mpegts: measure: no sync byte at byte %d: not a file of %d-byte transport packets",
					info.Packets*PacketSize, PacketSize)
			}
			if pcr, ok := p.PCR(); ok {
				track := tracks[p.PID()]
				if track == nil {
					track = &pcrTrack{}
					tracks[p.PID()] = track
				}
				track.add(pcr, info.Packets, p.Discontinuity())
			}
			info.Packets++
		}
		scanner.Scan(whole, info.Packets*PacketSize-int64(len(whole)))
		if ended {
			break
		}
	}
	return info.judge(tracks, scanner.streams.pcrPID)
}

// add takes the next PCR of the PID, which stands in the given packet.
func (t *pcrTrack) add(pcr, packet int64, discontinuity bool) {
	if t.count++; t.count == 1 {
		t.first, t.last, t.at = pcr, pcr, packet
		return
	}
	step := (pcr - t.last + ClockWrap27M) % ClockWrap27M
	if discontinuity || step > maxClockStep27M {
		t.jumps++
	} else {
		t.ticks += uint64(step)
		t.packets += uint64(packet - t.at)
	}
	t.last, t.at = pcr, packet
}

// judge picks the PID to go by and fills in info.
func (info Info) judge(tracks map[uint16]*pcrTrack, named uint16) (Info, error) {
	if len(tracks) == 0 {
		return info, fmt.Errorf("mpegts: measure: no PCR in %d packets: the file has no clock to be paced by", info.Packets)
	}
	best := tracks[named]
	info.PCRPID = named
	if best == nil {
		best = &pcrTrack{}
		for _, pid := range slices.Sorted(maps.Keys(tracks)) {
			if tracks[pid].count > best.count {
				best, info.PCRPID = tracks[pid], pid
			}
		}
	}
	info.PCRs, info.FirstPCR, info.LastPCR, info.Jumps = best.count, best.first, best.last, best.jumps
	if best.ticks == 0 {
		return info, fmt.Errorf("mpegts: measure: %d PCRs on PID %d that do not advance: the file has no clock to be paced by",
			best.count, info.PCRPID)
	}
	high, low := bits.Mul64(best.ticks, uint64(info.Packets))
	if high >= best.packets {
		return info, fmt.Errorf("mpegts: measure: PCRs on PID %d make no sense", info.PCRPID)
	}
	duration, _ := bits.Div64(high, low, best.packets)
	info.Duration27M = int64(duration)
	return info, nil
}
