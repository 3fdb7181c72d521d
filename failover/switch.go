package failover

import "sync/atomic"

// A Switch is the operator's hand on a channel: it tells which source plays,
// and chooses another. Its zero value works; it is safe for concurrent use and
// outlives the sources that it is given to.
type Switch struct {
	asked  atomic.Int32 // index + 1; 0: nothing is asked for
	active atomic.Int32 // index + 1; 0: none plays
}

// To asks for the source of an index. It plays once it brings data.
func (s *Switch) To(index int) { s.asked.Store(int32(index) + 1) }

// Active returns the index of the source that plays; -1: none does.
func (s *Switch) Active() int { return int(s.active.Load()) - 1 }

// take returns what was asked for since the last call; -1: nothing.
func (s *Switch) take() int {
	if s.asked.Load() == 0 {
		return -1
	}
	return int(s.asked.Swap(0)) - 1
}
