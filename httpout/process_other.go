//go:build !linux

package httpout

// processUsage knows nothing here: each system has its own way, and the status
// leaves out what is zero.
func processUsage() usage { return usage{} }
