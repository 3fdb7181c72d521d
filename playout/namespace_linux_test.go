package playout

import (
	"testing"

	"zapcast/internal/nettest"
)

// TestNetns_playerInANamespaceOfItsOwn sends in a network namespace of its own, with nothing
// in it but the loopback interface and a card without a cable. No route leads
// to an IPv4 group, neither here nor there. A time to live of 0 keeps what is
// sent on this host; it is delivered all the same.
func TestNetns_playerInANamespaceOfItsOwn(t *testing.T) {
	lab := nettest.New(t, "one")
	lab.Link("one eth7 2001:db8:7::1/64", "one peer7")
	lab.Do("one", func() {
		throughSockets(t, "lo", "rtp://239.255.77.203", "udp://127.0.0.1@232.255.77.204")
		throughSockets(t, "eth7", "rtp://239.255.77.205", "udp://239.255.77.206")
		throughSockets(t, "eth7", "rtp://[ff12::77:1]", "udp://[2001:db8:7::1]@[ff15::77:2]")
	})
}
