package httpout

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"zapcast/fanout"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

// engineOf500 is an engine whose network is in memory and whose channels linger.
func engineOf500(testing.TB) fanout.Config {
	network := ingesttest.NewReceiver()
	return fanout.Config{Receiver: func() (ingest.Receiver, error) { return network, nil }, Linger: time.Hour, Silence: time.Hour}
}

// open500 opens 500 channels that wait for their first data.
func open500(b testing.TB, engine *fanout.Engine) {
	for i := range 500 {
		spec := ingest.FlowSpec{Group: netip.MustParseAddrPort(fmt.Sprintf("239.1.%d.%d:5000", i>>8, i&255))}
		go engine.Open(b.Context(), spec.String(), func(r ingest.Receiver) (ingest.Source, error) { return ingest.OpenMulticast(r, spec) })
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		opened := 0
		for _, c := range engine.Status().Channels {
			if c.State == "starting" {
				opened++
			}
		}
		if opened == 500 {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("got %d channels open, want 500", opened)
		}
	}
}
