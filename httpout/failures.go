package httpout

import (
	"slices"
	"sync"
	"time"
)

// keptFailures is how many channels that did not start the status shows.
const keptFailures = 8

// A failure is a channel that did not start, the last time it was asked for.
type failure struct {
	Channel string    `json:"channel"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
}

// failures keeps the newest failures, one for each channel, newest first.
type failures struct {
	mu   sync.Mutex
	list []failure
}

func (f *failures) add(new failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := slices.DeleteFunc(f.list, func(old failure) bool { return old.Channel == new.Channel })
	list = slices.Insert(list, 0, new)
	f.list = list[:min(len(list), keptFailures)]
}

func (f *failures) snapshot() []failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]failure{}, f.list...)
}
