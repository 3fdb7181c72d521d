//go:build linux

package main

import "bytes"

// counts is what a reader saw of one stream, in TS packets.
type counts struct {
	Bytes, Packets, Lost, Dup, Reordered, Corrupt int64
}

func (c counts) sub(o counts) counts {
	return counts{
		c.Bytes - o.Bytes, c.Packets - o.Packets, c.Lost - o.Lost,
		c.Dup - o.Dup, c.Reordered - o.Reordered, c.Corrupt - o.Corrupt,
	}
}

func (c *counts) add(o counts) {
	c.Bytes += o.Bytes
	c.Packets += o.Packets
	c.Lost += o.Lost
	c.Dup += o.Dup
	c.Reordered += o.Reordered
	c.Corrupt += o.Corrupt
}

// lookback is how far behind a packet may come and still be told from a
// duplicate: it fills the hole that was counted as lost.
const lookback = 4096

// verifier checks the body of one client's stream.
type verifier struct {
	counts
	source      uint32
	started     bool
	first, next uint64
	seen        [lookback / 64]uint64
	part        [tsLen]byte // a TS packet that is not whole yet
	npart       int
	watch       func(p []byte) // join cases: sees each good packet
}

func (v *verifier) feed(b []byte) {
	v.Bytes += int64(len(b))
	for len(b) > 0 {
		var p []byte
		if v.npart > 0 || len(b) < tsLen {
			n := copy(v.part[v.npart:], b)
			v.npart += n
			b = b[n:]
			if v.npart < tsLen {
				return
			}
			v.npart = 0
			p = v.part[:]
		} else {
			p, b = b[:tsLen], b[tsLen:]
		}
		if p[0] != 0x47 { // out of step: go on from the next sync byte
			v.Corrupt++
			if i := bytes.IndexByte(p, 0x47); i > 0 {
				v.npart = copy(v.part[:], p[i:])
			}
			continue
		}
		if pid := pidOf(p); !v.started && (pid == 0 || pid == pidPMT) {
			// A server may start with tables of its own choice.
			v.Packets++
			if v.watch != nil {
				v.watch(p)
			}
			continue
		}
		source, n, ok := getTag(p)
		if !ok || source != v.source {
			v.Corrupt++
			continue
		}
		v.Packets++
		v.count(n)
		if v.watch != nil {
			v.watch(p)
		}
	}
}

func (v *verifier) bit(n uint64) (*uint64, uint64) {
	n %= lookback
	return &v.seen[n/64], 1 << (n % 64)
}

func (v *verifier) count(n uint64) {
	w, m := v.bit(n)
	switch {
	case !v.started:
		v.started, v.first = true, n
	case n == v.next:
	case n > v.next:
		v.Lost += int64(n - v.next)
		for i := max(v.next, n-min(n, lookback-1)); i < n; i++ {
			w, m := v.bit(i)
			*w &^= m
		}
	case n < v.first || v.next-n > lookback || *w&m != 0:
		v.Dup++
		return
	default: // late, but not lost after all
		v.Reordered++
		v.Lost--
		*w |= m
		return
	}
	*w |= m
	v.next = n + 1
}
