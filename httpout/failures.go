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

// add notes a failure. It reports whether that is news: not the same again, as
// when a player tries a dead channel over and over.
func (f *failures) add(new failure) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news = true
	list := slices.DeleteFunc(f.list, func(old failure) bool {
		if old.Channel != new.Channel {
			return false
		}
		news = old.Reason != new.Reason
		return true
	})
	list = slices.Insert(list, 0, new)
	f.list = list[:min(len(list), keptFailures)]
	return news
}

func (f *failures) snapshot() []failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]failure{}, f.list...)
}
