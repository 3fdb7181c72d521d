package ingest

import (
	"fmt"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unicastSlab is what one call of recvmmsg may bring to a unicast socket, which
// comes and goes with a zap: a slab of its own would be much to make each time,
// so that they are pooled.
const unicastSlab = 64

type senderSlab struct {
	slab    *slab
	senders [unicastSlab]unix.RawSockaddrInet4
}

var senderSlabs = sync.Pool{New: func() any {
	s := &senderSlab{slab: newSlab(unicastSlab, slabSlot)}
	for i := range s.slab.msg {
		s.slab.msg[i].hdr.Name = (*byte)(unsafe.Pointer(&s.senders[i]))
	}
	return s
}}

// A socketUnicast reads many datagrams per system call.
type socketUnicast struct {
	fd   int
	port uint16
	slab *senderSlab
	out  [][]byte
	from []netip.AddrPort
}

func openUnicast(cfg UnicastConfig) (Unicast, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return nil, fmt.Errorf("ingest: open socket: %w", err)
	}
	u := &socketUnicast{fd: fd}
	if err := u.setUp(cfg); err != nil {
		unix.Close(fd)
		return nil, err
	}
	u.slab = senderSlabs.Get().(*senderSlab)
	return u, nil
}

func (u *socketUnicast) setUp(cfg UnicastConfig) error {
	if unix.SetsockoptInt(u.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, cfg.ReadBuffer) != nil {
		_ = unix.SetsockoptInt(u.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, cfg.ReadBuffer)
	}
	if cfg.Interface != "" {
		if err := unix.BindToDevice(u.fd, cfg.Interface); err != nil {
			return fmt.Errorf("ingest: bind to %s: %w", cfg.Interface, err)
		}
	}
	if err := unix.Bind(u.fd, &unix.SockaddrInet4{Port: int(cfg.Port)}); err != nil {
		return fmt.Errorf("ingest: bind to port %d: %w", cfg.Port, err)
	}
	name, err := unix.Getsockname(u.fd)
	if err != nil {
		return fmt.Errorf("ingest: ask for the port: %w", err)
	}
	u.port = uint16(name.(*unix.SockaddrInet4).Port)
	return nil
}

func (u *socketUnicast) Read(limit int) (datagrams [][]byte, from []netip.AddrPort, more bool) {
	u.out, u.from = u.out[:0], u.from[:0]
	if limit <= 0 || u.slab == nil {
		return nil, nil, false
	}
	s := u.slab.slab
	for i := range s.msg {
		s.msg[i].hdr.Namelen = unix.SizeofSockaddrInet4
	}
	n, errno := s.receive(u.fd, limit)
	if errno != 0 { // nothing waits, or an ICMP message was told of
		return nil, nil, false
	}
	for i := range s.msg[:n] {
		size := int(s.msg[i].len)
		if size > s.size {
			continue
		}
		at := i * s.size
		sender := &u.slab.senders[i]
		u.out = append(u.out, s.buf[at:at+size:at+size])
		u.from = append(u.from, netip.AddrPortFrom(netip.AddrFrom4(sender.Addr), networkOrder(&sender.Port)))
	}
	return u.out, u.from, n == min(limit, len(s.msg))
}

func (u *socketUnicast) Write(b []byte, to netip.AddrPort) error {
	addr := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: to.Addr().Unmap().As4()}
	port := (*[2]byte)(unsafe.Pointer(&addr.Port))
	port[0], port[1] = byte(to.Port()>>8), byte(to.Port())
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(u.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&addr)), unix.SizeofSockaddrInet4)
	if errno != 0 {
		return errno
	}
	return nil
}

func (u *socketUnicast) Port() uint16 { return u.port }

func (u *socketUnicast) Close() error {
	if u.slab == nil {
		return nil
	}
	senderSlabs.Put(u.slab)
	u.slab = nil
	return unix.Close(u.fd)
}
