package server

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"zapcast/fanout"
	"zapcast/tune"
)

// Groups are where channels are relayed to for clients who ask for multicast:
// each channel to one of them while it has such a client.
type Groups struct {
	Prefix    netip.Prefix // of the groups' addresses; the zero Prefix: no multicast
	Port      uint16       // of the packets, an even one; reports go to the next
	Interface string       // that they are sent through; empty: the routing table's choice
	TTL       int          // 0 to 255; 0 stays on this machine
}

// relays are the channels that are relayed at the moment.
type relays struct {
	mu    sync.Mutex
	byKey map[string]*relay
}

// A relay sends a channel to a group, as one viewer of the engine's.
type relay struct {
	all     *relays
	key     string
	ssrc    uint32
	groups  Groups
	group   netip.AddrPort
	clients int // guarded by all.mu

	mu      sync.Mutex // guards running and feed
	running bool
	feed    *fanout.Feed

	frames, bytes atomic.Int64
	begun         chan beginning
	ended         chan struct{} // closed when the engine has ended it
}

var _ fanout.Control = (*relay)(nil)

// join returns the relay of a channel, with one client more.
func (a *relays) join(key string, ssrc uint32, groups Groups) (*relay, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.byKey[key]
	if r == nil || r.over() {
		group, err := a.free(ssrc, groups)
		if err != nil {
			return nil, err
		}
		r = &relay{all: a, key: key, ssrc: ssrc, groups: groups, group: group, begun: make(chan beginning, 1), ended: make(chan struct{})}
		if a.byKey == nil {
			a.byKey = map[string]*relay{}
		}
		a.byKey[key] = r
	}
	r.clients++
	return r, nil
}

// free returns a group that no channel has. A channel gets the same one again
// where it can.
func (a *relays) free(ssrc uint32, groups Groups) (netip.AddrPort, error) {
	taken := map[netip.Addr]bool{}
	for _, r := range a.byKey {
		taken[r.group.Addr()] = true
	}
	prefix := groups.Prefix.Masked()
	bits := min(prefix.Addr().BitLen()-prefix.Bits(), 16) // more groups than there are channels
	for i := range uint32(1) << bits {
		addr := prefix.Addr().AsSlice()
		n := (ssrc + i) & (1<<bits - 1)
		addr[len(addr)-1] |= byte(n)
		addr[len(addr)-2] |= byte(n >> 8)
		if a, _ := netip.AddrFromSlice(addr); !taken[a] {
			return netip.AddrPortFrom(a, groups.Port), nil
		}
	}
	return netip.AddrPort{}, tune.Refuse(453, "all groups of %v are in use", groups.Prefix)
}

// leave takes one client off; the last one ends the relay.
func (r *relay) leave() {
	r.all.mu.Lock()
	r.clients--
	last := r.clients == 0
	if last && r.all.byKey[r.key] == r {
		delete(r.all.byKey, r.key)
	}
	r.all.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if last && r.feed != nil {
		r.feed.Close("the last client of the relay has gone")
	}
}

// parameters are what the Transport header says of it.
func (r *relay) parameters() string {
	return "multicast;destination=" + r.group.Addr().String() + ";port=" + pair(int(r.group.Port()), int(r.group.Port())+1) +
		";ttl=" + strconv.Itoa(r.groups.TTL)
}

// start sends, unless it is sent already; lease opens the channel.
func (r *relay) start(lease func() (*fanout.Lease, fanout.Viewer, error)) (first beginning, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over() {
		return first, errEnded
	}
	if r.running {
		return first, nil
	}
	l, viewer, err := lease()
	if err != nil {
		return first, err
	}
	packets, reports, err := r.dialBoth()
	if err != nil {
		l.Close()
		viewer.Done()
		return first, err
	}
	leave := viewer.Done
	viewer.Conn, viewer.Framing, viewer.Control = packets, framing{ssrc: r.ssrc}, r
	viewer.Client = r.group.String()
	viewer.Done = func() {
		leave()
		close(r.ended)
	}
	if err := l.Attach(viewer); err != nil {
		reports.Close()
		return first, err
	}
	r.running = true
	go r.report(reports)
	select {
	case first = <-r.begun:
		r.feed = first.feed
		return first, nil
	case <-r.ended:
		return first, errEnded
	}
}

// dialBoth opens a socket for packets, and one for reports.
func (r *relay) dialBoth() (packets, reports *net.UDPConn, err error) {
	if packets, err = r.dial(r.group.Port()); err != nil {
		return nil, nil, err
	}
	if reports, err = r.dial(r.group.Port() + 1); err != nil {
		packets.Close()
		return nil, nil, err
	}
	return packets, reports, nil
}

// dial opens a socket to the group.
func (r *relay) dial(port uint16) (*net.UDPConn, error) {
	to := netip.AddrPortFrom(r.group.Addr(), port)
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err == nil {
		err = r.groups.apply(c, to.Addr().Is4())
	}
	if err != nil {
		if c != nil {
			c.Close()
		}
		return nil, fmt.Errorf("rtsp/server: send to %v: %w", to, err)
	}
	return c, nil
}

// apply sets what a socket to a group needs.
func (g Groups) apply(c *net.UDPConn, is4 bool) error {
	var dev *net.Interface
	if g.Interface != "" {
		var err error
		if dev, err = net.InterfaceByName(g.Interface); err != nil {
			return err
		}
	}
	if is4 {
		p := ipv4.NewPacketConn(c)
		if dev != nil {
			if err := p.SetMulticastInterface(dev); err != nil {
				return err
			}
		}
		return p.SetMulticastTTL(g.TTL)
	}
	p := ipv6.NewPacketConn(c)
	if dev != nil {
		if err := p.SetMulticastInterface(dev); err != nil {
			return err
		}
	}
	return p.SetMulticastHopLimit(g.TTL)
}

// report sends sender reports until the relay ends.
func (r *relay) report(c net.Conn) {
	defer c.Close()
	ticker := time.NewTicker(reportInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			_, _ = c.Write(senderReport(r.ssrc, now, r.frames.Load(), r.bytes.Load())) // as much as of any datagram may be lost
		case <-r.ended:
			_, _ = c.Write(goodbye(r.ssrc))
			return
		}
	}
}

// over reports whether the engine has ended the relay.
func (r *relay) over() bool { return isClosed(r.ended) }

// relayed is the stream of one client of a relay, who cannot stop it for others.
type relayed struct {
	*relay
	timeout time.Duration // how long he may be silent
}

var _ stream = relayed{}

func (r relayed) pause()                             {}
func (r relayed) resume() (beginning, bool)          { return beginning{}, true }
func (r relayed) watch(now, lastWord time.Time) bool { return now.Sub(lastWord) <= r.timeout }
func (r relayed) close()                             {}

// Begin implements fanout.Control.
func (r *relay) Begin(feed *fanout.Feed, first int64, at time.Time) []byte {
	r.begun <- beginning{feed, first, at} // there is room: it begins once
	return nil
}

// Receive implements fanout.Control.
func (r *relay) Receive([]byte) {}

// Tick implements fanout.Control.
func (r *relay) Tick(_ time.Time, frames, bytes int64) {
	r.frames.Store(frames)
	r.bytes.Store(bytes)
}
