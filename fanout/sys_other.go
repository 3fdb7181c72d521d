//go:build !linux

package fanout

import (
	"errors"
	"net"
)

type scratch struct{}

const haveMemfiles = false

// memfile is not to be had here: what is shared stays in memory.
type memfile struct{}

func newMemfile(*scratch) (*memfile, error)   { return nil, errors.ErrUnsupported }
func (f *memfile) append([][]byte, int) error { return errors.ErrUnsupported }
func (f *memfile) readAt([]byte, int64) int   { return 0 }
func (f *memfile) seal()                      {}
func (f *memfile) close()                     {}

func allocBlock(n int) []byte { return make([]byte, n) }
func freeBlock([]byte)        {}

// fdConn is not to be had here: connections stay Go's.
type fdConn struct {
	conn
	fd int
}

func (c *fdConn) read([]byte) int { return 0 }

func newFDConn(net.Conn, *scratch) (*fdConn, bool, error) { return nil, false, nil }

// udpConn is not to be had here either.
type udpConn struct{ fdConn }

func newUDPConn(net.Conn, *scratch, int) (*udpConn, bool, error) { return nil, false, nil }

func newPoller(bool) (poller, error) { return newPlainPoller(), nil }
