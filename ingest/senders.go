package ingest

import (
	"fmt"
	"net/netip"
	"time"
)

// senders notices when two hosts send to one group. One that takes over from
// another is as it should be; two that take turns give a viewer a mixture.
type senders struct {
	current, before netip.AddrPort
	turns           int       // how often the one before came back
	turnedAt        time.Time // when it did last
}

const (
	// alternateTurns leaves out a backup sender that is tried once.
	alternateTurns = 2
	// alternateFor is how long the warning stays after the last turn.
	alternateFor = time.Minute
)

// see takes the sender of a sample.
func (s *senders) see(now time.Time, from netip.AddrPort) {
	if from == s.current {
		return
	}
	if from == s.before {
		if now.Sub(s.turnedAt) > alternateFor {
			s.turns = 0
		}
		s.turns++
		s.turnedAt = now
	}
	s.before, s.current = s.current, from
}

func (s *senders) status(now time.Time, st *Status) {
	if s.current.IsValid() {
		st.Sender = s.current.String()
	}
	if s.turns >= alternateTurns && now.Sub(s.turnedAt) <= alternateFor {
		st.Warnings = append(st.Warnings, fmt.Sprintf(
			"two senders, %s and %s, take turns on this group: name one of them (SENDER@GROUP:PORT)", s.before, s.current))
	}
}
