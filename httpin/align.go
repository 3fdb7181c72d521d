package httpin

import "zapcast/mpegts"

// align finds the whole TS packets in the bytes of a stream. synced says that b
// begins where a packet ends. It appends to dst a slice of b for each run of
// packets, and returns the bytes at the end that more must come for, and
// whether a packet begins with them; junk counts what was left out.
func align(dst [][]byte, b []byte, synced bool) (runs [][]byte, rest []byte, insync bool, junk int) {
	for {
		if !synced {
			skip := seek(b)
			junk += skip
			b = b[skip:]
			if len(b) <= mpegts.PacketSize {
				return dst, b, false, junk
			}
		}
		n := 0
		for packetAt(b, n) {
			n += mpegts.PacketSize
		}
		if n > 0 {
			dst = append(dst, b[:n:n])
			b = b[n:]
		}
		if len(b) < mpegts.PacketSize {
			return dst, b, true, junk
		}
		synced = false
	}
}

// packetAt reports whether a packet is at b[i:]: whole, and followed by another,
// as far as that can be seen.
func packetAt(b []byte, i int) bool {
	end := i + mpegts.PacketSize
	return end <= len(b) && b[i] == mpegts.SyncByte && (end == len(b) || b[end] == mpegts.SyncByte)
}

// seek counts the bytes before the first two sync bytes that are a packet apart;
// where there are none, those that cannot be the first of two.
func seek(b []byte) int {
	for i := range max(len(b)-mpegts.PacketSize, 0) {
		if b[i] == mpegts.SyncByte && b[i+mpegts.PacketSize] == mpegts.SyncByte {
			return i
		}
	}
	return max(len(b)-mpegts.PacketSize, 0)
}
