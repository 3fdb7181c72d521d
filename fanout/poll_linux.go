package fanout

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// edge is EPOLLET, which is negative in package unix.
const edge = unix.EPOLLET & 0xffffffff

// epoll is a poller on an epoll descriptor that is itself watched by Go's own
// poller: the loop's goroutine parks like any other. A blocking epoll_wait would
// instead keep Go's monitor thread awake and hand the processor back and forth at
// every tick. So would a Go timer for the deadline, and Go's poller would wake up
// twice for it, since it waits in whole milliseconds: hence a timerfd among the
// descriptors.
//
// Only this descriptor watches viewers' sockets, edge-triggered: one that was
// never full costs nothing.
type epoll struct {
	fd     int
	file   *os.File
	raw    syscall.RawConn
	bell   int // eventfd of wake
	timer  int // timerfd of the deadline
	armed  bool
	sys    [256]unix.EpollEvent
	events []event
	ready  func(uintptr) bool // made once: a closure for each wait would be an allocation
}

func newEpoll() (*epoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("fanout: epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // asks NewFile for Go's poller
		_ = unix.Close(fd)
		return nil, fmt.Errorf("fanout: epoll: %w", err)
	}
	p := &epoll{fd: fd, file: os.NewFile(uintptr(fd), "epoll"), bell: -1, timer: -1}
	p.ready = func(uintptr) bool { return p.collect() }
	if err := p.open(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *epoll) open() (err error) {
	if err = p.file.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("fanout: nested epoll: %w", err)
	}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		return fmt.Errorf("fanout: nested epoll: %w", err)
	}
	if p.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("fanout: eventfd: %w", err)
	}
	if p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return fmt.Errorf("fanout: timerfd: %w", err)
	}
	for _, fd := range []int{p.bell, p.timer} { // edge-triggered, so that neither needs to be read
		ev := unix.EpollEvent{Events: unix.EPOLLIN | edge, Fd: int32(fd)}
		if err = unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			return fmt.Errorf("fanout: epoll: %w", err)
		}
	}
	return nil
}

// collect asks for events without blocking; it reports whether there were any.
func (p *epoll) collect() bool {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.sys)), uintptr(len(p.sys)), 0, 0, 0)
	if e != 0 {
		return e == unix.EINTR
	}
	for _, ev := range p.sys[:n] {
		if fd := int(ev.Fd); fd != p.bell && fd != p.timer {
			p.events = append(p.events, event{
				fd:  ev.Fd,
				in:  ev.Events&unix.EPOLLIN != 0,
				out: ev.Events&unix.EPOLLOUT != 0,
				hup: ev.Events&(unix.EPOLLERR|unix.EPOLLHUP|unix.EPOLLRDHUP) != 0,
			})
		}
	}
	return n > 0
}

func (p *epoll) wait(deadline time.Time) []event {
	p.events = p.events[:0]
	switch left := time.Until(deadline); {
	case deadline.IsZero():
		if p.armed {
			p.arm(0)
		}
	case left <= 0:
		p.collect()
		return p.events
	default:
		p.arm(left)
	}
	if err := p.raw.Read(p.ready); err != nil {
		panic("fanout: epoll descriptor closed while its loop runs: " + err.Error())
	}
	return p.events
}

// arm sets the timer; zero stops it.
func (p *epoll) arm(d time.Duration) {
	p.armed = d > 0
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(p.timer), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}

func (p *epoll) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(p.bell, one[:])
}

func (p *epoll) add(c *fdConn, in bool) error {
	ev := unix.EpollEvent{Events: unix.EPOLLOUT | unix.EPOLLRDHUP | edge, Fd: int32(c.fd)}
	if in {
		ev.Events |= unix.EPOLLIN
	}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, c.fd, &ev); err != nil {
		return fmt.Errorf("fanout: watch viewer: %w", err)
	}
	return nil
}

func (p *epoll) close() {
	_ = p.file.Close()
	for _, fd := range []int{p.bell, p.timer} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

func newPoller(plain bool) (poller, error) {
	if plain {
		return newPlainPoller(), nil
	}
	return newEpoll()
}
