package server

import (
	"net/netip"
	"time"

	"zapcast/fcc/wire"
)

// lost sends packets that a client misses again (RFC 4585 §6.2.1, RFC 4588), to
// where it asks from. It names the channel by its SSRC; where that is not known,
// the client's last request does, or there is only one.
func (m *machine) lost(n *wire.NACK, c *client, from netip.AddrPort, now time.Time) {
	h := m.historyOf(n.Media, c)
	for _, pair := range n.Lost {
		for i := range 17 {
			if i > 0 && pair.Following>>(i-1)&1 == 0 {
				continue
			}
			if h == nil || !m.again(h, pair.First+uint16(i), c, from, now) {
				m.stats.Unretrievable++
			}
		}
	}
}

// again sends one packet.
func (m *machine) again(h *history, sequence uint16, c *client, from netip.AddrPort, now time.Time) bool {
	at := h.find(sequence)
	if at == noPacket {
		return false
	}
	size := float64(h.entry(at).size)
	if !c.again.take(size, now) || !m.bandwidth.take(size, now) {
		return false
	}
	m.out = append(m.out, datagram{to: from, bytes: m.retransmission(h.packet(at), c.retransmit)})
	c.retransmit++
	m.stats.Retransmitted++
	return true
}

func (m *machine) historyOf(ssrc uint32, c *client) *history {
	var found *history
	matches := 0
	for _, ch := range m.channels {
		if ch.history.next > 0 && ch.history.ssrc == ssrc {
			found = &ch.history
			matches++
		}
	}
	switch {
	case matches == 1:
		return found
	case c.channel != nil:
		return &c.channel.history
	case len(m.channels) == 1:
		return &m.channels[0].history
	}
	return nil
}
