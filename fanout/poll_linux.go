package fanout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epoll is a poller on an epoll descriptor that is itself watched by Go's own
// poller: the loop's goroutine parks like any other, with a deadline. A blocking
// epoll_wait would instead keep Go's monitor thread awake and hand the processor
// back and forth at every tick.
//
// Only this descriptor watches viewers' sockets, edge-triggered: one that was
// never full costs nothing.
type epoll struct {
	fd     int
	file   *os.File
	raw    syscall.RawConn
	bell   int // eventfd of wake
	sys    [256]unix.EpollEvent
	events []event
	poll   func(uintptr) bool // made once: a closure for each wait would be an allocation
	past   bool               // this wait only polls
}

func newEpoll() (*epoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("fanout: epoll: %w", err)
	}
	p := &epoll{fd: fd}
	if p.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("fanout: eventfd: %w", err)
	}
	err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, p.bell, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.bell)})
	if err == nil {
		err = unix.SetNonblock(fd, true) // asks NewFile for Go's poller
	}
	if err != nil {
		_ = unix.Close(fd)
		_ = unix.Close(p.bell)
		return nil, fmt.Errorf("fanout: epoll: %w", err)
	}
	p.file = os.NewFile(uintptr(fd), "epoll")
	if err = p.file.SetReadDeadline(time.Time{}); err == nil {
		p.raw, err = p.file.SyscallConn()
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("fanout: nested epoll: %w", err)
	}
	p.poll = func(uintptr) bool { return p.collect() || p.past }
	return p, nil
}

// collect asks for events without blocking; it reports whether the wait is over.
func (p *epoll) collect() bool {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.sys)), uintptr(len(p.sys)), 0, 0, 0)
	if e != 0 {
		return e == unix.EINTR
	}
	for _, ev := range p.sys[:n] {
		if int(ev.Fd) == p.bell {
			var b [8]byte
			_, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(p.bell), uintptr(unsafe.Pointer(&b)), uintptr(len(b)))
			continue
		}
		hup := ev.Events&(unix.EPOLLERR|unix.EPOLLHUP|unix.EPOLLRDHUP) != 0
		p.events = append(p.events, event{fd: ev.Fd, hup: hup})
	}
	return n > 0
}

func (p *epoll) wait(deadline time.Time) []event {
	p.events = p.events[:0]
	p.past = !deadline.IsZero() && time.Until(deadline) <= 0
	if p.past {
		p.collect()
		return p.events
	}
	_ = p.file.SetReadDeadline(deadline)
	if err := p.raw.Read(p.poll); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		panic("fanout: epoll descriptor closed while its loop runs: " + err.Error())
	}
	return p.events
}

func (p *epoll) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(p.bell, one[:])
}

func (p *epoll) add(c *fdConn) error {
	ev := unix.EpollEvent{Events: unix.EPOLLOUT | unix.EPOLLRDHUP | (unix.EPOLLET & 0xffffffff), Fd: int32(c.fd)}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, c.fd, &ev); err != nil {
		return fmt.Errorf("fanout: watch viewer: %w", err)
	}
	return nil
}

func (p *epoll) close() {
	_ = p.file.Close()
	_ = unix.Close(p.bell)
}

func newPoller(plain bool) (poller, error) {
	if plain {
		return newPlainPoller(), nil
	}
	return newEpoll()
}
