package ingest

import (
	"fmt"
	"net"
	"testing"

	"zapcast/internal/nettest"
)

// A lab is the usual one: rx with the receiver, tx with the senders. The test
// runs inside rx, since the goroutines of a receiver have to be in it too.
type lab struct{ *nettest.Lab }

func inNamespaces(t *testing.T, body func(t *testing.T, l lab)) {
	l := lab{nettest.New(t, "rx", "tx")}
	l.Inside("rx", func() {
		l.Plug(7)
		l.Plug(8)
	}, func() { body(t, l) })
}

// capture listens to membership messages that come out of eth<n>.
func (l lab) capture(n int) *nettest.Ear { return l.Listen("tx", fmt.Sprint("peer", n)) }

// sender sends by peer<n> from an address.
func (l lab) sender(t *testing.T, n int, source string) (c *net.UDPConn) {
	t.Helper()
	l.Do("tx", func() { c = sendFrom(t, source, fmt.Sprint("peer", n)) })
	return c
}
