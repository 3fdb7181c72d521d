package ingest

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// A joiner does to a flow's socket what its membership decides. Its methods are
// called with the membership's lock held.
type joiner interface {
	// join joins the group at a place, leaving the one before, if any.
	join(at place) error
	// rejoin leaves the group and joins it again where it is joined.
	rejoin() error
}

// A membership is the part of a flow that the keeper tends: where it is joined
// and what is wrong with that. States:
//
//	joined  at is where; the socket is a member there
//	stale   the socket is a member nowhere: the link has gone, or a join failed
//	closed  nothing is done any more
type membership struct {
	spec   FlowSpec
	keeper *keeper
	joiner joiner

	rejoinAsked atomic.Bool
	seen        atomic.Pointer[view] // what Status shows

	mu           sync.Mutex // guards what follows and the joiner's calls
	at           place
	stale        bool
	closed       bool
	fault        string // why it is not joined, or not where it should be
	refreshFault string // why the last report was not sent
}

// A view is a membership's share of a Status. It is never changed once stored.
type view struct {
	name     string
	local    string
	warnings []string
}

// openMembership finds a place for the spec, joins there and leaves the rest to
// the keeper.
func (k *keeper) openMembership(spec FlowSpec, j joiner) (*membership, error) {
	m := &membership{spec: spec, keeper: k, joiner: j}
	// The keeper knows of it before the interfaces are looked at, so that no
	// change of them falls in between.
	m.mu.Lock()
	defer m.mu.Unlock()
	k.add(m)
	at, err := k.place(spec)
	if err == nil {
		err = j.join(at)
	}
	if err != nil {
		m.closed = true
		k.remove(m)
		return nil, joinError(spec, cmp.Or(spec.Interface, at.name), err)
	}
	m.at = at
	m.show()
	return m, nil
}

// close ends the keeper's work on the membership. Once it has returned the
// joiner is not called any more.
func (m *membership) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.keeper.remove(m)
}

// askRejoin leaves the work to the keeper: the kernel's lock on the network's
// configuration may be held for long, and the loop cannot wait.
func (m *membership) askRejoin() {
	m.rejoinAsked.Store(true)
	m.keeper.poke()
}

func (m *membership) status(s *Status) {
	v := m.seen.Load()
	s.Interface = v.name
	s.Local = v.local
	s.Warnings = append(s.Warnings, v.warnings...)
}

// settle brings the membership to where it belongs now that the links may have
// changed; gone are those that were deleted since. It reports false when it is
// worth another try although no change will tell.
func (m *membership) settle(l *links, gone []int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return true
	}
	if slices.Contains(gone, m.at.index) {
		m.stale = true // even if another link has that index by now
	}
	defer m.show()

	at, err := l.place(m.spec)
	if err != nil {
		fault := err.Error()
		if errors.Is(err, ErrInterface) {
			m.stale = true
			m.at.warnings = nil
			fault = "interface " + m.at.name + " is gone: the group is joined again when it is back"
		}
		if m.fault != fault {
			m.fault = fault
			m.keeper.log.Warn("multicast interface lost", "source", m.spec.Group, "interface", m.at.name, "err", err)
		}
		return true
	}
	if at.index == m.at.index && !m.stale {
		m.at = at
		m.fault = ""
		return true
	}
	if err := m.joiner.join(at); err != nil {
		m.stale = true
		m.fault = "joining on " + at.name + " again: " + err.Error()
		return false
	}
	m.at, m.stale, m.fault = at, false, ""
	m.keeper.log.Info("multicast group joined again", "source", m.spec.Group, "interface", at.name, "index", at.index)
	return true
}

// rejoinIfAsked reports false when the group was left and not joined again.
func (m *membership) rejoinIfAsked() bool {
	if !m.rejoinAsked.Swap(false) {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.stale {
		return true
	}
	if err := m.joiner.rejoin(); err != nil {
		m.stale = true
		m.fault = "joining on " + m.at.name + " again: " + err.Error()
		m.show()
		return false
	}
	return true
}

// show stores what Status is to tell. The lock is held.
func (m *membership) show() {
	v := &view{name: m.at.name, warnings: slices.Clone(m.at.warnings)}
	if m.at.local.IsValid() {
		v.local = m.at.local.String()
	}
	for _, w := range []string{m.fault, m.refreshFault, m.keeper.reports.fault(m.spec.Group.Addr())} {
		if w != "" {
			v.warnings = append(v.warnings, w)
		}
	}
	m.seen.Store(v)
}
