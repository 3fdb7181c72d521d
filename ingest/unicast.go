package ingest

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

// Unicast is a UDP socket over IPv4 that a loop reads beside its flows. All its
// methods but Close are the loop's; none blocks.
type Unicast interface {
	// Read returns datagrams that wait, about max at most, their senders, and
	// whether there are more. They stay valid until the next Read or Close. A
	// datagram longer than any Ethernet frame may be left out.
	Read(max int) (datagrams [][]byte, from []netip.AddrPort, more bool)

	// Write sends a datagram. What the network refuses is lost, as anything may
	// be: the error is for the log.
	Write(b []byte, to netip.AddrPort) error

	// Port is the port that the socket is bound to.
	Port() uint16

	// Close gives the port back. A second one does nothing.
	Close() error
}

// UnicastConfig says which socket OpenUnicast opens. The zero value works.
type UnicastConfig struct {
	Port       uint16 // 0: any
	Interface  string // name of the interface to bind to; empty: the routing table's choice; Linux only
	ReadBuffer int    // bytes asked of the kernel; 0 stands for 4 MiB
	Plain      bool   // the portable way, where there is a faster one
}

// OpenUnicast opens a socket. It may be called from any goroutine.
func OpenUnicast(cfg UnicastConfig) (Unicast, error) {
	if cfg.ReadBuffer <= 0 {
		cfg.ReadBuffer = defaultReadBuffer
	}
	if cfg.Plain {
		return openPlainUnicast(cfg)
	}
	return openUnicast(cfg)
}

// unicastSlots bounds what waits on the portable path: 30 ms at 200 Mbit/s.
const unicastSlots = 512

// A plainUnicast has a goroutine that reads into a queue.
type plainUnicast struct {
	conn *net.UDPConn
	done chan struct{}

	mu     sync.Mutex // guards the rest
	queue  []unicastDatagram
	spare  []unicastDatagram
	lent   []unicastDatagram // the loop's until its next Read
	closed bool

	out  [][]byte
	from []netip.AddrPort
}

type unicastDatagram struct {
	data []byte
	from netip.AddrPort
}

func openPlainUnicast(cfg UnicastConfig) (Unicast, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: int(cfg.Port)})
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(cfg.ReadBuffer) // as much as there is
	u := &plainUnicast{conn: conn, done: make(chan struct{})}
	go u.fill()
	return u, nil
}

func (u *plainUnicast) fill() {
	defer close(u.done)
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := u.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // what an ICMP message left behind
			continue
		}
		u.mu.Lock()
		if len(u.queue) < unicastSlots {
			d := unicastDatagram{from: netip.AddrPortFrom(from.Addr().Unmap(), from.Port())}
			if last := len(u.spare) - 1; last >= 0 {
				d.data = u.spare[last].data
				u.spare = u.spare[:last]
			}
			d.data = append(d.data[:0], buf[:n]...)
			u.queue = append(u.queue, d)
		}
		u.mu.Unlock()
	}
}

func (u *plainUnicast) Read(limit int) (datagrams [][]byte, from []netip.AddrPort, more bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.spare = append(u.spare, u.lent...)
	u.lent = u.lent[:0]
	u.out, u.from = u.out[:0], u.from[:0]
	n := min(limit, len(u.queue))
	for _, d := range u.queue[:n] {
		u.lent = append(u.lent, d)
		u.out, u.from = append(u.out, d.data), append(u.from, d.from)
	}
	u.queue = u.queue[:copy(u.queue, u.queue[n:])]
	return u.out, u.from, len(u.queue) > 0
}

func (u *plainUnicast) Write(b []byte, to netip.AddrPort) error {
	_, err := u.conn.WriteToUDPAddrPort(b, to)
	return err
}

func (u *plainUnicast) Port() uint16 {
	return u.conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
}

func (u *plainUnicast) Close() error {
	if u.closed {
		return nil
	}
	u.closed = true
	err := u.conn.Close()
	<-u.done
	return err
}
