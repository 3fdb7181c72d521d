package rtsp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// bindToInterface makes a socket use one interface, whatever the routing table
// says. It needs no right as long as the socket is not bound yet (Linux 5.7).
func bindToInterface(raw syscall.RawConn, name string) (err error) {
	if cerr := raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), name) }); cerr != nil {
		return cerr
	}
	return err
}
