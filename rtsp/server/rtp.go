package server

import (
	"encoding/binary"
	"hash/maphash"
	"time"

	"github.com/pion/rtcp"

	"zapcast/fanout"
)

const (
	payloadType = 33   // MP2T (RFC 3551 §6)
	rtpHeader   = 12   // RFC 3550 §5.1
	packetTS    = 1316 // seven TS packets, what an Ethernet frame holds (RFC 2250 §2)
	frameHeader = 4    // '$', channel, length (RFC 2326 §10.12)
)

// A framing makes RTP packets, each of seven TS packets. Packet n of a channel
// has the same sequence number and time stamp for everybody.
type framing struct {
	ssrc        uint32
	interleaved bool  // behind '$', channel and length
	channel     uint8 // where interleaved
}

var _ fanout.Framing = framing{}

// ssrcSeed makes the SSRCs of this process its own.
var ssrcSeed = maphash.MakeSeed()

// ssrcOf is the SSRC of a channel.
func ssrcOf(key string) uint32 { return uint32(maphash.String(ssrcSeed, key)) }

// Sizes implements fanout.Framing.
func (f framing) Sizes() (header, payload int) {
	if f.interleaved {
		return frameHeader + rtpHeader, packetTS
	}
	return rtpHeader, packetTS
}

// Header implements fanout.Framing.
func (f framing) Header(dst []byte, n int64, size int, at time.Time) {
	if f.interleaved {
		dst[0], dst[1] = '$', f.channel
		binary.BigEndian.PutUint16(dst[2:], uint16(rtpHeader+size))
		dst = dst[frameHeader:]
	}
	dst[0], dst[1] = 0x80, payloadType
	binary.BigEndian.PutUint16(dst[2:], uint16(n))
	binary.BigEndian.PutUint32(dst[4:], rtpTime(at))
	binary.BigEndian.PutUint32(dst[8:], f.ssrc)
}

// rtpTime is a time as an RTP time stamp, at 90 kHz.
func rtpTime(at time.Time) uint32 { return uint32(at.UnixMicro() * 9 / 100) }

// ntpTime is a time as RFC 3550 §4 writes it: seconds since 1900 and a fraction.
func ntpTime(at time.Time) uint64 {
	const from1900 = 2_208_988_800 // seconds to 1970
	return uint64(at.Unix()+from1900)<<32 | uint64(at.Nanosecond())<<32/1e9
}

// senderReport is a compound RTCP packet (RFC 3550 §6.1) that says what was sent
// until now: packets, and bytes of TS in them.
func senderReport(ssrc uint32, now time.Time, packets, bytes int64) []byte {
	b, err := rtcp.Marshal([]rtcp.Packet{
		&rtcp.SenderReport{SSRC: ssrc, NTPTime: ntpTime(now), RTPTime: rtpTime(now), PacketCount: uint32(packets), OctetCount: uint32(bytes)},
		&rtcp.SourceDescription{Chunks: []rtcp.SourceDescriptionChunk{{
			Source: ssrc, Items: []rtcp.SourceDescriptionItem{{Type: rtcp.SDESCNAME, Text: serverName}},
		}}},
	})
	if err != nil {
		panic("rtsp/server: sender report: " + err.Error())
	}
	return b
}

// goodbye says that the channel has ended (RFC 3550 §6.6).
func goodbye(ssrc uint32) []byte {
	b, err := (&rtcp.Goodbye{Sources: []uint32{ssrc}}).Marshal()
	if err != nil {
		panic("rtsp/server: goodbye: " + err.Error())
	}
	return b
}

// inFrame puts a packet into an interleaved frame.
func inFrame(channel uint8, packet []byte) []byte {
	b := make([]byte, frameHeader, frameHeader+len(packet))
	b[0], b[1] = '$', channel
	binary.BigEndian.PutUint16(b[2:], uint16(len(packet)))
	return append(b, packet...)
}
