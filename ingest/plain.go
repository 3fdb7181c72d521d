package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	// plainSlots is the ring's length: 130 ms of a 40 Mbit/s stream.
	plainSlots = 512
	// plainRead bounds one Read, as a call of recvmmsg is bounded.
	plainRead = 128
	// maxDatagram is more than UDP can carry: nothing is ever cut.
	maxDatagram = 64 << 10
	// readPause keeps a socket that does nothing but fail from spinning.
	readPause = 10 * time.Millisecond
)

// A plainReceiver reads with what every system has: one goroutine per flow that
// copies into a ring.
type plainReceiver struct {
	cfg    ReceiverConfig
	keeper *keeper

	// The rest is the loop's.
	now time.Time
	out [][]byte
}

var (
	_ Receiver = (*plainReceiver)(nil)
	_ Flow     = (*plainFlow)(nil)
	_ joiner   = (*plainFlow)(nil)
)

func newPlainReceiver(cfg ReceiverConfig) *plainReceiver {
	return &plainReceiver{cfg: cfg, keeper: newKeeper(cfg), out: make([][]byte, 0, plainRead)}
}

func (r *plainReceiver) Open(spec FlowSpec) (Flow, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	f := &plainFlow{receiver: r, spec: spec, done: make(chan struct{}), pace: pace{room: plainSlots}}
	// Asked for a multicast address, package net binds to the wildcard and
	// shares the port.
	network := "udp4"
	if spec.Group.Addr().Is6() {
		network = "udp6"
	}
	conn, err := net.ListenPacket(network, spec.Group.String())
	if err != nil {
		return nil, joinError(spec, spec.Interface, err)
	}
	f.conn = conn.(*net.UDPConn)
	_ = f.conn.SetReadBuffer(r.cfg.ReadBuffer) // as much as there is
	f.chooseFamily()
	m, err := r.keeper.openMembership(spec, f)
	if err != nil {
		_ = f.conn.Close()
		return nil, err
	}
	f.membership = m
	go f.fill()
	return f, nil
}

func (r *plainReceiver) Begin(now time.Time) { r.now = now }

func (r *plainReceiver) End() {}

// Report implements Receiver.
func (r *plainReceiver) Report() ReceiverStatus {
	return ReceiverStatus{Receive: receivePlain, Reason: "it was asked for, or the system has no other way"}
}

func (r *plainReceiver) Close() error { return r.keeper.close() }

// groupConn is what ipv4.PacketConn and ipv6.PacketConn have in common.
type groupConn interface {
	JoinGroup(*net.Interface, net.Addr) error
	LeaveGroup(*net.Interface, net.Addr) error
	JoinSourceSpecificGroup(*net.Interface, net.Addr, net.Addr) error
	LeaveSourceSpecificGroup(*net.Interface, net.Addr, net.Addr) error
}

// A plainFlow is a ring with one writer, fill, and one reader, the loop. Slots
// from head to tail are the reader's, the others the writer's.
type plainFlow struct {
	receiver   *plainReceiver
	spec       FlowSpec
	membership *membership
	conn       *net.UDPConn
	group      groupConn
	parse      func(oob []byte) (to net.IP, index int) // nil: the system does not tell
	index      atomic.Int32                            // of the interface that is joined on

	ring       [plainSlots]plainSlot
	head, tail atomic.Uint32
	overflow   atomic.Int64 // datagrams that found the ring full
	done       chan struct{}

	// The rest is the loop's.
	taken     uint32 // end of what the last Read lent
	pace      pace
	senders   senders
	datagrams int64
}

type plainSlot struct {
	data []byte
	from netip.AddrPort
}

// chooseFamily sets up what differs between IPv4 and IPv6. A socket on the
// wildcard gets what comes to its port for any group; where the system says to
// which group and by which interface a datagram came, fill leaves out the rest.
// Windows does not, and hands a socket only the groups that it has joined.
func (f *plainFlow) chooseFamily() {
	if f.spec.Group.Addr().Is4() {
		conn := ipv4.NewPacketConn(f.conn)
		f.group = conn
		if conn.SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true) == nil {
			var cm ipv4.ControlMessage
			f.parse = func(oob []byte) (net.IP, int) {
				if cm.Parse(oob) != nil {
					return nil, 0
				}
				return cm.Dst, cm.IfIndex
			}
		}
		return
	}
	conn := ipv6.NewPacketConn(f.conn)
	f.group = conn
	if conn.SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true) == nil {
		var cm ipv6.ControlMessage
		f.parse = func(oob []byte) (net.IP, int) {
			if cm.Parse(oob) != nil {
				return nil, 0
			}
			return cm.Dst, cm.IfIndex
		}
	}
}

