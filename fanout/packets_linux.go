package fanout

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxSegments and maxBurst bound a message that the kernel cuts into
	// datagrams (UDP_MAX_SEGMENTS, and the largest UDP payload).
	maxSegments = 64
	maxBurst    = 65507

	maxMessages = 64 // of a sendmmsg(2)
)

// udpConn sends datagrams of one size from a connected socket: many with one
// call, which the kernel cuts (udp(7), UDP_SEGMENT, Linux 4.18) or takes one by
// one (sendmmsg).
type udpConn struct {
	fdConn
	size     int
	segments int // datagrams in a message that the kernel cuts; 0: it does not
	messages []mmsghdr
	control  [32]byte // the cmsg with size
}

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	unix.Msghdr
	len uint32
}

var _ conn = (*udpConn)(nil)

// newUDPConn takes over nc as newFDConn does.
func newUDPConn(nc net.Conn, s *scratch, size int) (c *udpConn, ok bool, err error) {
	fc, ok, err := newFDConn(nc, s)
	if !ok || err != nil {
		return nil, ok, err
	}
	c = &udpConn{fdConn: *fc, size: size}
	if _, err := unix.GetsockoptInt(fc.fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT); err == nil {
		c.segments = min(maxSegments, maxBurst/size)
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c.control[0]))
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	*(*uint16)(unsafe.Pointer(&c.control[unix.CmsgLen(0)])) = uint16(size)
	return c, true, nil
}

func (c *udpConn) writev(parts [][]byte) (sent int, err error) {
	for len(parts) > 0 {
		var count, n int
		if c.segments > 1 {
			count, n, err = c.segmented(parts)
		} else {
			count, n, err = c.several(parts)
		}
		parts, sent = parts[count:], sent+n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func (c *udpConn) write(b []byte) (sent int, err error) {
	for sent < len(b) {
		part := [1][]byte{b[sent:min(sent+c.size, len(b))]}
		_, n, err := c.several(part[:])
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// segmented sends the first datagrams of parts in one message.
func (c *udpConn) segmented(parts [][]byte) (count, n int, err error) {
	datagrams := 0
	for count < len(parts) && datagrams < c.segments {
		k, m := datagram(parts[count:], c.size)
		if count+k > maxIovecs {
			break
		}
		count, n, datagrams = count+k, n+m, datagrams+1
	}
	iov := c.scratch.vectors(parts[:count])
	h := unix.Msghdr{Iov: &iov[0]}
	h.SetIovlen(len(iov))
	if datagrams > 1 {
		h.Control = &c.control[0]
		h.SetControllen(unix.CmsgSpace(2))
	}
	for {
		_, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch e {
		case unix.EINTR:
			continue
		case unix.EINVAL, unix.EIO, unix.EMSGSIZE, unix.EOPNOTSUPP: // not through this device
			if datagrams > 1 {
				c.segments = 0
				return 0, 0, nil
			}
		}
		if err := datagramResult(e); err != nil {
			return 0, 0, err
		}
		return count, n, nil
	}
}

// several sends the first datagrams of parts one by one, with one call.
func (c *udpConn) several(parts [][]byte) (count, n int, err error) {
	if c.messages == nil {
		c.messages = make([]mmsghdr, maxMessages)
	}
	iov := c.scratch.vectors(parts)
	var ends [maxMessages]struct{ count, n int }
	datagrams := 0
	for datagrams < maxMessages && count < len(iov) {
		k, m := datagram(parts[count:], c.size)
		if count+k > len(iov) {
			break
		}
		h := &c.messages[datagrams]
		*h = mmsghdr{}
		h.Iov = &iov[count]
		h.SetIovlen(k)
		count, n = count+k, n+m
		ends[datagrams].count, ends[datagrams].n = count, n
		datagrams++
	}
	for {
		sent, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&c.messages[0])), uintptr(datagrams),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if err := datagramResult(e); err != nil {
			return 0, 0, err
		}
		if e != 0 { // lost on the way
			sent = 1
		}
		done := ends[sent-1]
		return done.count, done.n, nil
	}
}

// datagramResult is nil for a datagram that was sent, or lost on its way: where
// there is no way at the moment, or the device's queue is full.
func datagramResult(e unix.Errno) error {
	switch e {
	case 0, unix.ENOBUFS, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EPERM:
		return nil
	case unix.EAGAIN:
		return errAgain
	}
	return e
}

func (c *udpConn) sendFile(*memfile, int64, int) (int, error) { return 0, unix.EOPNOTSUPP }
