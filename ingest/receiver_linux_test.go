package ingest

import (
	"os"
	"testing"
)

func countDescriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(all)
}

func membershipOf(f Flow) *membership {
	if f, ok := f.(*plainFlow); ok {
		return f.membership
	}
	if f, ok := f.(*ringFlow); ok {
		return f.membership
	}
	return f.(*socketFlow).membership
}

func ringsPermitted() bool { return probeRing() == "" }

func beginsOnRing(r Receiver) bool {
	ring, ok := r.(*ringReceiver)
	return ok && ring.cfg.atOnce
}

// The estimate is to be what the kernel really charges on loopback: less would
// lose datagrams, much more would make ticks short for nothing.
func TestTrueSize_againstTheKernel(t *testing.T) {
	lo := loopback(t)
	r, err := NewReceiver(ReceiverConfig{Receive: ReceiveSockets})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := sendFrom(t, "127.0.0.1", lo)
	for _, size := range []int{12, 188, 376, 940, 1316, 1328, 1472} {
		group := newGroup(t)
		f := open(t, r, FlowSpec{Group: group, Interface: lo}).(*socketFlow)
		for range 16 {
			send(t, c, group, string(make([]byte, size)))
		}
		queued, dropped := f.socket.memory()
		if queued == 0 && dropped == 0 {
			t.Skip("the kernel has no SO_MEMINFO")
		}
		got, want := trueSize(size), queued/16
		if got < want || got > 2*want {
			t.Errorf("%d bytes: estimate %d, the kernel charges %d", size, got, want)
		}
		if n := len(receive(t, r, f, 16)); n != 16 {
			t.Errorf("%d bytes: got %d datagrams, want 16", size, n)
		}
	}
}

func TestSocketFlow_overflowIsCountedAndMindsThePace(t *testing.T) {
	lo := loopback(t)
	r, err := NewReceiver(ReceiverConfig{Receive: ReceiveSockets, ReadBuffer: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	group := newGroup(t)
	f := open(t, r, FlowSpec{Group: group, Interface: lo})
	c := sendFrom(t, "127.0.0.1", lo)
	const sent = 200
	for range sent {
		send(t, c, group, string(make([]byte, 1316)))
	}
	got := len(receive(t, r, f, 1))
	s := status(f)
	if s.Overflow == 0 || int64(got)+s.Overflow != sent {
		t.Errorf("got %d datagrams and an overflow of %d, want %d together", got, s.Overflow, sent)
	}
	if got := f.Interval(); got != minInterval {
		t.Errorf("interval: got %s, want %s", got, minInterval)
	}
}

// Datagrams that wait in the socket of the old interface are read before those
// of the new, none twice.
func TestSocketFlow_moveKeepsWhatWaits(t *testing.T) {
	lo := loopback(t)
	r, err := NewReceiver(ReceiverConfig{Receive: ReceiveSockets})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	group := newGroup(t)
	f := open(t, r, FlowSpec{Group: group, Interface: lo}).(*socketFlow)
	c := sendFrom(t, "127.0.0.1", lo)
	before := countDescriptors(t)
	send(t, c, group, "1", "2")
	for range 2 { // the second time before the loop has seen the first
		f.membership.mu.Lock()
		err = f.join(f.membership.at)
		f.membership.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	send(t, c, group, "3")
	got := receive(t, r, f, 3)
	if len(got) != 3 || got[0] != "1" || got[1] != "2" || got[2] != "3" {
		t.Errorf("got %q, want 1 2 3", got)
	}
	if got := countDescriptors(t); got != before {
		t.Errorf("descriptors: got %d, want %d as before", got, before)
	}
	if got := status(f); got.Datagrams != 3 {
		t.Errorf("datagrams: got %d, want 3", got.Datagrams)
	}
}
