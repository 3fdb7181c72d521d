package fanout

import (
	"log/slog"
	"time"
)

const (
	// blockBytes is the size of a memory batch. It is the unit in which memory
	// is taken from the system and given back.
	blockBytes = 64 << 10
	// fileBytes is where a memfd batch is closed: often enough that history can
	// be freed in small steps, seldom enough that making the file costs nothing.
	fileBytes = 1 << 20
	// batchAge is where a batch is closed that fills slowly: a viewer's lag is
	// counted from the start of the batch at his cursor.
	batchAge = 2 * time.Second
	// shareRetry is the pause after the system refused a memfd.
	shareRetry = 10 * time.Second
	// A loop keeps spareBlocks memory blocks for reuse, and one for each
	// spareShare that are in use: mapping and clearing fresh ones costs more than
	// the copies that go into them.
	spareBlocks = 4
	spareShare  = 8
)

// A batch is a contiguous piece of a channel's stream.
type batch struct {
	start int64     // stream position of its first byte
	n     int       // bytes that it holds
	began time.Time // when its first byte came
	mem   []byte    // the bytes, in a block of blockBytes, or
	file  *memfile  // where they are
}

// full reports whether what comes now belongs into another batch than b, which
// has room for size bytes.
func (b *batch) full(size int, now time.Time) bool {
	return b.n >= size || now.Sub(b.began) >= batchAge
}

func (b *batch) end() int64 { return b.start + int64(b.n) }

// send sends up to want bytes from position pos on.
func (b *batch) send(c conn, pos int64, want int) (int, error) {
	off := int(pos - b.start)
	want = min(want, b.n-off)
	if b.file != nil {
		return c.sendFile(b.file, int64(off), want)
	}
	return c.write(b.mem[off : off+want])
}

// read copies bytes from position pos on to p, as many as there are.
func (b *batch) read(p []byte, pos int64) int {
	off := int(pos - b.start)
	p = p[:min(len(p), b.n-off)]
	if b.file == nil {
		return copy(p, b.mem[off:b.n])
	}
	return b.file.readAt(p, int64(off))
}

// A store gives batches their room and takes it back.
type store struct {
	spare [][]byte
	used  int       // memory blocks in use
	share bool      // memfd batches are possible here
	retry time.Time // where they were refused: when to try again; zero: never
	log   *slog.Logger
	bytes int64            // held by all batches
	alloc func(int) []byte // of new memory blocks; nil: there is none
	scratch
	frames frames // where views make theirs
}

// mayShare reports whether a memfd batch is worth a try.
func (s *store) mayShare(now time.Time) bool {
	return s.share || !s.retry.IsZero() && !now.Before(s.retry)
}

// refuse notes that the system refused a memfd batch, for want of descriptors,
// of memory or of the call itself: memory is used for a while.
func (s *store) refuse(err error, now time.Time) {
	if s.share {
		s.log.Warn("no memory file for several viewers: each is sent copies", "err", err)
	}
	s.share, s.retry = false, now.Add(shareRetry)
}

// block returns room for a memory batch; nil where the system has none left.
func (s *store) block() (b []byte) {
	if n := len(s.spare); n > 0 {
		b = s.spare[n-1]
		s.spare = s.spare[:n-1]
	} else {
		b = s.alloc(blockBytes)
	}
	if b != nil {
		s.used++
	}
	return b
}

func (s *store) free(b *batch) {
	s.bytes -= int64(b.n)
	if b.file != nil {
		b.file.close()
	} else {
		s.used--
		s.spare = append(s.spare, b.mem)
		for n := len(s.spare) - 1; n >= spareBlocks+s.used/spareShare; n-- {
			freeBlock(s.spare[n])
			s.spare = s.spare[:n]
		}
	}
	b.mem, b.file = nil, nil
}

// close gives back what is kept for reuse.
func (s *store) close() {
	for _, b := range s.spare {
		freeBlock(b)
	}
	s.spare = nil
}
