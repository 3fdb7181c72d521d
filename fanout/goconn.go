package fanout

import (
	"net"
	"sync"
	"time"
)

// goConn is the portable conn: a goroutine writes what a small buffer holds,
// another notices that the viewer is gone.
type goConn struct {
	nc      net.Conn
	wake    func(hup bool) // tells the loop that there is room again, or that the connection ended
	input   func([]byte)   // is given what the viewer sends, and must not keep it
	started bool

	mu      sync.Mutex // guards what follows
	cond    sync.Cond  // the writer waits here
	buf     []byte     // not written yet
	full    bool       // the loop waits for room
	closing bool
	err     error
}

const (
	goConnBuffer = 64 << 10    // what a goConn takes beyond what the system took
	closeGrace   = time.Second // for what is in the buffer when it is closed
)

var _ conn = (*goConn)(nil)

// newGoConn returns a conn that has not started.
func newGoConn(nc net.Conn, wake func(hup bool), input func([]byte)) *goConn {
	c := &goConn{nc: nc, wake: wake, input: input, buf: make([]byte, 0, goConnBuffer)}
	c.cond.L = &c.mu
	return c
}

// start starts c's goroutines, which end when c is closed and are counted in wg.
func (c *goConn) start(wg *sync.WaitGroup) {
	c.started = true
	wg.Go(c.run)
	wg.Go(c.read)
}

// read hears what the viewer sends, until the connection ends.
func (c *goConn) read() {
	var b [4096]byte
	for {
		n, err := c.nc.Read(b[:])
		if n > 0 {
			c.input(b[:n])
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

// run writes until the connection is closed.
func (c *goConn) run() {
	out := make([]byte, 0, goConnBuffer)
	for {
		c.mu.Lock()
		for len(c.buf) == 0 && !c.closing && c.err == nil {
			c.cond.Wait()
		}
		if len(c.buf) == 0 || c.err != nil {
			c.mu.Unlock()
			_ = c.nc.Close()
			return
		}
		out, c.buf = c.buf, out[:0]
		wake := c.full
		c.full = false
		c.mu.Unlock()
		if wake {
			c.wake(false)
		}
		if _, err := c.nc.Write(out); err != nil {
			c.fail(err)
		}
	}
}

func (c *goConn) fail(err error) {
	c.mu.Lock()
	first := c.err == nil && !c.closing
	if c.err == nil {
		c.err = err
	}
	c.cond.Signal()
	c.mu.Unlock()
	if first {
		c.wake(true)
	}
}

func (c *goConn) write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	n := min(len(b), cap(c.buf)-len(c.buf))
	c.buf = append(c.buf, b[:n]...)
	c.cond.Signal()
	if n < len(b) {
		c.full = true
		return n, errAgain
	}
	return n, nil
}

func (c *goConn) writev(parts [][]byte) (int, error) {
	sent := 0
	for _, p := range parts {
		n, err := c.write(p)
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func (c *goConn) sendFile(f *memfile, off int64, n int) (int, error) {
	b := make([]byte, n)
	return c.write(b[:f.readAt(b, off)])
}

func (c *goConn) close() {
	if !c.started {
		_ = c.nc.Close()
		return
	}
	c.mu.Lock()
	c.closing = true
	c.cond.Signal()
	c.mu.Unlock()
	_ = c.nc.SetWriteDeadline(time.Now().Add(closeGrace)) // who does not read does not hold us up
}
