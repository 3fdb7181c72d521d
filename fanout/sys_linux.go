package fanout

import (
	"fmt"
	"io"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below are made with RawSyscall: none of them blocks, a loop must not
// hand its processor to another goroutine at each of them, and an ordinary Syscall
// wakes Go's monitor thread, which then looks every 20 µs until the loop parks.

// maxIovecs is the kernel's UIO_MAXIOV.
const maxIovecs = 1024

// scratch holds the arguments of a loop's vectored calls.
type scratch struct{ iov []unix.Iovec }

// vectors fills the scratch with the first parts, maxIovecs of them at most.
func (s *scratch) vectors(parts [][]byte) []unix.Iovec {
	s.iov = s.iov[:0]
	for _, p := range parts[:min(len(parts), maxIovecs)] {
		v := unix.Iovec{Base: unsafe.SliceData(p)}
		v.SetLen(len(p))
		s.iov = append(s.iov, v)
	}
	return s.iov
}

// sysResult translates what a call returned; a full socket is errAgain.
func sysResult(n uintptr, e syscall.Errno) (int, error) {
	switch e {
	case 0:
		return int(n), nil
	case unix.EAGAIN:
		return 0, errAgain
	}
	return 0, e
}

// fdConn is a socket descriptor of its own, watched by nobody but the loop.
type fdConn struct {
	fd      int
	scratch *scratch
	copies  bool // sendfile was refused for this socket
}

var _ conn = (*fdConn)(nil)

// newFDConn takes over nc: its descriptor is duplicated, so that Go's poller no
// longer knows of it, and nc is closed. ok is false, and nc untouched, where it
// has no descriptor.
func newFDConn(nc net.Conn, s *scratch) (c *fdConn, ok bool, err error) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil, false, nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, true, err
	}
	fd := -1
	cerr := raw.Control(func(from uintptr) { fd, err = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0) })
	if cerr != nil {
		return nil, true, cerr
	}
	if err != nil {
		return nil, true, fmt.Errorf("duplicate descriptor: %w", err)
	}
	_ = nc.Close() // closes its descriptor, not the connection
	return &fdConn{fd: fd, scratch: s}, true, nil
}

func (c *fdConn) writev(parts [][]byte) (int, error) {
	sent := 0
	for len(parts) > 0 {
		iov := c.scratch.vectors(parts)
		want := 0
		for _, p := range parts[:len(iov)] {
			want += len(p)
		}
		h := unix.Msghdr{Iov: &iov[0]}
		h.SetIovlen(len(iov))
		n, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if e == unix.EINTR {
			continue
		}
		m, err := sysResult(n, e)
		sent += m
		if err != nil {
			return sent, err
		}
		if m < want {
			return sent, errAgain
		}
		parts = parts[len(iov):]
	}
	return sent, nil
}

func (c *fdConn) write(b []byte) (int, error) {
	sent := 0
	for sent < len(b) {
		n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&b[sent])), uintptr(len(b)-sent),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if e == unix.EINTR {
			continue
		}
		m, err := sysResult(n, e)
		if err != nil {
			return sent, err
		}
		sent += m
	}
	return sent, nil
}

func (c *fdConn) sendFile(f *memfile, off int64, n int) (int, error) {
	sent := 0
	for sent < n { // a short count does not mean that the socket is full
		if c.copies {
			m, err := c.copyFile(f, off, n-sent)
			return sent + m, err
		}
		r, _, e := unix.RawSyscall6(sysSendfile, uintptr(c.fd), uintptr(f.fd), uintptr(unsafe.Pointer(&off)), uintptr(n-sent), 0, 0)
		switch e {
		case unix.EINTR:
			continue
		case unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP:
			c.copies = true
			continue
		}
		m, err := sysResult(r, e)
		if err == nil && m == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return sent, err
		}
		sent += m
	}
	return sent, nil
}

// copyFile is sendFile without sendfile(2).
func (c *fdConn) copyFile(f *memfile, off int64, n int) (int, error) {
	var buf [16 << 10]byte
	sent := 0
	for sent < n {
		m := f.readAt(buf[:min(len(buf), n-sent)], off+int64(sent))
		if m == 0 {
			return sent, io.ErrUnexpectedEOF
		}
		w, err := c.write(buf[:m])
		sent += w
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// read returns how much there was to read; 0 for nothing, now or for ever.
func (c *fdConn) read(p []byte) int {
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
			return int(n)
		case unix.EINTR:
		default:
			return 0
		}
	}
}

// close ends the connection. What the viewer sent after his request is read and
// thrown away first: unread input would turn the end into a reset, and a reset
// takes back what is still on its way to him.
func (c *fdConn) close() {
	_ = unix.Shutdown(c.fd, unix.SHUT_WR)
	var junk [4096]byte
	for range 4 {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&junk)), unsafe.Sizeof(junk), unix.MSG_DONTWAIT, 0, 0)
		if e != 0 || int(n) < len(junk) {
			break
		}
	}
	_ = unix.Close(c.fd)
}

// memfile is an append-only memfd (memfd_create(2)).
type memfile struct {
	fd      int
	scratch *scratch
	sealed  bool
}

const haveMemfiles = true

// memfileName is what /proc shows.
var memfileName = [...]byte{'z', 'a', 'p', 'c', 'a', 's', 't', 0}

func newMemfile(s *scratch) (*memfile, error) {
	fd, _, e := unix.RawSyscall(unix.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(&memfileName)), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING, 0)
	if e != 0 {
		return nil, fmt.Errorf("fanout: memfd: %w", e)
	}
	return &memfile{fd: int(fd), scratch: s}, nil
}

// append writes ts, n bytes in all, at the end.
func (f *memfile) append(ts [][]byte, n int) error {
	for len(ts) > 0 {
		iov := f.scratch.vectors(ts)
		want := 0
		for _, p := range ts[:len(iov)] {
			want += len(p)
		}
		m, _, e := unix.RawSyscall(unix.SYS_WRITEV, uintptr(f.fd), uintptr(unsafe.Pointer(&iov[0])), uintptr(len(iov)))
		if e != 0 {
			return fmt.Errorf("fanout: write to memfd: %w", e)
		}
		if int(m) != want { // out of memory
			return fmt.Errorf("fanout: write to memfd: %w", io.ErrShortWrite)
		}
		ts = ts[len(iov):]
	}
	return nil
}

func (f *memfile) readAt(p []byte, off int64) int {
	n, err := unix.Pread(f.fd, p, off) // seldom: a viewer skips, or has no sendfile
	if err != nil {
		return 0
	}
	return n
}

// seal makes sure that the content never changes again. F_SEAL_WRITE would wait
// for TCP to let go of the pages (mm/memfd.c, memfd_wait_for_pins);
// F_SEAL_FUTURE_WRITE, of Linux 5.1, does not, and nothing is mapped here.
func (f *memfile) seal() {
	if f.sealed {
		return
	}
	f.sealed = true
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL
	_, _, _ = unix.RawSyscall(unix.SYS_FCNTL, uintptr(f.fd), unix.F_ADD_SEALS, seals)
}

func (f *memfile) close() { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(f.fd), 0, 0) }

// allocBlock takes memory from the system rather than from Go's heap, so that it
// is gone when it is freed; nil where the system has none left.
func allocBlock(n int) []byte {
	at, _, e := unix.RawSyscall6(sysMmap, 0, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0), 0)
	if e != 0 {
		return nil
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), n) // memory that Go does not move or know
}

// freeBlock gives back a block of allocBlock's.
func freeBlock(b []byte) {
	_, _, _ = unix.RawSyscall(unix.SYS_MUNMAP, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0)
}
