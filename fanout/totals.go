package fanout

import (
	"time"

	"zapcast/ingest"
)

// Totals count from the engine's start on, over channels and viewers that have
// gone as well.
type Totals struct {
	Channels      int64            // opened
	Viewers       int64            // started
	Sent          int64            // bytes sent to viewers
	Skips         int64            // times that a slow viewer was moved on
	Blocks, Files int64            // batches made in memory and in memfds
	Source        ingest.Status    // sums of the sources' counters
	FCC           map[string]int64 // sources that tried fast channel change, by outcome
}

// channel adds what a channel has come to.
func (t *Totals) channel(s *ChannelStatus) {
	t.Channels++
	t.Skips += s.Skips
	t.Blocks += s.Blocks
	t.Files += s.Files
	t.Source.AddCounters(&s.Source)
	if s.Source.FCC != nil {
		if t.FCC == nil {
			t.FCC = map[string]int64{}
		}
		t.FCC[s.Source.FCC.Outcome()]++
	}
}

// add adds what another loop has come to.
func (t *Totals) add(o *Totals) {
	t.Channels += o.Channels
	t.Viewers += o.Viewers
	t.Sent += o.Sent
	t.Skips += o.Skips
	t.Blocks += o.Blocks
	t.Files += o.Files
	t.Source.AddCounters(&o.Source)
	for outcome, n := range o.FCC {
		if t.FCC == nil {
			t.FCC = map[string]int64{}
		}
		t.FCC[outcome] += n
	}
}

// zapped tells whoever counts them how long a viewer has waited: for his first
// byte, or for his first random-access point.
func (v *viewer) zapped(randomAccess bool, after time.Duration) {
	if f := v.ch.loop.cfg.Zapped; f != nil {
		f(v.start, randomAccess, after)
	}
}
