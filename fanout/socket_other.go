//go:build !linux

package fanout

import "net"

// setUserTimeout does nothing: only Linux has the option. Keep-alive and the
// engine's own policy for viewers that take nothing are left.
func setUserTimeout(*net.TCPConn) error { return nil }
