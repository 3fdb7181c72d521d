package ingest

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A slab is where recvmmsg(2) puts the datagrams of one call: slots of one
// size, and the headers that point at them, all set up once. One slab serves
// all flows of a receiver, so that the memory is hot in the cache whichever
// flow is read. It is plain Go memory: it holds no pointers for the collector
// to follow, does not move, and pages that were never received into cost
// nothing.
type slab struct {
	size int // of a slot
	buf  []byte
	iov  []unix.Iovec
	msg  []mmsghdr
	out  [][]byte // what the last call found
	cost int64    // see collect
	from unix.RawSockaddrInet6
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

func newSlab(slots, size int) *slab {
	s := &slab{
		size: size,
		buf:  make([]byte, slots*size),
		iov:  make([]unix.Iovec, slots),
		msg:  make([]mmsghdr, slots),
		out:  make([][]byte, 0, slots),
	}
	for i := range s.msg {
		s.iov[i].Base = &s.buf[i*size]
		s.iov[i].SetLen(size)
		s.msg[i].hdr.Iov = &s.iov[i]
		s.msg[i].hdr.SetIovlen(1)
	}
	// The sender of the first datagram is sample enough.
	s.msg[0].hdr.Name = (*byte)(unsafe.Pointer(&s.from))
	return s
}

// receive takes up to limit datagrams, never waiting. It uses RawSyscall: the
// call does not block, and the runtime is not to give the loop's processor away
// meanwhile. The error is EAGAIN when nothing waits.
func (s *slab) receive(fd, limit int) (n int, errno unix.Errno) {
	s.msg[0].hdr.Namelen = unix.SizeofSockaddrInet6
	// With MSG_TRUNC as an argument, len is the datagram's own length.
	got, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&s.msg[0])),
		uintptr(min(limit, len(s.msg))), unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(got), 0
}

// collect returns the datagrams in the first n slots, without cut ones, and
// adds up in cost what all of them took of the kernel's buffer.
func (s *slab) collect(n int) [][]byte {
	s.out = s.out[:0]
	s.cost = 0
	for i := range s.msg[:n] {
		size := int(s.msg[i].len)
		s.cost += trueSize(size)
		if size > s.size {
			continue
		}
		at := i * s.size
		s.out = append(s.out, s.buf[at:at+size:at+size])
	}
	return s.out
}

// sender is the one of the first datagram of the last call.
func (s *slab) sender() netip.AddrPort {
	if s.from.Family == unix.AF_INET {
		in4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(&s.from))
		return netip.AddrPortFrom(netip.AddrFrom4(in4.Addr), networkOrder(&in4.Port))
	}
	return netip.AddrPortFrom(netip.AddrFrom16(s.from.Addr), networkOrder(&s.from.Port))
}

func networkOrder(port *uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(port))
	return uint16(b[0])<<8 | uint16(b[1])
}
