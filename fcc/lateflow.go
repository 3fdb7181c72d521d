package fcc

import (
	"sync"
	"sync/atomic"
	"time"

	"zapcast/ingest"
)

// A lateReceiver opens flows that join their group when they are told to.
type lateReceiver struct {
	ingest.Receiver
	flow *lateFlow
}

func (r *lateReceiver) Open(spec ingest.FlowSpec) (ingest.Flow, error) {
	r.flow = &lateFlow{receiver: r.Receiver, spec: spec}
	return r.flow, nil
}

// A lateFlow is a flow that joins its group later. Joining may block, so that a
// goroutine does it.
type lateFlow struct {
	receiver ingest.Receiver
	spec     ingest.FlowSpec

	asked  bool
	wg     sync.WaitGroup
	opened atomic.Pointer[lateResult]
}

type lateResult struct {
	flow ingest.Flow
	err  error
}

var _ ingest.Flow = (*lateFlow)(nil)

// join joins the group, once.
func (f *lateFlow) join() {
	if f.asked {
		return
	}
	f.asked = true
	f.wg.Go(func() {
		flow, err := f.receiver.Open(f.spec)
		f.opened.Store(&lateResult{flow, err})
	})
}

// flow returns the real one, or nil.
func (f *lateFlow) flow() ingest.Flow {
	if r := f.opened.Load(); r != nil && r.err == nil {
		return r.flow
	}
	return nil
}

func (f *lateFlow) Read(max int) ([][]byte, bool) {
	if flow := f.flow(); flow != nil {
		return flow.Read(max)
	}
	return nil, false
}

func (f *lateFlow) Status(s *ingest.Status) {
	if flow := f.flow(); flow != nil {
		flow.Status(s)
		return
	}
	s.Interface = f.spec.Interface
	if r := f.opened.Load(); r != nil {
		s.Warnings = append(s.Warnings, r.err.Error())
	}
}

func (f *lateFlow) Interval() time.Duration {
	if flow := f.flow(); flow != nil {
		return flow.Interval()
	}
	return 0
}

func (f *lateFlow) Rejoin() {
	f.join()
	if flow := f.flow(); flow != nil {
		flow.Rejoin()
	}
}

func (f *lateFlow) Close() error {
	f.wg.Wait()
	if flow := f.flow(); flow != nil {
		return flow.Close()
	}
	return nil
}
