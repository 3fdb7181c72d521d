//go:build !linux

package ingest

// watchLinks polls: see pollLinks.
func watchLinks() (run func(changes chan<- []int, done <-chan struct{}), stop func()) {
	return pollLinks, func() {}
}
