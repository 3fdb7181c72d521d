//go:build !linux

package fanout

func setSegments(*udpConn, bool) bool { return false }
