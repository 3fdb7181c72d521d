package ingesttest

import (
	"bytes"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pion/rtp"

	"zapcast/ingest"
	"zapcast/mpegts"
)

func openFlow(t *testing.T, r *Receiver, group string) ingest.Flow {
	t.Helper()
	f, err := r.Open(ingest.FlowSpec{Group: netip.MustParseAddrPort(group)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestReceiver_spoilsDatagramsWhoseTimeIsOver(t *testing.T) {
	r := NewReceiver()
	a, b := openFlow(t, r, "239.1.1.1:1"), openFlow(t, r, "239.1.1.2:1")
	sent := []byte{1, 2, 3}
	for _, spec := range []string{"239.1.1.1:1", "239.1.1.1:1", "239.1.1.2:1"} {
		if n := r.Send(spec, sent); n != 1 {
			t.Fatalf("Send to %s: got %d flows, want 1", spec, n)
		}
	}
	first, more := a.Read(1)
	if len(first) != 1 || !bytes.Equal(first[0], sent) || !more {
		t.Fatalf("first Read: got %v, more %t, want one of two datagrams", first, more)
	}
	second, more := b.Read(9)
	if len(second) != 1 || more {
		t.Fatalf("Read of the other flow: got %v, more %t, want the only datagram", second, more)
	}
	if bytes.Equal(first[0], sent) {
		t.Error("a datagram outlived the next Read")
	}
	r.End()
	if bytes.Equal(second[0], sent) {
		t.Error("a datagram outlived End")
	}
}

func TestReceiver_keepsRecords(t *testing.T) {
	r := NewReceiver()
	a := openFlow(t, r, "239.1.1.2:1")
	b := openFlow(t, r, "239.1.1.1:1")
	if diff := cmp.Diff([]string{"239.1.1.1:1", "239.1.1.2:1"}, r.Joined()); diff != "" {
		t.Errorf("joined (-want +got):\n%s", diff)
	}
	b.Rejoin()
	for _, f := range []ingest.Flow{a, b, b} {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	want := []string{"join 239.1.1.2:1", "join 239.1.1.1:1", "rejoin 239.1.1.1:1", "leave 239.1.1.2:1", "leave 239.1.1.1:1"}
	if diff := cmp.Diff(want, r.Events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n := r.Send("239.1.1.1:1", []byte{1}); n != 0 {
		t.Errorf("Send after Close: got %d flows, want none", n)
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := r.Open(ingest.FlowSpec{}); !errors.Is(err, errClosed) {
		t.Errorf("Open after Close: got error %v, want %v", err, errClosed)
	}
}

func TestReceiver_isSafeForConcurrentUse(t *testing.T) {
	r := NewReceiver()
	f := openFlow(t, r, "239.1.1.1:1")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				r.SendFrom("192.0.2.9", "239.1.1.1:1", []byte{1})
				r.Joined()
				r.SetInterval(time.Second)
			}
		})
	}
	got := 0
	for got < 400 {
		datagrams, _ := f.Read(7)
		got += len(datagrams)
		var s ingest.Status
		f.Status(&s)
		f.Interval()
	}
	wg.Wait()
}

func TestDatagram(t *testing.T) {
	ts := TS(77, 7)
	if !mpegts.Whole(ts) || len(ts) != 1316 {
		t.Fatalf("TS: got %d bytes, want 1316 of whole packets", len(ts))
	}
	var got rtp.Packet
	if err := got.Unmarshal(Datagram(65535, 9, ts)); err != nil {
		t.Fatal(err)
	}
	if got.SequenceNumber != 65535 || got.SSRC != 9 || got.PayloadType != 33 || !bytes.Equal(got.Payload, ts) {
		t.Errorf("got %v, want sequence 65535, SSRC 9, payload type 33 and the same payload", got)
	}
}
