package nettest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// An Ear hears what comes in on an interface.
type Ear struct {
	l       *Lab
	mu      sync.Mutex // guards the rest
	packets []Packet
	waited  int // packets that Wait has gone past
}

// Listen listens on an interface from now to the end of the test: to UDP,
// membership messages and what else has IP. What the namespace itself sends is
// left out.
func (l *Lab) Listen(ns, dev string) *Ear {
	l.t.Helper()
	return l.hear(l.packetSocket(ns, dev, unix.SOCK_DGRAM))
}

// Overhear listens as Listen does, also to what the namespace itself sends.
func (l *Lab) Overhear(ns, dev string) *Ear {
	l.t.Helper()
	fd := l.packetSocket(ns, dev, unix.SOCK_DGRAM)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 0); err != nil {
		l.t.Errorf("packet socket on %s: %v", dev, err)
	}
	return l.hear(fd)
}

func (l *Lab) hear(fd int) *Ear {
	e := &Ear{l: l}
	l.background(fd, func() {
		buf := make([]byte, 1<<16)
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return
		}
		if p, ok := parse(slices.Clone(buf[:n]), time.Now()); ok {
			e.mu.Lock()
			e.packets = append(e.packets, p)
			e.mu.Unlock()
		}
	})
	return e
}

// packetSocket opens a socket that receives the frames that come in on an
// interface; a receive waits for 20 ms at most.
func (l *Lab) packetSocket(ns, dev string, kind int) (fd int) {
	l.t.Helper()
	var err error
	l.Do(ns, func() {
		var link *net.Interface
		if link, err = net.InterfaceByName(dev); err != nil {
			return
		}
		if fd, err = unix.Socket(unix.AF_PACKET, kind|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		all := binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff})
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 8<<20),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index}))
	})
	if err != nil {
		l.t.Fatalf("packet socket on %s: %v", dev, err)
	}
	return fd
}

// background repeats step until the test ends, then closes the socket.
func (l *Lab) background(fd int, step func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	l.t.Cleanup(func() { close(stop); <-done; unix.Close(fd) })
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				step()
			}
		}
	}()
}

// Packets returns what has been heard.
func (e *Ear) Packets() []Packet {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.packets)
}

// Wait returns the first packet that is wanted of those that no earlier Wait
// went past, and the ones before it.
func (e *Ear) Wait(what string, wanted func(Packet) bool) (found Packet, before []Packet) {
	e.l.t.Helper()
	e.l.eventually(what+" is seen on the wire", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		for ; e.waited < len(e.packets); e.waited++ {
			if found = e.packets[e.waited]; wanted(found) {
				e.waited++
				return true
			}
			before = append(before, found)
		}
		return false
	})
	return found, before
}

// Reports returns the reports of a kind for a group so far.
func (e *Ear) Reports(kind byte, group string) (out []Report) {
	for _, p := range e.Packets() {
		for _, r := range p.Reports() {
			if r.Kind == kind && r.Group.String() == group {
				out = append(out, r)
			}
		}
	}
	return out
}

// WaitReport waits for the first report of a kind for a group.
func (e *Ear) WaitReport(kind byte, group string) (first Report) {
	e.l.t.Helper()
	e.l.eventually(fmt.Sprintf("a report of type %d for %s is seen on the wire", kind, group), func() bool {
		all := e.Reports(kind, group)
		if len(all) > 0 {
			first = all[0]
		}
		return len(all) > 0
	})
	return first
}

// Quiet waits until the kernel has repeated the reports that it repeats: each a
// few times, within a second. What has been heard by then, Wait has gone past.
func (e *Ear) Quiet() {
	const while = 1200 * time.Millisecond
	for heard := -1; ; time.Sleep(while) {
		n := 0
		for _, p := range e.Packets() {
			if len(p.Reports()) > 0 {
				n++
			}
		}
		if n == heard {
			break
		}
		heard = n
	}
	e.mu.Lock()
	e.waited = len(e.packets)
	e.mu.Unlock()
}
