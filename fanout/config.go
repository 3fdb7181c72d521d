package fanout

import (
	"fmt"
	"log/slog"
	"time"

	"zapcast/ingest"
)

// Config holds an engine's settings. Zero values mean the defaults. Those
// marked "start" are read once by New; Reconfigure changes the others.
type Config struct {
	Loops    int                             // data-plane loops, 1 to 64; default 1 (start)
	Plain    bool                            // portable path: no epoll, memfd, sendfile (start)
	Receiver func() (ingest.Receiver, error) // makes each loop's receiver; required (start)
	Logger   *slog.Logger                    // default: discard (start)

	// Zapped is told how long each viewer has waited since his request, for the
	// first byte and for the first random-access point, and where he began, as in
	// ViewerStatus.Start. It is called by the loops and must not block. Default:
	// nobody (start).
	Zapped func(start string, randomAccess bool, after time.Duration)

	History        int64         // bytes of stream kept in all channels; default 32 MiB
	ChannelHistory int64         // the same for one channel; default 8 MiB
	Linger         time.Duration // how long a channel outlives its last viewer; default 15 s, negative: not at all
	Silence        time.Duration // pause of a source that ends its channel; default 5 s
	StartWait      time.Duration // longest wait of a viewer for a random-access point once data flows; default 4 s
	Flush          time.Duration // age at which a shared batch is sent; default 100 ms
	Lag            time.Duration // how far a viewer may fall behind; default 10 s
	LagBytes       int64         // the same in bytes that he keeps from being freed; default 16 MiB
	Slow           SlowPolicy    // what happens to a viewer beyond that; default Skip
}

// A SlowPolicy says what happens to a viewer who lags too far behind.
type SlowPolicy int

const (
	Skip       SlowPolicy = iota // he goes on at the newest random-access point
	Disconnect                   // his connection is closed
)

const (
	defaultHistory        = 32 << 20
	defaultChannelHistory = 8 << 20 // 4K at 35 Mbit/s with a random-access point each 1.8 s
	defaultLinger         = 15 * time.Second
	defaultSilence        = 5 * time.Second
	defaultStartWait      = 4 * time.Second // operators' random-access points are 0.5 to 2 s apart, rarely 4 s
	defaultFlush          = 100 * time.Millisecond
	defaultLag            = 10 * time.Second
	defaultLagBytes       = 16 << 20
)

func (c Config) withDefaults() Config {
	set := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	setBytes := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	c.Loops = max(c.Loops, 1)
	setBytes(&c.History, defaultHistory)
	setBytes(&c.ChannelHistory, defaultChannelHistory)
	setBytes(&c.LagBytes, defaultLagBytes)
	set(&c.Linger, defaultLinger)
	set(&c.Silence, defaultSilence)
	set(&c.StartWait, defaultStartWait)
	set(&c.Flush, defaultFlush)
	set(&c.Lag, defaultLag)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	if c.Receiver == nil {
		return fmt.Errorf("fanout: configure: no receiver given")
	}
	if c.Loops > 64 {
		return fmt.Errorf("fanout: configure: loops: expected 1 to 64, found %d", c.Loops)
	}
	return nil
}
