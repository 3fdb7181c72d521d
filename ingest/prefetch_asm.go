//go:build amd64 || arm64

package ingest

import "unsafe"

// prefetch asks the processor for n lines, step bytes apart, and waits for none.
// It is a hint: an address that is not mapped does no harm. n is at least 1.
//
//go:noescape
func prefetch(p unsafe.Pointer, step, n uintptr)
