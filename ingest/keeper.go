package ingest

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// retryInterval is the pause after a join that failed on an interface that is
// there: IPv6, for one, starts a moment after its link.
const retryInterval = 2 * time.Second

// A keeper tends the memberships of one receiver in a goroutine of its own:
// joins them again when interfaces change or a flow asks for it, and sends the
// refreshing reports. Nothing of it runs in the loop.
//
// Locks: keeper.mu is never held while a membership's is taken.
type keeper struct {
	log     *slog.Logger
	look    func() (*links, error)
	reports *reporter // nil: refresh is off

	wake chan struct{} // capacity 1: a flow asked for something
	done chan struct{}
	stop func()
	wg   sync.WaitGroup

	mu      sync.Mutex // guards members
	members map[*membership]struct{}
}

func newKeeper(cfg ReceiverConfig) *keeper {
	k := &keeper{
		log:     cfg.Logger,
		look:    readLinks,
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		members: make(map[*membership]struct{}),
	}
	if cfg.Refresh > 0 {
		k.reports = newReporter(cfg.Logger)
	}
	changes := make(chan []int)
	watch, stop := watchLinks()
	k.stop = stop
	k.wg.Go(func() { watch(changes, k.done) })
	k.wg.Go(func() { k.run(changes, cfg.Refresh) })
	return k
}

func (k *keeper) close() error {
	close(k.done)
	k.stop()
	k.wg.Wait()
	return k.reports.close()
}

func (k *keeper) run(changes <-chan []int, refresh time.Duration) {
	var refreshing <-chan time.Time
	if refresh > 0 {
		ticker := time.NewTicker(refresh)
		defer ticker.Stop()
		refreshing = ticker.C
	}
	var retry <-chan time.Time
	for {
		settled := true
		select {
		case <-k.done:
			return
		case gone := <-changes:
			settled = k.settle(gone)
		case <-retry:
			retry = nil
			settled = k.settle(nil)
		case <-k.wake:
			for _, m := range k.list() {
				settled = m.rejoinIfAsked() && settled
			}
		case <-refreshing:
			k.refresh()
		}
		if !settled {
			retry = time.After(retryInterval)
		}
	}
}

func (k *keeper) settle(gone []int) (settled bool) {
	members := k.list()
	if len(members) == 0 {
		return true
	}
	l, err := k.look()
	if err != nil {
		k.log.Error("network interfaces cannot be listed", "err", err)
		return false
	}
	settled = true
	for _, m := range members {
		settled = m.settle(l, gone) && settled
	}
	return settled
}

// refresh sends one report for each membership; flows that share a group and
// differ in the port share the report.
func (k *keeper) refresh() {
	sent := make(map[report]error)
	for _, m := range k.list() {
		m.mu.Lock()
		r := report{index: m.at.index, group: m.spec.Group.Addr(), source: m.spec.Source}
		if !m.closed && !m.stale && r.needed() {
			err, ok := sent[r]
			if !ok {
				err = k.reports.send(r)
				sent[r] = err
			}
			m.refreshFault = ""
			if err != nil {
				m.refreshFault = "the last membership refresh was not sent: " + err.Error()
			}
			m.show()
		}
		m.mu.Unlock()
	}
}

// place is links.place on the links of this moment.
func (k *keeper) place(spec FlowSpec) (place, error) {
	l, err := k.look()
	if err != nil {
		return place{}, err
	}
	return l.place(spec)
}

func (k *keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *keeper) add(m *membership) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.members[m] = struct{}{}
}

func (k *keeper) remove(m *membership) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.members, m)
}

func (k *keeper) list() []*membership {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.members))
}
