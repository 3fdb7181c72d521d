package ingest

import (
	"encoding/binary"
	"math/bits"
)

// A flowTable finds the flows of a group and port: open addressing, at most
// half full, made anew whenever a flow comes or goes. Flows that differ in their
// source only, or in nothing, hang on one another as siblings.
type flowTable struct {
	slots  []*ringFlow
	recent *ringFlow // packets come in runs
}

func (t *flowTable) build(flows []*ringFlow) {
	*t = flowTable{slots: make([]*ringFlow, 1<<bits.Len(uint(2*len(flows))))}
	for _, f := range flows {
		f.sibling = nil
		i := t.slot(&f.group, f.port)
		f.sibling, t.slots[i] = t.slots[i], f
	}
}

// find returns the first flow of a group and port, or nil.
func (t *flowTable) find(group ipAddr, port uint16) *ringFlow {
	if f := t.recent; f != nil && f.port == port && f.group == group {
		return f
	}
	if len(t.slots) == 0 {
		return nil
	}
	f := t.slots[t.slot(&group, port)]
	if f != nil {
		t.recent = f
	}
	return f
}

// slot is where the flows of a group and port are, or would be.
func (t *flowTable) slot(group *ipAddr, port uint16) int {
	const spread = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
	h := binary.BigEndian.Uint64(group[:]) ^ binary.BigEndian.Uint64(group[8:])*3 ^ uint64(port)
	i := int(h * spread >> 33)
	for {
		i &= len(t.slots) - 1
		if f := t.slots[i]; f == nil || f.port == port && f.group == *group {
			return i
		}
		i++
	}
}
