package rtsp

import (
	"net"
	"net/netip"
	"sync"
)

// A packetLink is a UDP port once the session plays. Its methods never block.
type packetLink interface {
	// read takes one datagram; io.EOF stands for an empty one, errAgain for none.
	read(p []byte) (int, error)
	send(b []byte, to netip.AddrPort)
	close() error
}

// goPackets is the portable packetLink: a goroutine reads ahead.
type goPackets struct {
	conn *net.UDPConn
	done sync.WaitGroup
	in   chan []byte
	free chan []byte
}

// goPacketsAhead is how many datagrams are kept: 130 ms of 40 Mbit/s.
const goPacketsAhead = 512

func newGoPackets(conn *net.UDPConn) *goPackets {
	l := &goPackets{conn: conn, in: make(chan []byte, goPacketsAhead), free: make(chan []byte, goPacketsAhead)}
	l.done.Go(l.fill)
	return l
}

func (l *goPackets) fill() {
	buf := make([]byte, 64<<10)
	for {
		n, _, err := l.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		var b []byte
		select {
		case b = <-l.free:
		default:
		}
		select {
		case l.in <- append(b[:0], buf[:n]...):
		default: // full: lost, as in a socket's own queue
		}
	}
}

func (l *goPackets) read(p []byte) (int, error) {
	select {
	case b := <-l.in:
		n := copy(p, b)
		select {
		case l.free <- b:
		default:
		}
		return n, nil
	default:
		return 0, errAgain
	}
}

func (l *goPackets) send(b []byte, to netip.AddrPort) { _, _ = l.conn.WriteToUDPAddrPort(b, to) }

func (l *goPackets) close() error {
	err := l.conn.Close()
	l.done.Wait()
	return err
}
