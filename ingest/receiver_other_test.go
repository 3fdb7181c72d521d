//go:build !linux

package ingest

import "testing"

func countDescriptors(t *testing.T) int { return 0 }

func membershipOf(f Flow) *membership { return f.(*plainFlow).membership }

func ringsPermitted() bool { return false }

func beginsOnRing(Receiver) bool { return false }
