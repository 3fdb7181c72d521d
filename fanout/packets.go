package fanout

import (
	"errors"
	"net"
	"time"
)

// Viewers of datagrams have no flow control: what their receive buffer does not
// hold is lost, and that is often no more than 200 KB. So each is sent at most
// paceFactor times his channel's rate, at least paceMin bytes a second, and never
// more than paceBurst at once; their channel is read every tickPackets.
const (
	paceFactor  = 2
	paceMin     = 20e6 / 8
	paceBurst   = 128 << 10
	tickPackets = 10 * time.Millisecond
)

// allowance is how much v may be sent in this turn.
func (l *loop) allowance(v *viewer) int {
	if !v.packets {
		return turnBytes
	}
	rate := max(paceFactor*v.ch.rate/8, paceMin)
	earned := int64(l.now.Sub(v.paced).Microseconds()) * rate / 1e6
	v.paced = l.now
	v.credit = int(min(int64(v.credit)+earned, paceBurst))
	return v.credit
}

// pumpPackets sends the viewers of datagrams what they may have by now.
func (c *channel) pumpPackets() {
	c.clock.mark(c.chain.end, c.lastData)
	for i := len(c.viewers) - 1; i >= 0; i-- {
		if v := c.viewers[i]; v.packets && !v.blocked {
			c.loop.pump(v)
		}
	}
}

// datagram is the number of parts that make up the next datagram, of size bytes
// or what is left, and its length.
func datagram(parts [][]byte, size int) (count, n int) {
	for count < len(parts) && n < size {
		n += len(parts[count])
		count++
	}
	return count, n
}

// packetConn is the portable conn for datagrams of one size; the last of a write
// may be shorter. A datagram that could not be sent is lost, as on the way.
type packetConn struct {
	nc   net.Conn
	size int
	buf  []byte
}

var _ conn = (*packetConn)(nil)

func (c *packetConn) writev(parts [][]byte) (sent int, err error) {
	for len(parts) > 0 {
		count, n := datagram(parts, c.size)
		c.buf = c.buf[:0]
		for _, p := range parts[:count] {
			c.buf = append(c.buf, p...)
		}
		if _, err := c.nc.Write(c.buf); errors.Is(err, net.ErrClosed) {
			return sent, err
		}
		parts, sent = parts[count:], sent+n
	}
	return sent, nil
}

func (c *packetConn) write(b []byte) (sent int, err error) {
	for sent < len(b) {
		n, err := c.writev([][]byte{b[sent:min(sent+c.size, len(b))]})
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func (c *packetConn) sendFile(*memfile, int64, int) (int, error) { return 0, errors.ErrUnsupported }
func (c *packetConn) close()                                     { _ = c.nc.Close() }
