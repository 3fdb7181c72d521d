package ingesttest

import (
	"fmt"

	"github.com/pion/rtp"

	"zapcast/mpegts"
)

// Datagram builds an RTP packet with payload type 33 (MPEG-TS) around ts, which
// may be anything that the test wants to see there.
func Datagram(seq uint16, ssrc uint32, ts []byte) []byte {
	packet := rtp.Packet{
		Header:  rtp.Header{Version: 2, PayloadType: 33, SequenceNumber: seq, SSRC: ssrc},
		Payload: ts,
	}
	b, err := packet.Marshal()
	if err != nil {
		panic(fmt.Sprintf("ingesttest: marshal RTP packet %d: %v", seq, err))
	}
	return b
}

// TS returns n TS packets that can be told from those of any other number: the
// number stands behind the 4-byte header of each, big endian, and the packet's
// place after it. The rest is filler without sync bytes.
func TS(number uint32, n int) []byte {
	b := make([]byte, 0, n*mpegts.PacketSize)
	for i := range n {
		start := len(b)
		b = append(b,
			mpegts.SyncByte, 0x01, 0x00, 0x10|byte(i&0x0f),
			byte(number>>24), byte(number>>16), byte(number>>8), byte(number), byte(i))
		for len(b) < start+mpegts.PacketSize {
			b = append(b, 0x80|byte(number)^byte(len(b)))
		}
	}
	return b
}
