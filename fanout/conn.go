package fanout

import "errors"

// errAgain says that a socket takes no more for now. The loop is told when it
// does again.
var errAgain = errors.New("fanout: socket full")

// A conn is the sending side of a viewer's socket. Its methods never block: they
// return how much was taken, with errAgain when that is less than was given
// because the socket is full, or with the error that ended the connection.
type conn interface {
	// writev sends the parts, one after the other.
	writev(parts [][]byte) (int, error)
	write(b []byte) (int, error)
	// sendFile sends n bytes of f from off on.
	sendFile(f *memfile, off int64, n int) (int, error)
	// close ends the connection; what was taken is still delivered.
	close()
}
