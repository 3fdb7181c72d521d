package ingest

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A ringReceiver reads packet rings, one for each interface and family, which
// all its flows there share. Each flow starts on its socket and goes over to the
// ring when the ring has shown to bring the same (see ringFlow).
type ringReceiver struct {
	socketReceiver
	rings *rings

	active []*ring // that have flows
	out    [][]byte
}

var (
	_ Receiver = (*ringReceiver)(nil)
	_ Flow     = (*ringFlow)(nil)
	_ joiner   = (*ringFlow)(nil)
)

// newReceiver returns the receiver that cfg asks for, or the best there is.
func newReceiver(cfg ReceiverConfig) Receiver {
	sockets := newSocketReceiver(cfg)
	status := ReceiverStatus{Receive: ReceiveSockets, Reason: "it was asked for"}
	if cfg.Receive != ReceiveSockets {
		if status.Reason = probeRing(); status.Reason == "" {
			status = ReceiverStatus{Receive: ReceiveRing, Reason: "packet sockets are permitted"}
		} else if cfg.Receive == ReceiveRing {
			cfg.Logger.Warn("packet rings were asked for and cannot be had", "err", status.Reason)
		}
	}
	sockets.status = status
	cfg.Logger.Info("how multicast is received", "receive", status.Receive, "reason", status.Reason)
	if status.Receive == ReceiveSockets {
		return sockets
	}
	return &ringReceiver{socketReceiver: *sockets, rings: newRings(cfg)}
}

// probeRing says why packet rings cannot be had; empty: they can.
func probeRing() string {
	fd, err := openPacketSocket()
	switch {
	case err == nil:
		unix.Close(fd)
		return ""
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "packet rings need CAP_NET_RAW: " + grantRawSockets
	case errors.Is(err, unix.EAFNOSUPPORT):
		return "this kernel has no packet sockets (CONFIG_PACKET)"
	}
	return err.Error()
}

func (r *ringReceiver) Open(spec FlowSpec) (Flow, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	f := &ringFlow{
		socketFlow: socketFlow{receiver: &r.socketReceiver, spec: spec, slab: r.slab},
		owner:      r,
		group:      rawAddr(spec.Group.Addr()), port: spec.Group.Port(),
		list: noNode, last: noNode,
	}
	if spec.Source.IsValid() {
		f.source = rawAddr(spec.Source)
	}
	if err := f.open(f); err != nil {
		r.rings.order(order{flow: f})
		return nil, err
	}
	if r.cfg.atOnce {
		f.beginOnRing()
	}
	return f, nil
}

// Begin walks the rings once for all flows.
func (r *ringReceiver) Begin(now time.Time) {
	r.now = now
	if r.rings.posted.Load() {
		r.readMail()
	}
	for _, ring := range r.active {
		ring.walk(now)
	}
}

// readMail hears what the control plane has made, and which flows were closed. A
// ring that letters name is used until all of them are read: once it is given
// back it may be gone.
func (r *ringReceiver) readMail() {
	letters := r.rings.mail()
	for _, l := range letters {
		if l.ring != nil {
			l.ring.users++
		}
	}
	for _, l := range letters {
		f := l.flow
		switch {
		case l.ring == nil:
			f.gone = true
			f.detach()
			f.promise(nil)
		case !f.gone:
			f.promise(l.ring)
			if f.muted && f.way == bySocket {
				f.attach()
				f.turn(byRing)
			}
		}
	}
	for _, l := range letters {
		if l.ring != nil {
			r.disuse(l.ring)
		}
	}
}

// End gives the rings what was read.
func (r *ringReceiver) End() {
	for i := len(r.active) - 1; i >= 0; i-- {
		ring := r.active[i]
		ring.release()
		if ring.users == 0 {
			r.active = slices.Delete(r.active, i, i+1)
			r.retire(ring)
		}
	}
}

// disuse takes a flow off a ring's account. What was read of the ring is still
// lent: End lets go of it.
func (r *ringReceiver) disuse(ring *ring) {
	ring.users--
	if ring.users == 0 && !slices.Contains(r.active, ring) {
		r.retire(ring)
	}
}

func (r *ringReceiver) retire(ring *ring) {
	ring.claimed.Store(false)
	r.rings.order(order{})
}

func (r *ringReceiver) Close() error {
	r.rings.close()
	return r.socketReceiver.Close()
}

// Report implements Receiver.
func (r *ringReceiver) Report() ReceiverStatus {
	s := r.status
	s.Faults = r.rings.faultList()
	for _, ring := range r.active {
		ring.sample(r.now)
		s.Rings = append(s.Rings, ring.status())
	}
	return s
}
