package ingest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// slabSlots is about what 16 ms of two 40 Mbit/s streams bring; past it a
	// longer call saves nothing that can be measured.
	slabSlots = 128
	// slabSlot holds whatever fits an Ethernet frame.
	slabSlot = 2048
	// jumboSlots and jumboSlot are for flows with larger datagrams: any
	// datagram fits.
	jumboSlots = 32
	jumboSlot  = 64 << 10

	// sampleInterval is how often the kernel is asked about a queue.
	sampleInterval = time.Second
)

// A socketReceiver reads one socket per flow with recvmmsg.
type socketReceiver struct {
	cfg    ReceiverConfig
	keeper *keeper
	status ReceiverStatus

	// The rest is the loop's.
	now   time.Time
	slab  *slab
	jumbo *slab // nil until a flow needs it
}

var (
	_ Receiver = (*socketReceiver)(nil)
	_ Flow     = (*socketFlow)(nil)
	_ joiner   = (*socketFlow)(nil)
)

func newSocketReceiver(cfg ReceiverConfig) *socketReceiver {
	return &socketReceiver{cfg: cfg, keeper: newKeeper(cfg), slab: newSlab(slabSlots, slabSlot)}
}

func (r *socketReceiver) Open(spec FlowSpec) (Flow, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	f := &socketFlow{receiver: r, spec: spec, slab: r.slab}
	if err := f.open(f); err != nil {
		return nil, err
	}
	return f, nil
}

// open joins the group; j is f, or what f is a part of.
func (f *socketFlow) open(j joiner) error {
	m, err := f.receiver.keeper.openMembership(f.spec, j)
	if err != nil {
		return err
	}
	f.membership = m
	m.mu.Lock() // the keeper may be at it already
	defer m.mu.Unlock()
	f.socket = f.next.Swap(nil)
	f.pace.room = int64(f.socket.room)
	return nil
}

func (r *socketReceiver) Begin(now time.Time) { r.now = now }

func (r *socketReceiver) End() {}

// Report implements Receiver.
func (r *socketReceiver) Report() ReceiverStatus { return r.status }

func (r *socketReceiver) Close() error { return r.keeper.close() }

// A socketFlow reads from its socket until that is empty and another has taken
// its place: joining on another interface opens another socket, so that the
// kernel's queue of the old one is still read out and IPv6 groups whose scope
// is an interface work alike.
type socketFlow struct {
	receiver   *socketReceiver
	spec       FlowSpec
	membership *membership

	joined *socket                // the latest one; the membership's lock guards it
	next   atomic.Pointer[socket] // joined, when it waits to be socket; changes under that lock

	// The rest is the loop's.
	socket    *socket
	slab      *slab
	pace      pace
	senders   senders
	drained   bool  // the last Read took all there was
	muted     bool  // it has a filter that drops what a ring brings
	measured  int64 // memory per datagram when last sampled
	sampledAt time.Time
	dropped   uint32 // the socket's counter when last sampled

	datagrams, malformed, overflow int64
	fault                          error // of the last Read
}

func (f *socketFlow) Read(limit int) (datagrams [][]byte, more bool) {
	if limit <= 0 {
		return nil, false
	}
	now := f.receiver.now
	var queued int64
	if now.Sub(f.sampledAt) >= sampleInterval {
		f.sampledAt = now
		queued = f.sample()
	}
	n, errno := f.slab.receive(f.socket.fd, limit)
	if n == 0 {
		f.pace.take(now, 0)
		f.drained = true
		f.fault = nil
		if errno != 0 && errno != unix.EAGAIN {
			f.fault = errno
		}
		return nil, f.next.Load() != nil && f.adopt()
	}
	more = n == min(limit, len(f.slab.msg))
	datagrams = f.slab.collect(n)
	f.datagrams += int64(n)
	f.senders.see(now, f.slab.sender())
	if cut := n - len(datagrams); cut > 0 {
		f.malformed += int64(cut)
		f.slab = f.receiver.jumboSlab()
	}

	if queued > 0 && f.drained && !more {
		f.measured = queued / int64(n)
	}
	f.drained = !more
	f.pace.take(now, max(f.slab.cost, f.measured*int64(n)))
	return datagrams, more
}

// jumboSlab serves flows that have had a datagram cut. Those of the one call
// that showed it are lost, none after it, and no other flow's slab grows.
func (r *socketReceiver) jumboSlab() *slab {
	if r.jumbo == nil {
		r.jumbo = newSlab(jumboSlots, jumboSlot)
	}
	return r.jumbo
}

// sample asks the kernel what it dropped and how much memory waits. Drivers
// differ widely in what they spend on a frame, so the estimate of trueSize is
// only a lower bound for the pace.
func (f *socketFlow) sample() (queued int64) {
	queued, dropped := f.socket.memory()
	if more := dropped - f.dropped; more > 0 {
		f.overflow += int64(more)
		f.dropped = dropped
		f.pace.overflowed()
	}
	return queued
}

// adopt goes on to the next socket. It reports false when the keeper is busy
// with the flow: the loop does not wait for it.
func (f *socketFlow) adopt() bool {
	if !f.membership.mu.TryLock() {
		return false
	}
	defer f.membership.mu.Unlock()
	f.sample()
	old := f.socket
	f.socket = f.next.Swap(nil)
	f.dropped = 0
	f.pace.room = int64(f.socket.room)
	_ = old.close()
	return true
}

func (f *socketFlow) Status(s *Status) {
	if !f.muted {
		f.sample()
	}
	s.Receive = receiveSocket
	f.membership.status(s)
	f.senders.status(f.receiver.now, s)
	s.Datagrams = f.datagrams
	s.Malformed = f.malformed
	s.Overflow = f.overflow
	s.ReceiveBuffer = f.socket.room
	if f.fault != nil {
		s.Warnings = append(s.Warnings, "receiving: "+f.fault.Error())
	}
}

func (f *socketFlow) Interval() time.Duration { return f.pace.interval(queueParts) }

func (f *socketFlow) Rejoin() { f.membership.askRejoin() }

func (f *socketFlow) Close() error {
	f.membership.close()
	err := f.socket.close() // which leaves the group
	if next := f.next.Swap(nil); next != nil {
		err = errors.Join(err, next.close())
	}
	if err != nil {
		return fmt.Errorf("ingest: leave %s: %w", f.spec.Group, err)
	}
	return nil
}

func (f *socketFlow) join(at place) error {
	s, err := openSocket(f.spec.Group, at.index, f.receiver.cfg.ReadBuffer)
	if err != nil {
		return err
	}
	// The old one leaves first, so that no datagram waits in both: RTP could
	// tell a duplicate, bare TS cannot. It fails when its interface has gone.
	if f.joined != nil {
		_ = f.joined.leave(f.spec)
	}
	if err := s.join(f.spec); err != nil {
		_ = s.close()
		return err
	}
	f.joined = s
	if unread := f.next.Swap(s); unread != nil {
		_ = unread.close()
	}
	return nil
}

func (f *socketFlow) rejoin() error {
	_ = f.joined.leave(f.spec)
	return f.joined.join(f.spec)
}
