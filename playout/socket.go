package playout

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// batchSize is how many datagrams one system call sends at most, where the
// system has such a call.
const batchSize = 64

// socket sends datagrams to one destination. It is not safe for concurrent use,
// but for close.
type socket struct {
	to     Destination
	conn   *net.UDPConn
	ports  [maxShift + 1]*net.UDPAddr // where to, by the shift of a datagram
	batch  []ipv4.Message
	write  func([]ipv4.Message, int) (int, error)
	sent   int64
	failed int64
	last   error // why the last of those failed
}

// multicastConn is what ipv4.PacketConn and ipv6.PacketConn have in common.
type multicastConn interface {
	SetMulticastInterface(*net.Interface) error
	SetMulticastLoopback(bool) error
	WriteBatch([]ipv4.Message, int) (int, error)
}

// openSocket opens a socket that sends to d. Interface, if there is one, and
// time to live are those of multicast.
func openSocket(d Destination, ifi *net.Interface, ttl int) (*socket, error) {
	network, local := "udp4", netip.IPv4Unspecified()
	if d.Addr.Addr().Is6() {
		network, local = "udp6", netip.IPv6Unspecified()
	}
	if d.Source.IsValid() {
		local = d.Source
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0)))
	if err != nil {
		return nil, fmt.Errorf("playout: open a socket for %s: %w", d, bare(err))
	}
	s := &socket{to: d, conn: conn, batch: make([]ipv4.Message, batchSize)}
	for shift := range s.ports {
		s.ports[shift] = net.UDPAddrFromAddrPort(netip.AddrPortFrom(d.Addr.Addr(), d.Addr.Port()+uint16(shift)))
	}
	for i := range s.batch {
		s.batch[i].Buffers = make([][]byte, 1)
	}
	if err := s.configure(ifi, ttl); err != nil {
		conn.Close()
		return nil, fmt.Errorf("playout: set up the socket for %s: %w", d, bare(err))
	}
	return s, nil
}

func (s *socket) configure(ifi *net.Interface, ttl int) error {
	var (
		conn   multicastConn
		setTTL func(int) error
	)
	if s.to.Addr.Addr().Is4() {
		c := ipv4.NewPacketConn(s.conn)
		conn, setTTL = c, c.SetMulticastTTL
	} else {
		c := ipv6.NewPacketConn(s.conn)
		conn, setTTL = c, c.SetMulticastHopLimit
	}
	s.write = s.writeOne
	if runtime.GOOS == "linux" {
		s.write = conn.WriteBatch // sendmmsg(2)
	}
	if !s.to.Addr.Addr().IsMulticast() {
		return nil
	}
	if ifi != nil {
		// By index: it needs no route and no address there.
		if err := conn.SetMulticastInterface(ifi); err != nil {
			return fmt.Errorf("send on %s: %w", ifi.Name, err)
		}
	}
	return errors.Join(setTTL(ttl), conn.SetMulticastLoopback(true))
}

// writeOne is the plain twin of WriteBatch: it sends the first message.
func (s *socket) writeOne(batch []ipv4.Message, _ int) (int, error) {
	if _, err := s.conn.WriteTo(batch[0].Buffers[0], batch[0].Addr); err != nil {
		return 0, err
	}
	return 1, nil
}

// send sends datagrams, batchSize at most. A datagram that cannot be sent is
// counted and left out, for networks come back; only where nothing has ever
// been sent is it an error, unless the cause is a full queue or a receiver
// that does not listen yet.
func (s *socket) send(datagrams []datagram) error {
	used := 0
	for _, d := range datagrams {
		data := d.data
		if !s.to.RTP {
			if d.shift != 0 {
				continue // parity counts sequence numbers
			}
			data = data[rtpHeaderSize:]
		}
		s.batch[used].Buffers[0], s.batch[used].Addr = data, s.ports[d.shift]
		used++
	}
	for rest := s.batch[:used]; len(rest) > 0; {
		n, err := s.write(rest, 0)
		s.sent += int64(n)
		rest = rest[n:]
		if err == nil {
			continue
		}
		passing := errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ECONNREFUSED)
		if s.sent == 0 && !passing || errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("playout: send to %s: %w", s.to, bare(err))
		}
		s.failed++
		s.last = bare(err)
		rest = rest[1:]
	}
	return nil
}

func (s *socket) totals() (sent, failed int64, last error) { return s.sent, s.failed, s.last }

// unblock lets a send that waits give up.
func (s *socket) unblock() { s.conn.SetWriteDeadline(time.Unix(1, 0)) }

func (s *socket) close() error { return s.conn.Close() }