// fill reads until the socket is closed.
func (f *plainFlow) fill() {
	defer close(f.done)
	var arrival arrival
	// Both families' control messages fit with room to spare.
	buf, oob := make([]byte, maxDatagram), make([]byte, 256)
	for {
		n, oobn, _, from, err := f.conn.ReadMsgUDPAddrPort(buf, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(readPause)
			continue
		}
		if f.parse != nil && !f.meant(arrival.of(oob[:oobn], f.parse)) {
			continue
		}
		tail := f.tail.Load()
		if tail-f.head.Load() == plainSlots {
			f.overflow.Add(1)
			continue
		}
		slot := &f.ring[tail%plainSlots]
		slot.data = append(slot.data[:0], buf[:n]...)
		slot.from = from
		f.tail.Store(tail + 1)
	}
}

// meant tells whether a datagram came to the group, by the interface.
func (f *plainFlow) meant(to netip.Addr, index int) bool {
	return to == f.spec.Group.Addr() && int32(index) == f.index.Load()
}

// An arrival is where the last datagram came to. The control messages of one
// stream are all alike, and parsing them allocates.
type arrival struct {
	oob   []byte
	to    netip.Addr
	index int
}

func (a *arrival) of(oob []byte, parse func([]byte) (net.IP, int)) (to netip.Addr, index int) {
	if !bytes.Equal(oob, a.oob) {
		ip, index := parse(oob)
		to, _ := netip.AddrFromSlice(ip)
		a.to, a.index = to.Unmap(), index
		a.oob = append(a.oob[:0], oob...)
	}
	return a.to, a.index
}

func (f *plainFlow) Read(limit int) (datagrams [][]byte, more bool) {
	f.head.Store(f.taken) // what was lent is the writer's again
	waiting := int(f.tail.Load() - f.taken)
	n := min(limit, waiting, plainRead)
	f.pace.take(f.receiver.now, int64(n))
	if n <= 0 {
		return nil, false
	}
	f.senders.see(f.receiver.now, f.ring[f.taken%plainSlots].from)
	out := f.receiver.out[:0]
	for i := range uint32(n) {
		data := f.ring[(f.taken+i)%plainSlots].data
		out = append(out, data[:len(data):len(data)])
	}
	f.taken += uint32(n)
	f.datagrams += int64(n)
	return out, n < waiting
}

// Status leaves ReceiveBuffer at zero: what was granted cannot be read back
// everywhere, and the ring is what fills.
func (f *plainFlow) Status(s *Status) {
	f.membership.status(s)
	f.senders.status(f.receiver.now, s)
	s.Receive = receivePlain
	s.Datagrams = f.datagrams
	s.Overflow = f.overflow.Load()
}

func (f *plainFlow) Interval() time.Duration { return f.pace.interval(queueParts) }

func (f *plainFlow) Rejoin() { f.membership.askRejoin() }

func (f *plainFlow) Close() error {
	f.membership.close()
	err := f.conn.Close() // which leaves the group
	<-f.done
	if err != nil {
		return fmt.Errorf("ingest: leave %s: %w", f.spec.Group, err)
	}
	return nil
}

func (f *plainFlow) join(at place) error {
	if old := f.index.Load(); old != 0 {
		_ = f.leave(int(old)) // fails when that interface has gone
	}
	group, source := f.addrs()
	link := &net.Interface{Index: at.index, Name: at.name}
	var err error
	if source == nil {
		err = f.group.JoinGroup(link, group)
	} else {
		err = f.group.JoinSourceSpecificGroup(link, group, source)
	}
	if errors.Is(err, syscall.ENODEV) {
		return ErrInterface
	}
	if err != nil {
		return err
	}
	f.index.Store(int32(at.index))
	return nil
}

func (f *plainFlow) leave(index int) error {
	group, source := f.addrs()
	link := &net.Interface{Index: index}
	if source == nil {
		return f.group.LeaveGroup(link, group)
	}
	return f.group.LeaveSourceSpecificGroup(link, group, source)
}

func (f *plainFlow) rejoin() error {
	return f.join(place{index: int(f.index.Load())})
}

// addrs are the group and, for a source-specific join, the source.
func (f *plainFlow) addrs() (group, source net.Addr) {
	group = &net.UDPAddr{IP: f.spec.Group.Addr().AsSlice()}
	if f.spec.Source.IsValid() {
		source = &net.UDPAddr{IP: f.spec.Source.AsSlice()}
	}
	return group, source
}
