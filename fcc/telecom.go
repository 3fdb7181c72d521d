package fcc

import (
	"fmt"

	"zapcast/fcc/wire"
)

// telecom is the dialect of telecom, ZTE and FiberHome servers.
type telecom struct{}

func (telecom) name() string { return Telecom }
func (telecom) twin() bool   { return false }

func (telecom) request(s *subject) []byte {
	m := wire.TelecomRequest{Group: s.group, MediaPort: s.mediaPort, ID: s.boxID}
	return m.Append(nil)
}

func (telecom) answer(s *subject, p wire.Packet) (answer, bool) {
	if _, err := wire.ParseTelecomSync(p); err == nil {
		return answer{kind: answerSync}, true
	}
	m, err := wire.ParseTelecomResponse(p)
	if err != nil || m.Group.IsValid() && m.Group != s.group.Addr() {
		return answer{}, false
	}
	a := answer{server: m.Server, signalPort: m.SignallingPort, mediaPort: m.MediaPort, valid: m.Valid}
	switch {
	case m.Result != 0:
		a.kind, a.reason = answerRefused, fmt.Sprintf("result %d", m.Result)
	case m.Action == wire.TelecomJoin || m.Action == 0:
		a.kind = answerJoin
	case m.Action == wire.TelecomBurst:
		a.kind = answerBurst
		if m.Punch {
			punch := wire.TelecomPunch{Client: s.client, Group: s.group.Addr(), ID: s.boxID}
			a.punch = punch.Append(nil)
		}
	case m.Action == wire.TelecomRedirect:
		a.kind = answerRedirect
	default:
		a.kind, a.reason = answerRefused, fmt.Sprintf("unknown action %d", m.Action)
	}
	return a, true
}

func (telecom) termination(s *subject, first *uint16) []byte {
	m := wire.TelecomTermination{Group: s.group.Addr(), Forced: first == nil}
	if first != nil {
		m.First = *first
	}
	return m.Append(nil)
}

func (telecom) report(*subject) []byte { return nil }
