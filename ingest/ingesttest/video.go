package ingesttest

import (
	"bytes"
	"encoding/binary"

	"zapcast/mpegts"
)

const (
	videoPMT = 0x1000
	videoPID = 0x100

	// videoNumberAt is where in a video packet its number stands.
	videoNumberAt = mpegts.PacketSize - 6
)

// intraPicture begins a PES packet with a picture that a decoder can begin
// with: access unit delimiter, SPS, PPS, IDR slice.
var intraPicture = []byte{
	0, 0, 1, 0xE0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1,
	0, 0, 0, 1, 0x09, 0x10, 0, 0, 0, 1, 0x67, 0x42, 0xA5, 0, 0, 0, 1, 0x68, 0xA5, 0, 0, 0, 1, 0x65, 0x88,
}

// Video returns payload n of an H.264 stream: seven TS packets, whose counters
// go on from payload to payload. Each payload whose number is a multiple of
// every begins with the tables and a random-access point. VideoNumbers reads
// such a stream.
func Video(n, every uint32) []byte {
	b := make([]byte, 0, 7*mpegts.PacketSize)
	points := (n + every - 1) / every // before this one
	count := uint64(n)*7 - uint64(points)*2
	place := uint64(0)
	begin := n%every == 0
	if begin {
		b = appendSection(b, 0, byte(points), 0x00, []byte{0, 1, 0xE0 | videoPMT>>8, videoPMT & 0xFF})
		b = appendSection(b, videoPMT, byte(points), 0x02, []byte{
			0xE0 | videoPID>>8, videoPID & 0xFF, 0xF0, 0, // PCR PID, no descriptors
			0x1B, 0xE0 | videoPID>>8, videoPID & 0xFF, 0xF0, 0, // H.264
		})
	}
	for len(b) < cap(b) {
		b = appendVideo(b, count+place, begin && place == 0)
		place++
	}
	return b
}

func appendVideo(b []byte, number uint64, begin bool) []byte {
	start := len(b)
	b = append(b, mpegts.SyncByte, videoPID>>8, videoPID&0xFF, 0x10|byte(number&15))
	if begin {
		b[start+1] |= 0x40
		b = append(b, intraPicture...)
	}
	b = append(b, bytes.Repeat([]byte{0xA5}, start+mpegts.PacketSize-len(b))...)
	for i := range 6 { // no start codes
		b[start+mpegts.PacketSize-1-i] = 0x80 | byte(number>>(7*i))
	}
	return b
}

// appendSection appends a packet that holds a table of the long form, ISO/IEC
// 13818-1 §2.4.4.
func appendSection(b []byte, pid uint16, counter, table byte, body []byte) []byte {
	section := append([]byte{table, 0xB0, byte(len(body) + 9), 0, 1, 0xC1, 0, 0}, body...)
	crc := ^uint32(0)
	for _, c := range section {
		crc ^= uint32(c) << 24
		for range 8 {
			carry := crc >> 31
			crc = crc<<1 ^ carry*0x04C11DB7
		}
	}
	end := len(b) + mpegts.PacketSize
	b = append(b, mpegts.SyncByte, 0x40|byte(pid>>8), byte(pid), 0x10|counter&15, 0)
	b = append(b, section...)
	b = binary.BigEndian.AppendUint32(b, crc)
	return append(b, bytes.Repeat([]byte{0xFF}, end-len(b))...)
}

// VideoNumbers returns the numbers of the video packets in ts, in their order,
// and whether the first of them begins a random-access point.
func VideoNumbers(ts []byte) (numbers []uint64, random bool) {
	for ; len(ts) >= mpegts.PacketSize; ts = ts[mpegts.PacketSize:] {
		p := mpegts.Packet(ts[:mpegts.PacketSize])
		if p.PID() != videoPID || !p.HasPayload() {
			continue
		}
		if len(numbers) == 0 {
			random = p.UnitStart()
		}
		n := uint64(0)
		for _, c := range p[videoNumberAt:] {
			n = n<<7 | uint64(c&0x7F)
		}
		numbers = append(numbers, n)
	}
	return numbers, random
}

// VideoFirst returns the number of the first video packet of payload n.
func VideoFirst(n, every uint32) uint64 {
	return uint64(n)*7 - uint64((n+every-1)/every)*2
}
