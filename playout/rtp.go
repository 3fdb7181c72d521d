package playout

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// The RTP header of RFC 3550 §5.1, with nothing optional in it, for MPEG-TS as
// in RFC 2250 §2:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---+-+-+-------+-+-------------+-------------------------------+
//	|V=2|P|X|  CC=0 |M|    PT=33    |        sequence number        |
//	+---+-+-+-------+-+-------------+-------------------------------+
//	|                     timestamp, 90 kHz                         |
//	+---------------------------------------------------------------+
//	|                             SSRC                              |
//	+---------------------------------------------------------------+
const (
	rtpHeaderSize  = 12
	rtpVersion2    = 0x80
	rtpPayloadMP2T = 33
	sequenceAt     = 2
	timestampAt    = 4
	ssrcAt         = 8

	// packetsPerDatagram fill an Ethernet frame with 188-byte packets.
	packetsPerDatagram = 7
	maxDatagram        = rtpHeaderSize + packetsPerDatagram*packetSize
)

// packer puts TS packets into datagrams that begin with an RTP header. For bare
// TS the header is left out at the time of sending.
type packer struct {
	emit func(datagram) error

	buf       [maxDatagram]byte
	used      int
	due       time.Duration // of the first packet in buf
	sequence  uint16
	timestamp uint32 // at time zero
}

// newPacker chooses SSRC, first sequence number and first timestamp by the seed.
func newPacker(seed uint64, emit func(datagram) error) *packer {
	random := rand.New(rand.NewPCG(seed, 0))
	p := &packer{emit: emit, used: rtpHeaderSize, sequence: uint16(random.Uint32()), timestamp: random.Uint32()}
	p.buf[0], p.buf[1] = rtpVersion2, rtpPayloadMP2T
	binary.BigEndian.PutUint32(p.buf[ssrcAt:], random.Uint32())
	return p
}

// add takes the next packet and hands out the datagram that it completes. The
// datagram is valid until emit returns.
func (p *packer) add(packet []byte, at time.Duration) error {
	if p.used == rtpHeaderSize {
		p.due = at
	}
	p.used += copy(p.buf[p.used:], packet)
	if p.used == maxDatagram {
		return p.flush()
	}
	return nil
}

// flush hands out what has come since the last datagram.
func (p *packer) flush() error {
	if p.used == rtpHeaderSize {
		return nil
	}
	binary.BigEndian.PutUint16(p.buf[sequenceAt:], p.sequence)
	// RFC 2250 §2: the target time of the first byte, in 90 kHz ticks.
	ticks := uint32(p.due / time.Microsecond * 9 / 100)
	binary.BigEndian.PutUint32(p.buf[timestampAt:], p.timestamp+ticks)
	d := datagram{data: p.buf[:p.used], due: p.due}
	p.sequence++
	p.used = rtpHeaderSize
	return p.emit(d)
}
