package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

const (
	// tidyFirst is when the start, and the first viewers' requests, are over.
	tidyFirst = 5 * time.Second
	// tidyEvery bounds what tidying costs: about 0.2 ms each time.
	tidyEvery = time.Minute
)

// tidy keeps the program small while it runs, until ctx ends. Streaming touches
// little of it: what starting, requests and status pages left behind, garbage
// and pages of code, is given back from time to time.
func tidy(ctx context.Context, log *slog.Logger) {
	timer := time.NewTimer(tidyFirst)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(tidyEvery)
		}
		debug.FreeOSMemory()
		if err := dropCodePages(); err != nil {
			log.Debug("pages of code not given back", "err", err)
			return
		}
	}
}
