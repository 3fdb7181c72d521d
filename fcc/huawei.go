package fcc

import (
	"fmt"
	"time"

	"zapcast/fcc/wire"
)

// tlvRedirectTime is how long a redirect holds where TLVs do not say.
const tlvRedirectTime = time.Hour

// huawei is Huawei's dialect in one of its two encodings.
type huawei struct{ tlv bool }

func (h huawei) name() string {
	if h.tlv {
		return HuaweiTLV
	}
	return Huawei
}

func (huawei) twin() bool { return true }

func (h huawei) request(s *subject) []byte {
	m := wire.HuaweiRequest{
		TLV: h.tlv, Group: s.group.Addr(), Source: s.source, Client: s.client,
		SignallingPort: s.signalPort, Redirects: !s.redirected, NAT: true,
	}
	return m.Append(nil)
}

func (h huawei) answer(s *subject, p wire.Packet) (answer, bool) {
	if m, err := wire.ParseHuaweiSync(p); err == nil && m.TLV == h.tlv {
		return answer{kind: answerSync}, true
	}
	m, err := wire.ParseHuaweiResponse(p)
	if err != nil || m.TLV != h.tlv || m.Group.IsValid() && m.Group != s.group.Addr() {
		return answer{}, false
	}
	var a answer
	switch {
	case !m.OK():
		a.kind, a.reason = answerRefused, fmt.Sprintf("result %d, type %d", m.Result, m.Type)
	case m.Type == wire.HuaweiJoin:
		a.kind = answerJoin
	case m.Type == wire.HuaweiBurst:
		a.kind, a.sender = answerBurst, m.Server
		if m.NAT && m.Session != 0 {
			punch := wire.HuaweiPunch{TLV: h.tlv, Session: m.Session}
			a.server, a.mediaPort, a.punch = m.Server, m.Port, punch.Append(nil)
		}
	case m.Type == wire.HuaweiRedirect:
		a.kind, a.server, a.signalPort, a.valid = answerRedirect, m.Server, m.Port, m.Valid
		if h.tlv && a.valid == 0 {
			a.valid = tlvRedirectTime
		}
	default:
		a.kind, a.reason = answerRefused, fmt.Sprintf("unknown type %d", m.Type)
	}
	return a, true
}

func (h huawei) termination(s *subject, first *uint16) []byte {
	m := wire.HuaweiTermination{TLV: h.tlv, Group: s.group.Addr(), Source: s.source, Forced: first == nil}
	if first != nil {
		m.First = *first
	}
	return m.Append(nil)
}

func (huawei) report(*subject) []byte { return nil }
