package mpegts

// Longer spacings under which transport packets are known to travel.
const (
	parityStride = 204 // 16 bytes of parity behind each packet
	stampStride  = 192 // 4 bytes of arrival time before each packet
	stampSize    = stampStride - PacketSize
)

// Runs salvages the whole packets of a datagram that is not Whole. It appends
// to dst one slice of b for each run of packets that follow one another, and
// returns the count of bytes that it left out as junk.
//
// A packet counts when a sync byte stands at its start and another one right
// behind it; the last packet, which has nothing behind it, counts when it ends
// with b and follows a packet that counts. Packets cut short, or with bytes
// inserted or missing inside, are therefore left out. When b is nothing but two
// or more packets at a spacing of 204 bytes (16 bytes of parity behind each) or
// 192 bytes (4 bytes of time before each), every packet is a run of its own and
// the bytes around it are no junk.
func Runs(dst [][]byte, b []byte) (runs [][]byte, bad int) {
	switch {
	case Whole(b):
		return append(dst, b), 0
	case spaced(b, 0, parityStride):
		return strided(dst, b, 0, parityStride), 0
	case spaced(b, stampSize, stampStride):
		return strided(dst, b, stampSize, stampStride), 0
	}
	start, i := 0, 0 // b[start:i] is the run so far
	for i < len(b) {
		if packetAt(b, i, i > start) {
			i += PacketSize
			continue
		}
		if i > start {
			dst = append(dst, b[start:i:i])
		}
		bad++
		i++
		start = i
	}
	if i > start {
		dst = append(dst, b[start:i:i])
	}
	return dst, bad
}

// packetAt reports whether b[i:] begins with a packet; after says that it would
// follow one.
func packetAt(b []byte, i int, after bool) bool {
	end := i + PacketSize
	switch {
	case end > len(b) || b[i] != SyncByte:
		return false
	case end == len(b):
		return after
	}
	return b[end] == SyncByte
}

// spaced reports whether b is nothing but two or more steps of stride bytes,
// each with a sync byte at offset.
func spaced(b []byte, offset, stride int) bool {
	if len(b) < 2*stride || len(b)%stride != 0 {
		return false
	}
	for i := offset; i < len(b); i += stride {
		if b[i] != SyncByte {
			return false
		}
	}
	return true
}

func strided(dst [][]byte, b []byte, offset, stride int) [][]byte {
	for i := offset; i < len(b); i += stride {
		dst = append(dst, b[i:i+PacketSize:i+PacketSize])
	}
	return dst
}
