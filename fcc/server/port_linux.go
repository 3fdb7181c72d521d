package server

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mostBatch is how many datagrams one call sends.
const mostBatch = 64

// A batch is what sendmmsg(2) is told, used again and again.
type batch struct {
	messages [mostBatch]message
	iovecs   [mostBatch]unix.Iovec
	to       [mostBatch]unix.RawSockaddrInet4
}

// message is struct mmsghdr.
type message struct {
	hdr unix.Msghdr
	len uint32
}

// send sends datagrams without waiting, and returns how many the system has
// taken. One that cannot be sent at all counts as sent, as if the network had
// lost it.
func (p *port) send(datagrams []datagram) (sent int) {
	err := p.raw.Control(func(fd uintptr) {
		for sent < len(datagrams) {
			n := min(mostBatch, len(datagrams)-sent)
			p.fill(datagrams[sent : sent+n])
			done, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&p.messages[0])), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
			switch errno {
			case 0:
				sent += int(done)
			case unix.EINTR:
			case unix.EAGAIN, unix.ENOBUFS:
				return
			default:
				sent++
			}
		}
	})
	if err != nil {
		return len(datagrams) // the socket is closed: there is no use in trying again
	}
	return sent
}

func (p *port) fill(datagrams []datagram) {
	for i, d := range datagrams {
		p.iovecs[i] = unix.Iovec{}
		if len(d.bytes) > 0 {
			p.iovecs[i].Base = &d.bytes[0]
			p.iovecs[i].SetLen(len(d.bytes))
		}
		p.to[i] = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: d.to.Addr().As4()}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&p.to[i].Port))[:], d.to.Port())
		h := &p.messages[i].hdr
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&p.to[i])), unix.SizeofSockaddrInet4
		h.Iov = &p.iovecs[i]
		h.SetIovlen(1)
	}
}
