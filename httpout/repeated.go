package httpout

import (
	"sync"
	"time"
)

// repeatInterval is the time between two log lines about the same trouble.
const repeatInterval = 10 * time.Second

// repeated turns a flood of events into one log line per interval.
type repeated struct {
	mu    sync.Mutex
	times int64 // since the last line
	last  time.Time
}

// log calls write with the number of events since the last line, unless that
// was less than an interval ago.
func (r *repeated) log(write func(times int64)) {
	r.mu.Lock()
	r.times++
	times, now := r.times, time.Now()
	due := r.last.IsZero() || now.Sub(r.last) >= repeatInterval
	if due {
		r.times, r.last = 0, now
	}
	r.mu.Unlock()
	if due {
		write(times)
	}
}
