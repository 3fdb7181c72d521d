package fanout

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout ends a connection whose sent bytes are not acknowledged, or whose
// window stays closed, for that long (tcp(7), TCP_USER_TIMEOUT). It also
// overrides the count of keep-alive probes.
const userTimeout = 50 * time.Second

// setUserTimeout sets userTimeout.
func setUserTimeout(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
