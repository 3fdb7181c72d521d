//go:build !linux

package rtsp

import (
	"errors"
	"syscall"
)

func bindToInterface(syscall.RawConn, string) error {
	return errors.New("rtsp: this system cannot bind a connection to an interface")
}
