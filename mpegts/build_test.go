package mpegts

import (
	"bytes"
	"encoding/binary"
)

// PIDs of the streams that tests build.
const (
	testPMT   = 0x01F0
	testVideo = 0x0200
	testAudio = 0x028A
)

// Stream types of them.
const (
	typeMPEG2 = 0x02
	typeAudio = 0x03
	typeH264  = 0x1B
	typeHEVC  = 0x24
	typeVVC   = 0x33
	typeAVS   = 0x42
	typeAVS2  = 0xD2
	typeAVS3  = 0xD4
)

// mux builds a transport stream.
type mux struct {
	out []byte
	cc  [numPIDs]uint8 // next counter of each PID
}

func (m *mux) pos() int64 { return int64(len(m.out)) }

// last returns the packet most recently written, for tests to spoil.
func (m *mux) last() Packet { return m.out[len(m.out)-PacketSize:] }

// packet writes one packet. flags and fields are the start of an adaptation
// field, which is then stuffed to make payload end with the packet.
func (m *mux) packet(pid uint16, start bool, fields, payload []byte) Packet {
	room := PacketSize - headerSize - len(payload)
	p := make([]byte, headerSize, PacketSize)
	p[0] = SyncByte
	binary.BigEndian.PutUint16(p[1:], pid)
	if start {
		p[1] |= unitStartBit
	}
	p[3] = (m.cc[pid] - 1) & counterBits
	if len(payload) > 0 {
		p[3] = m.cc[pid] | payloadBit
		m.cc[pid] = (m.cc[pid] + 1) & counterBits
	}
	if room > 0 {
		p[3] |= adaptationBit
		p = append(p, byte(room-1))
		if room > 1 && len(fields) == 0 {
			fields = []byte{0}
		}
		p = append(p, fields...)
		p = append(p, bytes.Repeat([]byte{0xFF}, PacketSize-len(payload)-len(p))...)
	}
	m.out = append(m.out, append(p, payload...)...)
	if len(m.out)%PacketSize != 0 {
		panic("mpegts: test packet of the wrong size")
	}
	return m.last()
}

// unit writes data over as many packets as it takes, with at most first bytes
// of it in the first one.
func (m *mux) unit(pid uint16, data []byte, first int) {
	n := min(len(data), first, PacketSize-headerSize)
	m.packet(pid, true, nil, data[:n])
	m.more(pid, data[n:])
}

// more goes on with a unit.
func (m *mux) more(pid uint16, data []byte) {
	for len(data) > 0 {
		n := min(len(data), PacketSize-headerSize)
		m.packet(pid, false, nil, data[:n])
		data = data[n:]
	}
}

// section writes a section, padded with stuffing bytes as tables are.
func (m *mux) section(pid uint16, section []byte) {
	data := append([]byte{0}, section...)
	for len(data)%(PacketSize-headerSize) != 0 {
		data = append(data, 0xFF)
	}
	m.unit(pid, data, PacketSize)
}

// tables writes a PAT with a network entry first, and a PMT of one video and
// one audio stream.
func (m *mux) tables(videoType byte) {
	m.section(0, patSection(0, program{0, 0x10}, program{1, testPMT}))
	m.section(testPMT, pmtSection(1, 0, es{videoType, testVideo}, es{typeAudio, testAudio}))
}

// pes writes an elementary stream as one PES packet on the video PID.
func (m *mux) pes(data []byte) { m.unit(testVideo, pesPacket(data), PacketSize) }

func (m *mux) null() {
	m.packet(NullPID, false, nil, bytes.Repeat([]byte{0xFF}, PacketSize-headerSize))
}

func (m *mux) audio() { m.packet(testAudio, false, nil, make([]byte, PacketSize-headerSize)) }

