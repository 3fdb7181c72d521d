package fec

import "math/bits"

// store keeps the last datagrams of a stream under their sequence numbers, in
// one piece of memory that is written round and round.
type store struct {
	entries []entry // a power of two; a number's place is its remainder
	memory  []byte
	stride  int    // bytes of memory for each entry
	top     uint16 // one past the highest number kept
	begun   bool
}

type entry struct {
	seq  uint16
	size uint16
	have bool
}

// leastStride holds the usual datagram, an RTP header and 7 TS packets.
const leastStride = 1344

// put copies a datagram of maxProtected bytes at most. It reports false for one
// that is kept already or is too old to be.
func (s *store) put(seq uint16, datagram []byte) bool {
	ahead := int(int16(seq - s.top))
	switch {
	case !s.begun || ahead >= len(s.entries):
		clear(s.entries)
		s.top, s.begun = seq+1, true
	case ahead >= 0:
		for n := s.top; n != seq; n++ {
			s.entry(n).have = false
		}
		s.top = seq + 1
	case -ahead > len(s.entries) || s.has(seq):
		return false
	}
	if len(datagram) > s.stride {
		s.resize(len(s.entries), len(datagram))
	}
	e := s.entry(seq)
	*e = entry{seq: seq, size: uint16(len(datagram)), have: true}
	copy(s.bytes(e), datagram)
	return true
}

// get returns a datagram, which stays as it is until its place is needed again;
// nil if it is not there.
func (s *store) get(seq uint16) []byte {
	if !s.has(seq) {
		return nil
	}
	return s.bytes(s.entry(seq))
}

func (s *store) has(seq uint16) bool {
	if len(s.entries) == 0 {
		return false
	}
	e := s.entry(seq)
	return e.have && e.seq == seq
}

// past reports whether seq is too old to be kept.
func (s *store) past(seq uint16) bool {
	return s.begun && int(int16(s.top-seq)) > len(s.entries)
}

func (s *store) entry(seq uint16) *entry { return &s.entries[int(seq)&(len(s.entries)-1)] }

func (s *store) bytes(e *entry) []byte {
	at := (int(e.seq) & (len(s.entries) - 1)) * s.stride
	return s.memory[at : at+int(e.size) : at+s.stride]
}

// reserve makes the store keep n numbers at least.
func (s *store) reserve(n int) {
	if n > len(s.entries) {
		s.resize(1<<bits.Len(uint(n-1)), max(s.stride, leastStride))
	}
}

func (s *store) resize(n, stride int) {
	old := *s
	stride = (stride + 63) &^ 63
	s.entries, s.memory, s.stride = make([]entry, n), make([]byte, n*stride), stride
	for i := range old.entries {
		if e := old.entries[i]; e.have {
			*s.entry(e.seq) = e
			copy(s.bytes(s.entry(e.seq)), old.bytes(&e))
		}
	}
}

// forget empties the store.
func (s *store) forget() {
	clear(s.entries)
	s.begun = false
}
