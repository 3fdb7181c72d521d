package server

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"zapcast/fanout"
	"zapcast/tune"
)

// ports is the pair of UDP ports from which all sessions with datagrams are
// served: an even one for packets and the next for reports (RFC 3550 §11). Each
// session has a socket of its own on the first, connected to its client.
type ports struct {
	packets *net.UDPConn // holds the port; what comes here is nobody's
	reports *net.UDPConn

	mu    sync.Mutex                   // guards peers
	peers map[netip.AddrPort]*receiver // by where reports come from, without a zone
}

// A receiver is a session whose packets are datagrams.
type receiver struct {
	ports  *ports
	to     netip.AddrPort // where its reports go to and come from
	ssrc   uint32
	heard  atomic.Int64 // when it last said something, in ns since 1970
	frames atomic.Int64 // sent until now
	bytes  atomic.Int64
	begun  chan beginning
	ended  chan struct{} // closed when the engine has ended the stream
	nudge  func()        // makes its goroutine look at ended
	feed   *fanout.Feed

	reported time.Time     // last sender report
	timeout  time.Duration // how long it may be silent
	paused   bool
}

var _ stream = (*receiver)(nil)

// beginning is what the engine says of a stream that starts. Without a feed it is
// one that runs already.
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
			r.heard.Store(time.Now().UnixNano())
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
	if p.peers[unmap(r.to)] != nil {
		return false
	}
	p.peers[unmap(r.to)] = r
	return true
}

func (p *ports) remove(r *receiver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.peers[unmap(r.to)] == r {
		delete(p.peers, unmap(r.to))
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

// startUnicast sends datagrams to the client.
func (c *conn) startUnicast() (first beginning, err error) {
	m := &c.machine
	p, err := c.server.openPorts()
	if err != nil {
		return first, err
	}
	r := &receiver{
		ports: p, to: netip.AddrPortFrom(c.addr, uint16(m.chosen.second)), ssrc: m.ssrc, begun: make(chan beginning, 2),
		ended: make(chan struct{}), nudge: func() { c.nc.SetReadDeadline(time.Unix(1, 0)) }, timeout: c.config.sessionTimeout,
	}
	r.heard.Store(time.Now().UnixNano())
	if !p.add(r) {
		return first, tune.Refuse(453, "port %d of %v is in use by another session", m.chosen.second, c.addr)
	}
	if first, err = c.send(r); err != nil {
		p.remove(r)
		return first, err
	}
	c.stream = r
	return first, nil
}

// send attaches r to the channel.
func (c *conn) send(r *receiver) (first beginning, err error) {
	lease, viewer, err := c.lease()
	if err != nil {
		return first, err
	}
	leave := viewer.Done
	from := netip.AddrPortFrom(addressOf(c.nc.LocalAddr()), uint16(r.ports.port()))
	if viewer.Conn, err = dialShared(from, netip.AddrPortFrom(c.addr, uint16(c.machine.chosen.first))); err != nil {
		lease.Close()
		leave()
		return first, err
	}
	viewer.Framing, viewer.Control = framing{ssrc: r.ssrc}, r
	viewer.Done = func() {
		leave()
		close(r.ended)
		r.nudge()
	}
	if err = lease.Attach(viewer); err != nil {
		return first, err
	}
	first, ok := r.wait()
	if !ok {
		return first, errEnded
	}
	return first, nil
}

// errEnded is a channel that ends when it should begin.
var errEnded = tune.Refuse(503, "the channel has ended")

// wait waits until the stream begins; false when it is over before that.
func (r *receiver) wait() (first beginning, ok bool) {
	select {
	case first = <-r.begun:
	case <-r.ended:
		select {
		case first = <-r.begun: // both: it began, and was over at once
		default:
			return first, false
		}
	}
	r.feed = first.feed
	return first, true
}

// over implements stream.
func (r *receiver) over() bool { return isClosed(r.ended) }

// isClosed reports whether c is.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// pause implements stream.
func (r *receiver) pause() {
	r.paused = true
	r.feed.Pause()
}

// resume implements stream.
func (r *receiver) resume() (beginning, bool) {
	r.paused = false
	r.feed.Resume()
	return r.wait()
}

// watch implements stream: reports in both directions.
func (r *receiver) watch(now, lastWord time.Time) bool {
	if !r.paused && now.Sub(r.reported) >= reportInterval {
		r.reported = now
		r.report(senderReport(r.ssrc, now, r.frames.Load(), r.bytes.Load()))
	}
	return !r.silent(now) || now.Sub(lastWord) <= r.timeout
}

// close implements stream.
func (r *receiver) close() {
	r.ports.remove(r)
	if r.over() {
		r.report(goodbye(r.ssrc))
	}
	r.feed.Close("the client says so, or has gone")
}

// report sends a report, which may be lost as any datagram may.
func (r *receiver) report(b []byte) { _, _ = r.ports.reports.WriteToUDPAddrPort(b, r.to) }

// silent reports whether no report was heard for too long.
func (r *receiver) silent(now time.Time) bool {
	return now.Sub(time.Unix(0, r.heard.Load())) > r.timeout
}
