package fanout

import (
	"cmp"
	"slices"
	"time"

	"zapcast/ingest"
)

// Status is a snapshot of an engine.
type Status struct {
	Loops        int
	MemoryBytes  int64 // of stream held, in memory and in memfds
	MemoryBudget int64
	Sharing      bool                    // memfd and sendfile are in use
	Receivers    []ingest.ReceiverStatus // of each loop
	Channels     []ChannelStatus
	Viewers      []ViewerStatus
	Totals       Totals
}

// ChannelStatus is a snapshot of one channel.
type ChannelStatus struct {
	ID               string // the key it was opened under
	State            string // "opening", "starting", "live", "silent", "lingering", "ending"
	Since            time.Time
	Viewers          int
	Waiting          int // requests that wait for a start
	BitRate          int64
	Bytes            int64
	Codec            string
	HistoryBytes     int64
	LastRandomAccess time.Duration // age; negative: none seen
	Skips            int64         // times that a slow viewer was moved on
	Blocks, Files    int64         // batches made in memory and in memfds
	Seen             string        // what the source says of what has arrived
	Source           ingest.Status
}

// ViewerStatus is a snapshot of one viewer.
type ViewerStatus struct {
	ID                           int64
	Client, URL, Agent, Channel  string
	Since                        time.Time
	Bytes, LagBytes, Skips       int64
	Lag                          time.Duration
	Blocked                      bool          // his connection is full at the moment
	Start                        string        // where he began: "history", "cold" or "live"
	FirstByte, FirstRandomAccess time.Duration // after the request; 0: not yet
}

// Status asks every loop for what it has.
func (e *Engine) Status() Status {
	cfg := e.cfg.Load()
	s := Status{Loops: len(e.loops), MemoryBudget: cfg.History}
	for _, l := range e.loops {
		l.do(func() {
			s.MemoryBytes += l.store.bytes
			s.Sharing = l.store.share
			s.Receivers = append(s.Receivers, l.receiver.Report())
			s.Totals.add(&l.past)
			for _, c := range l.channels {
				s.Channels = append(s.Channels, c.status())
				for _, v := range c.viewers {
					s.Totals.Sent += v.bytes
					s.Viewers = append(s.Viewers, v.status())
				}
			}
		})
	}
	for i := range s.Channels {
		s.Totals.channel(&s.Channels[i])
	}
	slices.SortFunc(s.Channels, func(a, b ChannelStatus) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Viewers, func(a, b ViewerStatus) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

func (c *channel) state() string {
	switch now := c.loop.now; {
	case c.source == nil:
		return "opening"
	case c.over != nil:
		return "ending"
	case c.firstData.IsZero():
		return "starting"
	case now.Sub(c.lastData) > time.Second:
		return "silent"
	case !c.idleSince.IsZero():
		return "lingering"
	}
	return "live"
}

func (c *channel) status() ChannelStatus {
	s := ChannelStatus{
		ID: c.key, State: c.state(), Since: c.opened, Viewers: len(c.viewers), Waiting: len(c.waiters) + c.reserved,
		BitRate: c.rate, Bytes: c.bytes, Codec: c.scan.Codec(), HistoryBytes: c.chain.bytes(), LastRandomAccess: -1,
		Skips: c.skips, Blocks: c.chain.blocks, Files: c.chain.files,
	}
	if c.random {
		s.LastRandomAccess = c.loop.now.Sub(c.randomAt)
	}
	if c.source != nil {
		s.Source, s.Seen = c.source.Status(), c.source.Seen()
	}
	return s
}

func (v *viewer) status() ViewerStatus {
	s := ViewerStatus{
		ID: v.id, Client: v.info.Client, URL: v.info.URL, Agent: v.info.Agent, Channel: v.ch.key, Since: v.began,
		Bytes: v.bytes, Skips: v.skips, Blocked: v.blocked, Start: v.start,
		FirstByte: v.firstByte, FirstRandomAccess: v.firstRandomAccess,
	}
	s.LagBytes, s.Lag = v.lag(v.ch.loop.now)
	return s
}
