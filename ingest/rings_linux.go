package ingest

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// rings is the control plane of a receiver's rings: a goroutine that makes them,
// keeps their filters in step with what the flows want, and closes them. It and
// the loop write to each other; neither waits.
type rings struct {
	log  *slog.Logger
	size int // bytes of a ring
	wake chan struct{}
	done chan struct{}
	wg   sync.WaitGroup

	posted atomic.Bool // there are letters

	mu      sync.Mutex // guards what follows
	orders  []order
	settled sync.Cond // all orders have been carried out
	busy    bool
	letters []letter
	faults  map[string]string // why an interface has no ring, by its name
}

// An order is the flow's wish: a ring on the interface, or, with index 0, none
// any more. Without a flow it asks for rings to be closed that nobody uses.
type order struct {
	flow  *ringFlow
	index int
	name  string
}

// A letter tells the loop that a flow can be read from a ring, or, where that is
// nil, that the flow was closed.
type letter struct {
	flow *ringFlow
	ring *ring
}

type ringKey struct {
	index int
	v6    bool
}

// A tended ring is one as the control plane sees it.
type tended struct {
	ring  *ring
	flows map[*ringFlow]struct{}
	fresh []*ringFlow // not in the filter yet
	dirty bool
}

func newRings(cfg ReceiverConfig) *rings {
	k := &rings{log: cfg.Logger, size: cfg.RingBytes, faults: map[string]string{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	k.settled.L = &k.mu
	k.wg.Go(k.run)
	return k
}

// order leaves an order. It may be called from any goroutine, with a
// membership's lock held, too.
func (k *rings) order(o order) {
	k.mu.Lock()
	k.orders = append(k.orders, o)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *rings) post(l letter) {
	k.mu.Lock()
	k.letters = append(k.letters, l)
	k.mu.Unlock()
	k.posted.Store(true)
}

// mail returns the letters so far; the loop calls it when posted says so. The
// rings in them are the loop's from then on, until it clears claimed.
func (k *rings) mail() []letter {
	k.posted.Store(false)
	k.mu.Lock()
	defer k.mu.Unlock()
	letters := k.letters
	k.letters = nil
	for _, l := range letters {
		if l.ring != nil {
			l.ring.claimed.Store(true)
		}
	}
	return letters
}

// unclaimed reports whether the loop neither has the ring nor will hear of it.
func (k *rings) unclaimed(r *ring) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.claimed.Load() {
		return false
	}
	k.letters = slices.DeleteFunc(k.letters, func(l letter) bool { return l.ring == r })
	return true
}

// close closes all rings; no flow may be read any more.
func (k *rings) close() {
	close(k.done)
	k.wg.Wait()
}

func (k *rings) run() {
	all := map[ringKey]*tended{}
	of := map[*ringFlow]*tended{}
	defer func() {
		for _, t := range all {
			_ = t.ring.close()
		}
	}()
	for {
		select {
		case <-k.done:
			return
		case <-k.wake:
		}
		k.mu.Lock()
		orders := k.orders
		k.orders, k.busy = nil, true
		k.mu.Unlock()
		for _, o := range orders {
			if o.flow != nil {
				k.carryOut(o, all, of)
			}
		}
		for key, t := range all {
			k.refresh(key, t, all)
		}
		k.mu.Lock()
		k.busy = false
		k.settled.Broadcast()
		k.mu.Unlock()
	}
}

// settle waits until there is nothing to do.
func (k *rings) settle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.busy || len(k.orders) > 0 {
		k.settled.Wait()
	}
}

func (k *rings) carryOut(o order, all map[ringKey]*tended, of map[*ringFlow]*tended) {
	if t := of[o.flow]; t != nil {
		delete(of, o.flow)
		delete(t.flows, o.flow)
		t.fresh = slices.DeleteFunc(t.fresh, func(f *ringFlow) bool { return f == o.flow })
		t.dirty = true
	}
	if o.index == 0 {
		return
	}
	key := ringKey{o.index, o.flow.spec.Group.Addr().Is6()}
	t := all[key]
	if t == nil {
		r, err := openRing(o.index, o.name, key.v6, k.size)
		k.note(o.name, err)
		if err != nil {
			return
		}
		k.log.Info("packet ring opened", "interface", o.name, "ipv6", key.v6, "bytes", len(r.mem))
		t = &tended{ring: r, flows: map[*ringFlow]struct{}{}}
		all[key] = t
	}
	of[o.flow] = t
	t.flows[o.flow] = struct{}{}
	t.fresh = append(t.fresh, o.flow)
	t.dirty = true
}

// note keeps why an interface has no ring; nil: it has one.
func (k *rings) note(name string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.faults, name)
	if err != nil && !errors.Is(err, unix.ENODEV) { // gone again: the keeper tells
		k.faults[name] = err.Error()
		k.log.Warn("no packet ring: groups are received by sockets", "interface", name, "err", err)
	}
}

// refresh brings the filter up to date, and closes the ring if nobody is left.
func (k *rings) refresh(key ringKey, t *tended, all map[ringKey]*tended) {
	if len(t.flows) == 0 && k.unclaimed(t.ring) {
		delete(all, key)
		_ = t.ring.close()
		k.log.Info("packet ring closed", "interface", t.ring.name, "ipv6", t.ring.v6)
		return
	}
	if !t.dirty {
		return
	}
	t.dirty = false
	var keys []filterKey
	for f := range maps.Keys(t.flows) {
		keys = append(keys, filterKey{f.group, f.port})
	}
	kind, err := attachFilter(t.ring.fd, t.ring.v6, keys)
	k.note(t.ring.name, err)
	if err != nil {
		t.fresh = nil
		return
	}
	t.ring.filter.Store(int32(kind))
	for _, f := range t.fresh {
		k.post(letter{f, t.ring})
	}
	t.fresh = nil
}

// faultList says which interfaces have no ring, and why.
func (k *rings) faultList() (list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, fault := range k.faults {
		list = append(list, name+": "+fault)
	}
	slices.Sort(list)
	return list
}
