//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A datagram is an RTP header and seven TS packets. The last tagLen bytes of
// every TS packet are a tag: a magic number, the source, a 64-bit counter of
// the source's TS packets, and a CRC-32C of all that precedes it. Tag bytes are
// never zero, so that they cannot look like a start code inside the video.
const (
	tsLen       = 188
	tsPerPacket = 7
	payloadLen  = tsPerPacket * tsLen
	rtpLen      = 12
	packetLen   = rtpLen + payloadLen

	tagLen = 4 + 3 + 10 + 5
	tagOff = tsLen - tagLen
	crcOff = tsLen - 5

	pidPMT   = 0x1000
	pidVideo = 0x0100
	pidNull  = 0x1fff
)

var (
	tagMagic   = [4]byte{0xb3, 0xe7, 0x9a, 0xd5}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// put7 writes v into b, seven bits a byte, least significant first.
func put7(b []byte, v uint64) {
	for i := range b {
		b[i] = byte(v) | 0x80
		v >>= 7
	}
}

func get7(b []byte) (v uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<7 | uint64(b[i]&0x7f)
	}
	return v
}

func putTag(p []byte, source uint32, n uint64) {
	copy(p[tagOff:], tagMagic[:])
	put7(p[tagOff+4:tagOff+7], uint64(source))
	put7(p[tagOff+7:crcOff], n)
	put7(p[crcOff:tsLen], uint64(crc32.Checksum(p[:crcOff], castagnoli)))
}

// getTag reads a packet's tag; ok is false where the packet is damaged.
func getTag(p []byte) (source uint32, n uint64, ok bool) {
	if p[0] != 0x47 || [4]byte(p[tagOff:]) != tagMagic {
		return 0, 0, false
	}
	if uint32(get7(p[crcOff:tsLen])) != crc32.Checksum(p[:crcOff], castagnoli) {
		return 0, 0, false
	}
	return uint32(get7(p[tagOff+4 : tagOff+7])), get7(p[tagOff+7 : crcOff]), true
}

// The stream's shape: 25 pictures a second, one random-access point each two
// seconds, tables each 100 ms, 60 % of the rate video and null packets for the
// rest. All of it follows from the packet counter, not from the clock.
const (
	fps         = 25
	gopFrames   = 50
	psiPerSec   = 10
	videoShare  = 0.6
	idrWeight   = 8 // an IDR picture is so many times as large as another
	ptsDelay    = 45000
	clockPerSec = 90000
)

var (
	spsPPS = []byte{
		0, 0, 0, 1, 0x67, 0x64, 0x00, 0x28, 0xac, 0xd9, 0x40, 0x78, 0x02, 0x27, 0xe5, 0xc0,
		0x44, 0x00, 0x00, 0x03, 0x00, 0x04, 0x00, 0x00, 0x03, 0x00, 0xc8, 0x3c, 0x60, 0xc6, 0x58,
		0, 0, 0, 1, 0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc0,
	}
	audNAL   = []byte{0, 0, 0, 1, 0x09, 0xf0}
	spsStart = []byte{0, 0, 1, 0x67}
	idrSlice = []byte{0, 0, 1, 0x65, 0x88, 0x84}
	refSlice = []byte{0, 0, 1, 0x41, 0x9a, 0x24}
	filler   = func() (f [tsLen]byte) {
		for i := range f {
			f[i] = byte(i*7+3) | 0x80
		}
		return f
	}()
)

// tsStream makes the TS packets of one source.
type tsStream struct {
	source  uint32
	pps     float64 // TS packets a second
	counter uint64

	nextPSI            uint64 // next table is due at this packet
	nextFrame, frame   uint64
	framePackets       int // left to send of the pictures that are due
	queue              []int
	pat, pmt           [tsLen]byte
	ccPAT, ccPMT, ccVi byte
	pmtPending         bool
	inFrame            bool
	noRAI              bool // leave the random access indicator out, as many operators do
}

func newTSStream(source int, mbps float64, total int) *tsStream {
	s := &tsStream{source: uint32(source), pps: mbps * 1e6 / 8 / tsLen}
	s.frame = uint64(source * gopFrames / max(total, 1)) // sources are not in phase
	s.pat = psiPacket(0, []byte{0x00, 0xb0, 0x0d, 0x00, 0x01, 0xc1, 0, 0, 0x00, 0x01, 0xe0 | pidPMT>>8, pidPMT & 0xff})
	s.pmt = psiPacket(pidPMT, []byte{
		0x02, 0xb0, 0x12, 0x00, 0x01, 0xc1, 0, 0,
		0xe0 | pidVideo>>8, pidVideo & 0xff, 0xf0, 0, 0x1b, 0xe0 | pidVideo>>8, pidVideo & 0xff, 0xf0, 0,
	})
	return s
}