// pesPacket puts a header with PTS and DTS before data.
func pesPacket(data []byte) []byte {
	b := []byte{0, 0, 1, 0xE0, 0, 0, 0x80, 0xC0, 10, 0x31, 0, 1, 0, 1, 0x11, 0, 1, 0, 1}
	return append(b, data...)
}

type es struct {
	streamType byte
	pid        uint16
}

func patSection(version byte, programs ...program) []byte {
	var b []byte
	for _, p := range programs {
		b = binary.BigEndian.AppendUint16(b, p.number)
		b = binary.BigEndian.AppendUint16(b, 0xE000|p.pmtPID)
	}
	return longSection(tablePAT, 0x0001, version, b)
}

// pmtSection describes a program with that many bytes of descriptors.
func pmtSection(number uint16, descriptors int, streams ...es) []byte {
	b := []byte{0xE0 | testVideo>>8, testVideo & 0xFF}
	b = binary.BigEndian.AppendUint16(b, 0xF000|uint16(descriptors))
	b = append(b, bytes.Repeat([]byte{0x80}, descriptors)...)
	for _, e := range streams {
		b = append(b, e.streamType)
		b = binary.BigEndian.AppendUint16(b, 0xE000|e.pid)
		b = append(b, 0xF0, 0)
	}
	return longSection(tablePMT, number, 0, b)
}

func longSection(tableID byte, extension uint16, version byte, body []byte) []byte {
	b := []byte{tableID}
	b = binary.BigEndian.AppendUint16(b, 0xB000|uint16(len(body)+5+sectionCRCSize))
	b = binary.BigEndian.AppendUint16(b, extension)
	b = append(b, 0xC1|version<<1, 0, 0)
	b = append(b, body...)
	return binary.BigEndian.AppendUint32(b, slowCRC(b))
}

// slowCRC is CRC-32/MPEG-2 bit by bit.
func slowCRC(b []byte) uint32 {
	c := ^uint32(0)
	for _, x := range b {
		for i := 7; i >= 0; i-- {
			feedback := c>>31 != uint32(x>>i&1)
			c <<= 1
			if feedback {
				c ^= 0x04C11DB7
			}
		}
	}
	return c
}

// units joins pieces of an elementary stream, each behind a start code.
func units(pieces ...[]byte) []byte {
	var b []byte
	for _, p := range pieces {
		b = append(b, 0, 0, 1)
		b = append(b, p...)
	}
	return b
}

// nal is a unit that begins with the given bytes and has filler behind them.
func nal(begin ...byte) []byte { return append(begin, bytes.Repeat([]byte{0xA5}, 12)...) }

// Access units that begin the way encoders write them.
var (
	h264Delimiter = []byte{0x09, 0x10}
	h264SPS       = nal(0x67, 0x64)
	h264PPS       = nal(0x68, 0xEE)
	h264IDR       = units(h264Delimiter, h264SPS, h264PPS, nal(0x06, 0x01, 0x0B), nal(0x65, 0x88))
	h264Inter     = units(h264Delimiter, nal(0x41, 0x9A))
	h264Recovery  = units(h264Delimiter, h264SPS, h264PPS, []byte{0x06, 0x00, 0x02, 0, 0, 0x03, 0x06, 0x01, 0xC4, 0x80}, nal(0x41, 0x9A))
	hevcCRA       = units([]byte{0x46, 1, 0x50}, nal(0x40, 1), nal(0x42, 1), nal(0x44, 1), nal(0x2A, 1))
	hevcTrail     = units([]byte{0x46, 1, 0x50}, nal(0x02, 1))
	mpeg2I        = units(nal(0xB3), nal(0xB5), nal(0xB8), []byte{0x00, 0x00, 0x0F, 0xFF}, nal(0x01))
	mpeg2P        = units([]byte{0x00, 0x00, 0x57, 0xFF}, nal(0x01))
	avsI          = units(nal(0xB0), nal(0xB5), nal(0xB3), nal(0x00))
	avsP          = units(nal(0xB6), nal(0x00))
)
