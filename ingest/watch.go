package ingest

import "time"

// pollInterval is how often interfaces are looked at where the system does not
// tell of changes.
const pollInterval = 2 * time.Second

// pollLinks says every now and then that the interfaces may have changed,
// until done is closed.
func pollLinks(changes chan<- []int, done <-chan struct{}) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		select {
		case <-done:
			return
		case changes <- nil:
		}
	}
}
