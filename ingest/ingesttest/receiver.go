package ingesttest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"zapcast/ingest"
)

// What every flow of a Receiver says of itself.
const (
	Interface = "test0"
	Local     = "192.0.2.7"
	Sender    = "198.51.100.1" // unless SendFrom says another
)

// errClosed is what a closed receiver answers.
var errClosed = errors.New("ingesttest: receiver is closed")

// spoilt is what datagrams turn into when their time is over.
const spoilt = 0xdb

// Receiver is an ingest.Receiver in memory: what a test sends to a flow comes
// out of the flow's Read. Like the real ones it takes the memory of datagrams
// back at the next Read or End, and spoils it, so that a slice kept too long
// shows as wrong bytes. Its methods may be called from any goroutine.
type Receiver struct {
	mu       sync.Mutex
	flows    []*flow
	lent     [][]byte // the datagrams that the last Read returned
	events   []string
	refusals map[string]error
	warnings map[string][]string
	interval time.Duration
	closed   bool
}

var _ ingest.Receiver = (*Receiver)(nil)

// NewReceiver returns a receiver without flows.
func NewReceiver() *Receiver {
	return &Receiver{refusals: make(map[string]error), warnings: make(map[string][]string)}
}

// Send sends a copy of datagram to every open flow whose FlowSpec.String is
// spec, and returns how many there are.
func (r *Receiver) Send(spec string, datagram []byte) int {
	return r.SendFrom(Sender, spec, datagram)
}

// SendFrom is Send with the address of the sender.
func (r *Receiver) SendFrom(sender, spec string, datagram []byte) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, f := range r.flows {
		if f.spec == spec {
			f.waiting = append(f.waiting, slices.Clone(datagram))
			f.status.Datagrams++
			f.status.Sender = sender
			n++
		}
	}
	return n
}

// Drop makes the flows of spec count n datagrams as dropped by the kernel.
func (r *Receiver) Drop(spec string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.flows {
		if f.spec == spec {
			f.status.Overflow += n
		}
	}
}

// Refuse makes Open of spec fail with err, or succeed again with nil.
func (r *Receiver) Refuse(spec string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals[spec] = err
}

// Warn makes the flows of spec, open or not yet, tell warnings in their status.
func (r *Receiver) Warn(spec string, warnings ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings[spec] = warnings
}

// SetInterval sets what the flows' Interval returns; zero at first.
func (r *Receiver) SetInterval(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interval = d
}

// Joined returns the specs of the open flows, sorted; one that is open twice
// appears twice.
func (r *Receiver) Joined() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	specs := make([]string, 0, len(r.flows))
	for _, f := range r.flows {
		specs = append(specs, f.spec)
	}
	slices.Sort(specs)
	return specs
}

// Events returns what was asked of the network so far, in order: "join SPEC",
// "rejoin SPEC", "leave SPEC".
func (r *Receiver) Events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Open implements ingest.Receiver.
func (r *Receiver) Open(spec ingest.FlowSpec) (ingest.Flow, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	f := &flow{receiver: r, spec: spec.String()}
	if err := r.refusals[f.spec]; err != nil {
		return nil, fmt.Errorf("ingesttest: join %s: %w", f.spec, err)
	}
	f.status = ingest.Status{Interface: Interface, Local: Local, ReceiveBuffer: 512 << 10}
	if spec.Interface != "" {
		f.status.Interface = spec.Interface
	}
	r.flows = append(r.flows, f)
	r.events = append(r.events, "join "+f.spec)
	return f, nil
}

// Begin implements ingest.Receiver.
func (r *Receiver) Begin(time.Time) {}

// End implements ingest.Receiver.
func (r *Receiver) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takeBack()
}

// Report implements ingest.Receiver.
func (r *Receiver) Report() ingest.ReceiverStatus {
	return ingest.ReceiverStatus{Receive: "test"}
}

// Close implements ingest.Receiver. Flows that are still open stay in Joined.
func (r *Receiver) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takeBack()
	r.closed = true
	return nil
}

// takeBack ends the validity of what Read returned last. r.mu is held.
func (r *Receiver) takeBack() {
	for _, b := range r.lent {
		for i := range b {
			b[i] = spoilt
		}
	}
	r.lent = nil
}

// flow is one membership. Its fields are guarded by the receiver's mutex.
type flow struct {
	receiver *Receiver
	spec     string
	waiting  [][]byte
	status   ingest.Status
}

func (f *flow) Read(max int) (datagrams [][]byte, more bool) {
	f.receiver.mu.Lock()
	defer f.receiver.mu.Unlock()
	f.receiver.takeBack()
	n := min(max, len(f.waiting))
	datagrams, f.waiting = f.waiting[:n:n], f.waiting[n:]
	f.receiver.lent = datagrams
	return datagrams, len(f.waiting) > 0
}

func (f *flow) Status(s *ingest.Status) {
	f.receiver.mu.Lock()
	defer f.receiver.mu.Unlock()
	s.Interface, s.Local, s.Sender = f.status.Interface, f.status.Local, f.status.Sender
	s.Datagrams, s.Overflow = f.status.Datagrams, f.status.Overflow
	s.ReceiveBuffer = f.status.ReceiveBuffer
	s.Warnings = append(s.Warnings, f.receiver.warnings[f.spec]...)
}

func (f *flow) Interval() time.Duration {
	f.receiver.mu.Lock()
	defer f.receiver.mu.Unlock()
	return f.receiver.interval
}

func (f *flow) Rejoin() {
	f.receiver.mu.Lock()
	defer f.receiver.mu.Unlock()
	f.receiver.events = append(f.receiver.events, "rejoin "+f.spec)
}

func (f *flow) Close() error {
	r := f.receiver
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.flows, f); i >= 0 {
		r.flows = slices.Delete(r.flows, i, i+1)
		r.events = append(r.events, "leave "+f.spec)
	}
	f.waiting = nil
	return nil
}
