package server

import (
	"net/netip"
	"time"

	"zapcast/fcc/wire"
)

// A request is what a client asks for, in whichever dialect.
type request struct {
	dialect   dialect
	from      netip.AddrPort // where the answer goes
	media     uint16         // port that the burst is to go to
	group     netip.AddrPort // port 0: not said
	source    netip.Addr     // of a source-specific group; zero value: not said
	most      int64          // bit/s that the client takes; 0: not said
	redirects bool           // it follows redirects
}

// A refusal is why there is no burst.
type refusal uint8

const (
	refusedUnknown   refusal = iota // no such channel
	refusedEmpty                    // no random-access point yet
	refusedBandwidth                // the caps are reached
)

// A dialect writes what the machine says. It has no state.
type dialect interface {
	name() string

	// confirms reports whether the dialect has a way for a client to show that
	// its address exists.
	confirms() bool

	granted(s *session) wire.Message
	refused(r *request, why refusal) wire.Message

	// redirected is nil where the client is not to be redirected.
	redirected(r *request, to netip.AddrPort, valid time.Duration) wire.Message

	// synced is nil where nothing is said when the burst has caught up, and
	// finished when the server ends it.
	synced(s *session) wire.Message
	finished(s *session) wire.Message
}

type telecom struct{}

func (telecom) name() string                   { return Telecom }
func (telecom) confirms() bool                 { return true } // empty datagrams to the media port
func (telecom) finished(*session) wire.Message { return nil }

func (telecom) granted(s *session) wire.Message {
	return &wire.TelecomResponse{
		Group: s.group, Action: wire.TelecomBurst, MediaPort: s.machine.mediaPort, Rate: bits32(s.rate), RateAfter: bits32(s.channel.history.rate),
	}
}

func (telecom) refused(r *request, why refusal) wire.Message {
	m := &wire.TelecomResponse{Group: r.group.Addr(), Action: wire.TelecomJoin}
	if why == refusedUnknown {
		m.Result = 2 // as servers in the field say it
	}
	return m
}

func (telecom) redirected(r *request, to netip.AddrPort, valid time.Duration) wire.Message {
	return &wire.TelecomResponse{
		Group: r.group.Addr(), Action: wire.TelecomRedirect, Server: to.Addr(), SignallingPort: to.Port(), Valid: valid,
	}
}

func (telecom) synced(s *session) wire.Message { return &wire.TelecomSync{Group: s.group} }

// huawei is Huawei's dialect in one of its two encodings.
type huawei struct{ tlv bool }

func (huawei) name() string                   { return Huawei }
func (huawei) confirms() bool                 { return true } // a punch with the session's number
func (huawei) finished(*session) wire.Message { return nil }

func (h huawei) response(group netip.Addr, kind uint16) *wire.HuaweiResponse {
	m := &wire.HuaweiResponse{TLV: h.tlv, Group: group, Result: wire.HuaweiOK, Type: kind}
	if h.tlv {
		m.Result = wire.HuaweiTLVOK
	}
	return m
}

func (h huawei) granted(s *session) wire.Message {
	m := h.response(s.group, wire.HuaweiBurst)
	m.First, m.Rate = s.firstSequence(), uint16(min(s.rate/1000, 1<<16-1))
	m.NAT, m.Session, m.Port, m.Server = true, s.number, s.machine.mediaPort, s.machine.address
	return m
}

func (h huawei) refused(r *request, why refusal) wire.Message {
	m := h.response(r.group.Addr(), wire.HuaweiJoin)
	if why == refusedUnknown {
		if m.Result = 2; h.tlv {
			m.Result = wire.HuaweiTLVBad
		}
	}
	return m
}

func (h huawei) redirected(r *request, to netip.AddrPort, valid time.Duration) wire.Message {
	if !r.redirects {
		return nil
	}
	m := h.response(r.group.Addr(), wire.HuaweiRedirect)
	m.Server, m.Port, m.Valid = to.Addr(), to.Port(), valid
	return m
}

func (h huawei) synced(s *session) wire.Message {
	return &wire.HuaweiSync{TLV: h.tlv, Group: s.group}
}

// rams is RFC 6285. Its client cannot confirm its address.
type rams struct{}

func (rams) name() string   { return RAMS }
func (rams) confirms() bool { return false }

func (rams) granted(s *session) wire.Message {
	h := &s.channel.history
	m := s.information(wire.RAMSAccepted)
	// The burst gains on the channel by the difference of their rates.
	var behind time.Duration
	if gain := s.rate - h.rate; gain > 0 {
		behind = time.Duration(float64(8*h.bytes(s.cursor)) / float64(gain) * float64(time.Second))
	}
	m.Sender, m.First, m.Join = new(h.ssrc), new(uint16(0)), new(behind)
	m.Duration, m.BurstRate = behind+overlapTime, uint64(s.rate)
	return m
}

func (rams) refused(r *request, why refusal) wire.Message {
	code := map[refusal]uint16{refusedUnknown: wire.RAMSUnknown, refusedEmpty: wire.RAMSNoStart, refusedBandwidth: wire.RAMSNoBandwidth}[why]
	return &wire.RAMSInformation{Server: serverSSRC, Code: code}
}

func (rams) redirected(*request, netip.AddrPort, time.Duration) wire.Message { return nil }
func (rams) synced(*session) wire.Message                                    { return nil } // the join time has told
func (rams) finished(s *session) wire.Message                                { return s.information(wire.RAMSCompleted) }

// information is RAMS-I with a new number.
func (s *session) information(code uint16) *wire.RAMSInformation {
	m := &wire.RAMSInformation{Server: serverSSRC, Media: s.channel.history.ssrc, MSN: s.said, Code: code}
	s.said++
	return m
}

func bits32(rate int64) uint32 { return uint32(min(rate, 1<<32-1)) }

// understand turns a message into a request, if it is one.
func understand(m wire.Message, from netip.AddrPort) (r request, ok bool) {
	switch m := m.(type) {
	case *wire.TelecomRequest:
		r = request{dialect: telecom{}, media: m.MediaPort, group: m.Group, redirects: true}
	case *wire.HuaweiRequest:
		r = request{dialect: huawei{m.TLV}, media: m.SignallingPort - 1, group: netip.AddrPortFrom(m.Group, 0), source: m.Source, redirects: m.Redirects}
	case *wire.RAMSRequest:
		r = request{dialect: rams{}, media: from.Port(), group: m.Group, most: int64(min(m.MaxRate, 1<<40))}
	default:
		return request{}, false
	}
	r.from = from
	return r, r.media != 0
}

// An ending is the end that a client sets to its burst.
type ending struct {
	forced bool
	first  uint16 // the burst is needed up to here
}

func understandEnd(m wire.Message) (e ending, ok bool) {
	switch m := m.(type) {
	case *wire.TelecomTermination:
		return ending{m.Forced, m.First}, true
	case *wire.HuaweiTermination:
		return ending{m.Forced, m.First}, true
	case *wire.RAMSTermination:
		if m.First == nil {
			return ending{forced: true}, true
		}
		return ending{first: uint16(*m.First)}, true
	}
	return ending{}, false
}
