package server

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"zapcast/fanout"
)

// ports is the pair of UDP ports from which all sessions with datagrams are
// served: an even one for packets and the next for reports (RFC 3550 §11). Each
// session has a socket of its own on the first, connected to its client.
type ports struct {
	packets *net.UDPConn // holds the port; what comes here is nobody's
	reports *net.UDPConn

	mu    sync.Mutex // guards peers
	peers map[netip.AddrPort]*receiver
}

// A receiver is a session whose packets are datagrams.
type receiver struct {
	ports  *ports
	to     netip.AddrPort // where its reports go to and come from
	ssrc   uint32
	heard  atomic.Int64 // when it last said something, in s since 1970
	frames atomic.Int64 // sent until now
	bytes  atomic.Int64
	begun  chan beginning
	ended  chan struct{} // closed when the engine has ended the stream
	nudge  func()        // makes its goroutine look at ended
	feed   *fanout.Feed
}

// beginning is what the engine says of a stream that starts.
type beginning struct {
	feed  *fanout.Feed
	first int64
	at    time.Time
}

var _ fanout.Control = (*receiver)(nil)

// openPorts opens a pair of ports: the given one and the next, or any for zero.
func openPorts(port int) (*ports, error) {
	const tries = 64
	var err error
	for range tries {
		var p *ports
		if p, err = openPair(port); err == nil {
			go p.listen()
			go p.discard()
			return p, nil
		}
		if port != 0 {
			break
		}
	}
	return nil, fmt.Errorf("rtsp/server: open a pair of UDP ports: %w", err)
}

func openPair(port int) (*ports, error) {
	packets, err := listenShared(port)
	if err != nil {
		return nil, err
	}
	port = packets.LocalAddr().(*net.UDPAddr).Port
	if port%2 != 0 {
		packets.Close()
		return nil, fmt.Errorf("port %d is odd", port)
	}
	reports, err := net.ListenUDP("udp", &net.UDPAddr{Port: port + 1})
	if err != nil {
		packets.Close()
		return nil, err
	}
	return &ports{packets: packets, reports: reports, peers: map[netip.AddrPort]*receiver{}}, nil
}

func (p *ports) port() int { return p.packets.LocalAddr().(*net.UDPAddr).Port }

// close ends both sockets and their goroutines.
func (p *ports) close() {
	p.packets.Close()
	p.reports.Close()
}

// listen takes reports: they show that a client is there. What they say is not
// needed.
func (p *ports) listen() {
	var b [1500]byte
	for {
		n, from, err := p.reports.ReadFromUDPAddrPort(b[:])
		if err != nil {
			return
		}
		if !isReport(b[:n]) {
			continue
		}
		p.mu.Lock()
		r := p.peers[unmap(from)]
		p.mu.Unlock()
		if r != nil {
			r.heard.Store(time.Now().Unix())
		}
	}
}

// discard empties the packets' port: clients send there to open a way through
// their NAT.
func (p *ports) discard() {
	var b [1500]byte
	for {
		if _, _, err := p.packets.ReadFromUDPAddrPort(b[:]); err != nil {
			return
		}
	}
}

// isReport reports whether b looks like an RTCP packet (RFC 3550 §6.4).
func isReport(b []byte) bool { return len(b) >= 8 && b[0]>>6 == 2 && b[1] >= 200 && b[1] <= 207 }

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// add registers a receiver; false if another one has the same port there.
func (p *ports) add(r *receiver) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.peers[r.to] != nil {
		return false
	}
	p.peers[r.to] = r
	return true
}

func (p *ports) remove(r *receiver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.peers[r.to] == r {
		delete(p.peers, r.to)
	}
}

// Begin implements fanout.Control.
func (r *receiver) Begin(feed *fanout.Feed, first int64, at time.Time) []byte {
	r.begun <- beginning{feed, first, at} // there is room: one for each PLAY
	return nil
}

// Receive implements fanout.Control.
func (r *receiver) Receive([]byte) {}

// Tick implements fanout.Control.
func (r *receiver) Tick(_ time.Time, frames, bytes int64) {
	r.frames.Store(frames)
	r.bytes.Store(bytes)
}

// done is called when the engine has ended the stream.
func (r *receiver) done() {
	close(r.ended)
	r.nudge()
}

// over reports whether the engine has ended the stream.
func (r *receiver) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// report sends a sender report.
func (r *receiver) report(now time.Time) {
	b := senderReport(r.ssrc, now, r.frames.Load(), r.bytes.Load())
	_, _ = r.ports.reports.WriteToUDPAddrPort(b, r.to) // as much as of any datagram may be lost
}

// silent reports whether nothing was heard for too long.
func (r *receiver) silent(now time.Time) bool {
	return now.Unix()-r.heard.Load() > int64(sessionTimeout/time.Second)
}