// psiPacket wraps one section, whose CRC it adds, into a TS packet.
func psiPacket(pid uint16, section []byte) (p [tsLen]byte) {
	for i := range p {
		p[i] = 0xff
	}
	p[0], p[1], p[2], p[3], p[4] = 0x47, 0x40|byte(pid>>8), byte(pid), 0x10, 0
	n := copy(p[5:], section)
	crc := uint32(0xffffffff)
	for _, b := range section {
		crc ^= uint32(b) << 24
		for range 8 {
			if crc&0x80000000 != 0 {
				crc = crc<<1 ^ 0x04c11db7
			} else {
				crc <<= 1
			}
		}
	}
	binary.BigEndian.PutUint32(p[5+n:], crc)
	return p
}

// frameSize is the number of TS packets of picture n.
func (s *tsStream) frameSize(n uint64) int {
	unit := s.pps * videoShare * gopFrames / fps / (gopFrames - 1 + idrWeight)
	if n%gopFrames == 0 {
		unit *= idrWeight
	}
	return max(1, int(unit))
}

// packet writes the next TS packet into p.
func (s *tsStream) packet(p []byte) {
	n := s.counter
	s.counter++
	if n >= s.nextFrame { // a picture is due
		s.queue = append(s.queue, s.frameSize(s.frame+uint64(len(s.queue))))
		s.nextFrame = n + uint64(s.pps/fps)
	}
	switch {
	case s.pmtPending:
		s.pmtPending = false
		copy(p, s.pmt[:])
		p[3] = 0x10 | s.ccPMT
		s.ccPMT = (s.ccPMT + 1) & 15
	case n >= s.nextPSI:
		s.nextPSI = n + uint64(s.pps/psiPerSec)
		s.pmtPending = true
		copy(p, s.pat[:])
		p[3] = 0x10 | s.ccPAT
		s.ccPAT = (s.ccPAT + 1) & 15
	case len(s.queue) > 0:
		s.video(p, n)
	default:
		copy(p, filler[:])
		p[0], p[1], p[2], p[3] = 0x47, pidNull>>8, pidNull&0xff, 0x10
	}
	putTag(p, s.source, n)
}

// video writes the next TS packet of the picture being sent.
func (s *tsStream) video(p []byte, n uint64) {
	copy(p, filler[:])
	p[0], p[1], p[2], p[3] = 0x47, pidVideo>>8, pidVideo&0xff, 0x10|s.ccVi
	s.ccVi = (s.ccVi + 1) & 15
	if !s.inFrame { // first packet: PCR, PES header, parameter sets, slice header
		s.inFrame = true
		s.framePackets = s.queue[0]
		idr := s.frame%gopFrames == 0
		p[1] |= 0x40
		p[3] |= 0x20
		p[4], p[5] = 7, 0x10
		if idr && !s.noRAI {
			p[5] |= 0x40 // random access indicator
		}
		clock := uint64(float64(n) / s.pps * clockPerSec)
		p[6], p[7], p[8], p[9] = byte(clock>>25), byte(clock>>17), byte(clock>>9), byte(clock>>1)
		p[10], p[11] = byte(clock<<7)|0x7e, 0
		b := append(p[12:12], 0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5)
		pts := clock + ptsDelay
		b = append(b, 0x21|byte(pts>>29)&0x0e, byte(pts>>22), byte(pts>>14)|1, byte(pts>>7), byte(pts<<1)|1)
		b = append(b, audNAL...)
		slice := refSlice
		if idr {
			b = append(b, spsPPS...)
			slice = idrSlice
		}
		copy(p[12+len(b):], slice)
	}
	if s.framePackets--; s.framePackets == 0 {
		s.inFrame = false
		s.frame++
		s.queue = append(s.queue[:0], s.queue[1:]...)
	}
}

// isRAP says whether a TS packet starts a picture that decoding can start at. It
// looks for the parameter sets, not for the indicator, which may be left out.
func isRAP(p []byte) bool {
	return pidOf(p) == pidVideo && p[1]&0x40 != 0 && bytes.Contains(p[12:tagOff], spsStart)
}

func pidOf(p []byte) int { return int(p[1]&0x1f)<<8 | int(p[2]) }
