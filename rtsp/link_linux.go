package rtsp

import (
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fdLink reads and writes the descriptor itself, with calls that do not block:
// Go's poller no longer knows of it, and no goroutine waits for it.
type fdLink struct{ fd int }

// newLink takes over nc, which is closed: the connection lives on in the link.
func newLink(nc net.Conn, plain bool) link {
	tcp, ok := nc.(*net.TCPConn)
	if plain || !ok { // TLS
		return newGoLink(nc)
	}
	if fd, ok := takeOver(tcp); ok {
		return &fdLink{fd}
	}
	return newGoLink(nc)
}

// takeOver closes conn and returns a descriptor of the same socket; false where
// there is no descriptor left, and conn keeps the one that it has.
func takeOver(conn interface {
	syscall.Conn
	io.Closer
},
) (fd int, ok bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, false
	}
	fd = -1
	cerr := raw.Control(func(from uintptr) { fd, err = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0) })
	if cerr != nil || err != nil {
		return -1, false
	}
	_ = conn.Close()
	return fd, true
}

func (l *fdLink) read(p []byte) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(l.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0, errAgain
	case errno != 0:
		return 0, errno
	case n == 0:
		return 0, io.EOF
	}
	return int(n), nil
}

func (l *fdLink) write(p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(l.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
		unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0, errAgain
	case errno != 0:
		return 0, errno
	}
	return int(n), nil
}

func (l *fdLink) conn() (net.Conn, error) {
	f := os.NewFile(uintptr(l.fd), "rtsp")
	l.fd = -1
	defer f.Close() // FileConn has a descriptor of its own
	return net.FileConn(f)
}

func (l *fdLink) close() error {
	if l.fd < 0 {
		return nil
	}
	fd := l.fd
	l.fd = -1
	return unix.Close(fd)
}

// fdPackets is a UDP port whose descriptor is read without blocking.
type fdPackets struct{ fdLink }

// newPackets takes over conn, as newLink does.
func newPackets(conn *net.UDPConn, plain bool) packetLink {
	if plain {
		return newGoPackets(conn)
	}
	if fd, ok := takeOver(conn); ok {
		return &fdPackets{fdLink{fd}}
	}
	return newGoPackets(conn)
}

func (l *fdPackets) send(b []byte, to netip.AddrPort) {
	var sa unix.Sockaddr = &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	if to.Addr().Is4() {
		sa = &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	_ = unix.Sendto(l.fd, b, unix.MSG_DONTWAIT, sa)
}
