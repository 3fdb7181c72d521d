package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Who is in the socket's group may connect, others may not.
const socketMode = 0o660

// listen opens a listener on a normal address.
func listen(address string) (net.Listener, error) {
	if strings.HasPrefix(address, "/") {
		return listenUnix(address)
	}
	return net.Listen("tcp", address)
}

// listenUnix opens a Unix socket, in the place of one that a dead process has
// left. Closing the listener removes it.
func listenUnix(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// removeStale removes a socket on which nothing listens. Anything else in its
// place stays, and is an error.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is no socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return fmt.Errorf("%w: something listens on %s", syscall.EADDRINUSE, path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// samePort reports whether two addresses name one TCP port.
func samePort(a, b string) bool {
	_, portA, errA := net.SplitHostPort(a)
	_, portB, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && portA == portB
}

// An endpoint is an address that the configuration lists.
type endpoint struct {
	setting string // where: "listen", "rtsp.listen"
	address string
}

// endpoints are all of them, in their order.
func (c *serveConfig) endpoints() (all []endpoint) {
	for _, address := range c.listen {
		all = append(all, endpoint{"listen", address})
	}
	for _, address := range c.rtspListen {
		all = append(all, endpoint{"rtsp.listen", address})
	}
	return all
}

// scheme is how URLs begin that are opened there.
func (e endpoint) scheme() string {
	if e.setting == "rtsp.listen" {
		return "rtsp"
	}
	return "http"
}

// listenFault says on one line why an endpoint cannot be had.
func (c *serveConfig) listenFault(e endpoint, err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	if call := (*os.SyscallError)(nil); errors.As(err, &call) {
		err = call.Err
	}
	return c.fault(e.setting, fmt.Errorf("expected an address that is free, found %q: %w", e.address, err))
}
