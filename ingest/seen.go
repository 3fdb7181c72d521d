package ingest

import (
	"fmt"
	"strings"
)

// A second RTP sender, perhaps at the same address, is worth a warning when its
// packets are neither few nor few beside those handed on.
const (
	mixedLeast = 100
	mixedShare = 20
)

// Status implements Source.
func (m *Multicast) Status() Status {
	var s Status
	m.flow.Status(&s)

	place := m.spec
	place.Interface = ""
	s.Source = "rtp://" + place.String()
	s.Payload = m.payload
	s.Packets, s.Bytes, s.LastData = m.packets, m.bytes, m.lastData
	s.Malformed += m.malformed
	s.BadTS = m.badTS

	w := m.window.Stats()
	s.Lost, s.Reordered, s.Resyncs = w.Lost, w.Reordered, w.Resyncs
	s.Duplicates = w.Duplicates
	s.Foreign = m.kinds[KindForeign] + w.Foreign
	s.RTCP, s.FEC = m.kinds[KindRTCP], m.kinds[KindFEC]

	if w.Foreign >= mixedLeast && w.Foreign >= m.packets/mixedShare {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d RTP packets of another sender than the one followed were dropped: two of them use this group and port", w.Foreign))
	}
	s.Losses = m.window.Lost()
	if repair, ok := m.repair.status(m.window.latency); ok {
		s.Repair = &repair
		if repair.Useless {
			s.Warnings = append(s.Warnings, repair.State)
		}
	}
	if m.spaced {
		s.Warnings = append(s.Warnings, "RTP with MPEG-TS packets of 192 or 204 bytes is dropped: only 188 are supported")
	}
	return s
}

// Seen implements Source.
func (m *Multicast) Seen() string {
	var s Status
	m.flow.Status(&s)

	var b strings.Builder
	b.WriteString("joined")
	if s.Interface != "" {
		b.WriteString(" on " + s.Interface)
	}
	if s.Local != "" {
		b.WriteString(" (" + s.Local + ")")
	}
	b.WriteString(", ")
	b.WriteString(m.seen(s))
	if m.packets == 0 {
		for _, w := range s.Warnings {
			b.WriteString("; " + w)
		}
	}
	return b.String()
}

// seen says what has arrived: the first of these that is true.
func (m *Multicast) seen(flow Status) string {
	var total int64
	for _, n := range m.kinds {
		total += n
	}
	useful := m.kinds[KindRTP] - m.malformed + m.kinds[KindTS]
	datagrams := count(total, "datagram")
	switch {
	case total == 0 && flow.Malformed > 0:
		return count(flow.Malformed, "datagram") + ", all of them cut short"
	case total == 0 && m.spec.Source.IsValid():
		protocol := "IGMPv3"
		if m.spec.Source.Is6() {
			protocol = "MLDv2"
		}
		return "received nothing; a source-specific join needs " + protocol + " on the whole path"
	case total == 0:
		return "received nothing"
	case m.packets > 0 && m.payload == payloadRTP:
		return datagrams + ", MPEG-TS in RTP" + from(flow.Sender)
	case m.packets > 0:
		return datagrams + ", MPEG-TS" + from(flow.Sender)
	case m.kinds[KindRTCP]+m.kinds[KindFEC] == total:
		return fmt.Sprintf("%s, only RTCP (%d) and FEC (%d)", datagrams, m.kinds[KindRTCP], m.kinds[KindFEC])
	case m.kinds[KindEmpty] == total:
		return datagrams + ", all of them empty"
	case useful == 0:
		return datagrams + ", none of them RTP or MPEG-TS" + m.strange.String()
	case m.badTS > 0:
		return datagrams + ", no whole MPEG-TS packets in them" + m.strange.String()
	}
	return datagrams + ", nothing to hand on yet"
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func from(sender string) string {
	if sender == "" {
		return ""
	}
	return " from " + sender
}

// sample keeps the first bytes of the first thing noted.
type sample struct {
	bytes [4]byte
	n     int
}

func (s *sample) note(b []byte) {
	if s.n == 0 {
		s.n = copy(s.bytes[:], b)
	}
}

func (s *sample) String() string {
	if s.n == 0 {
		return ""
	}
	return fmt.Sprintf(" (first bytes % x)", s.bytes[:s.n])
}
