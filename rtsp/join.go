package rtsp

import "zapcast/mpegts"

// A joiner puts a TS together that a server has cut into frames anywhere. Packets
// that begin with their frames never come here.
type joiner struct {
	buf  []byte
	done int // bytes of buf that were handed out or are junk
}

// begin drops what was handed out: nobody reads it any more.
func (j *joiner) begin() {
	if j.done > 0 {
		j.buf = j.buf[:copy(j.buf, j.buf[j.done:])]
		j.done = 0
	}
}

func (j *joiner) empty() bool { return len(j.buf) == j.done }

func (j *joiner) add(b []byte) { j.buf = append(j.buf, b...) }

// packets appends the whole packets to out, a slice for each run of them. A
// packet counts if another sync byte stands right behind it, or if it follows
// one that counts and nothing stands behind it yet; where that is not so, the
// next two sync bytes 188 bytes apart are looked for.
func (j *joiner) packets(out [][]byte) [][]byte {
	b := j.buf
	start, i := j.done, j.done
	flush := func() {
		if i > start {
			out = append(out, b[start:i:i])
		}
	}
	for len(b)-i >= mpegts.PacketSize {
		end := i + mpegts.PacketSize
		if b[i] == mpegts.SyncByte && (end < len(b) && b[end] == mpegts.SyncByte || end == len(b) && i > start) {
			i = end
			continue
		}
		if b[i] == mpegts.SyncByte && end == len(b) {
			break // what follows will tell
		}
		flush()
		i++
		start = i
	}
	flush()
	j.done = i
	return out
}
