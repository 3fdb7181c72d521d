package fanout

import (
	"slices"
	"time"
)

// A chain is what is held of a channel's stream: contiguous batches, the newest
// last, that reach to the live end. It may be empty.
type chain struct {
	store   *store
	batches []*batch
	end     int64 // live end: stream position of the next byte
	spare   *batch
	files   int64 // memfd batches made
	blocks  int64 // memory batches made
}

// start is the position of the oldest byte held; the live end where none is.
func (c *chain) start() int64 {
	if len(c.batches) == 0 {
		return c.end
	}
	return c.batches[0].start
}

// holds reports whether the stream can be read from pos on.
func (c *chain) holds(pos int64) bool { return pos >= c.start() && pos <= c.end }

// pass lets n bytes go by without keeping them, or anything before them.
func (c *chain) pass(n int) {
	c.drop(len(c.batches))
	c.end += int64(n)
}

// append keeps ts, n bytes in all: in a memfd when it is to be shared and that
// is possible, else in memory. False: the system has no memory for all of it, and
// the chain is of no use any more.
func (c *chain) append(ts [][]byte, n int, shared bool, now time.Time) bool {
	if shared && c.store.mayShare(now) && c.appendFile(ts, n, now) {
		return true
	}
	for _, p := range ts {
		for len(p) > 0 {
			b := c.last()
			if b == nil || b.file != nil || b.full(blockBytes, now) {
				mem := c.store.block()
				if mem == nil {
					return false
				}
				b = c.open(now)
				b.mem = mem
				c.blocks++
			}
			m := copy(b.mem[b.n:blockBytes], p)
			c.grow(b, m)
			p = p[m:]
		}
	}
	return true
}

// appendFile reports false when nothing was kept.
func (c *chain) appendFile(ts [][]byte, n int, now time.Time) bool {
	b := c.last()
	if b == nil || b.file == nil || b.full(fileBytes, now) {
		f, err := newMemfile(&c.store.scratch)
		if err != nil {
			c.store.refuse(err, now)
			return false
		}
		b = c.open(now)
		b.file = f
		c.files++
	}
	if err := b.file.append(ts, n); err != nil {
		c.store.refuse(err, now)
		if b.n == 0 {
			c.drop1(len(c.batches) - 1)
		}
		return false
	}
	c.store.share = true
	c.grow(b, n)
	if b.n >= fileBytes {
		b.file.seal()
	}
	return true
}

func (c *chain) grow(b *batch, n int) {
	b.n += n
	c.end += int64(n)
	c.store.bytes += int64(n)
}

func (c *chain) last() *batch {
	if len(c.batches) == 0 {
		return nil
	}
	return c.batches[len(c.batches)-1]
}

func (c *chain) open(now time.Time) *batch {
	if last := c.last(); last != nil && last.file != nil {
		last.file.seal()
	}
	b := c.spare
	if b == nil {
		b = new(batch)
	}
	c.spare = nil
	*b = batch{start: c.end, began: now}
	c.batches = append(c.batches, b)
	return b
}

// at returns the batch that holds the byte at pos; nil at the live end.
func (c *chain) at(pos int64) *batch {
	if pos >= c.end || pos < c.start() {
		return nil
	}
	for i := len(c.batches) - 1; ; i-- { // most cursors are near the end
		if b := c.batches[i]; b.start <= pos {
			return b
		}
	}
}

// read copies the n bytes from pos on, as far as they are held, behind dst.
func (c *chain) read(dst []byte, pos int64, n int) []byte {
	for n > 0 {
		b := c.at(pos)
		if b == nil {
			break
		}
		at := len(dst)
		dst = slices.Grow(dst, n)[:at+n]
		m := b.read(dst[at:], pos)
		dst = dst[:at+m]
		if m == 0 {
			break
		}
		pos, n = pos+int64(m), n-m
	}
	return dst
}

// trim drops the batches that end at pos or before, but not a memfd that can
// still take more while its channel is shared.
func (c *chain) trim(pos int64, shared bool) {
	n := 0
	for n < len(c.batches) && c.batches[n].end() <= pos {
		n++
	}
	if last := c.last(); n > 0 && n == len(c.batches) && shared && last.file != nil && last.n < fileBytes {
		n--
	}
	c.drop(n)
}

// drop frees the n oldest batches.
func (c *chain) drop(n int) {
	if n == 0 {
		return
	}
	for _, b := range c.batches[:n] {
		c.store.free(b)
		c.spare = b
	}
	c.batches = slices.Delete(c.batches, 0, n)
}

// drop1 frees the batch at index i.
func (c *chain) drop1(i int) {
	c.store.free(c.batches[i])
	c.batches = slices.Delete(c.batches, i, i+1)
}

// bytes is what the chain holds.
func (c *chain) bytes() int64 { return c.end - c.start() }
