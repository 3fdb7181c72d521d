package fcc

import (
	"fmt"
	"time"

	"zapcast/fcc/wire"
)

// What RAMS servers are told of the receive buffer: a decoder has none, the
// channel's history takes whatever comes.
const (
	ramsMinFill = 200 * time.Millisecond
	ramsMaxFill = 5 * time.Second
)

// rams is RFC 6285. It does not agree on reduced-size RTCP, so every message
// is a compound.
type rams struct{}

func (rams) name() string { return RAMS }
func (rams) twin() bool   { return false }

func (rams) compound(s *subject) []byte {
	return wire.AppendCompound(nil, s.ssrc, "zapcast@"+s.client.String())
}

func (r rams) request(s *subject) []byte {
	m := wire.RAMSRequest{Client: s.ssrc, MinFill: ramsMinFill, MaxFill: ramsMaxFill, MaxRate: s.maxRate, Group: s.group}
	return m.Append(r.compound(s))
}

func (rams) answer(s *subject, p wire.Packet) (answer, bool) {
	m, err := wire.ParseRAMSInformation(p)
	if err != nil || m.Code < wire.RAMSUpdate { // then it is a Huawei response
		return answer{}, false
	}
	a := answer{joinAfter: m.Join, stream: m.Sender}
	if a.stream == nil && m.Media != 0 {
		a.stream = &m.Media
	}
	switch {
	case m.Code == wire.RAMSUpdate:
		a.kind = answerUpdate
	case m.Code == wire.RAMSAccepted:
		a.kind = answerBurst
	case m.Code == wire.RAMSCompleted:
		a.kind = answerSync
	default:
		a.kind, a.reason = answerRefused, fmt.Sprintf("code %d", m.Code)
	}
	return a, true
}

func (r rams) termination(s *subject, first *uint16) []byte {
	m := wire.RAMSTermination{Client: s.ssrc, Media: s.stream}
	if first != nil {
		m.First = new(uint32(*first)) // no cycle is known of: the upper half is zero
	}
	return m.Append(r.compound(s))
}

func (r rams) report(s *subject) []byte { return r.compound(s) }
