//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// groupWatch is a receiver of one multicast group beside the server. It notes
// when the kernel got each random-access point, whatever the server made of it.
type groupWatch struct {
	conn *net.UDPConn
	raps chan time.Time
	end  chan error
}

// watchGroup joins the group of a source on loopback.
func watchGroup(source uint32) (*groupWatch, error) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, err
	}
	fd, err := joinGroup(net.ParseIP(groupOf(int(source))), groupPort, lo.Index)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "group")
	defer f.Close() // conn has a descriptor of its own
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return nil, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<20)
	c, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	w := &groupWatch{conn: c.(*net.UDPConn), raps: make(chan time.Time, 64), end: make(chan error, 1)}
	go func() { w.end <- w.run(source) }()
	return w, nil
}

// run reads until the socket is closed.
func (w *groupWatch) run(source uint32) error {
	buf, oob := make([]byte, 2048), make([]byte, 128)
	var at time.Time
	v := &verifier{source: source}
	v.watch = func(p []byte) {
		if isRAP(p) {
			select {
			case w.raps <- at:
			default: // nobody has asked for minutes
			}
		}
	}
	for {
		n, nc, _, _, err := w.conn.ReadMsgUDPAddrPort(buf, oob)
		if err != nil {
			return err
		}
		if at, err = kernelTime(oob[:nc]); err != nil {
			return err
		}
		if n <= rtpLen {
			continue
		}
		v.feed(buf[rtpLen:n])
		if v.Lost > 0 {
			return fmt.Errorf("%d packets lost on the way to it", v.Lost)
		}
	}
}

// nextRAP waits for the first random-access point from a time on.
func (w *groupWatch) nextRAP(from time.Time) (time.Time, error) {
	from = from.Round(0) // the kernel's stamps are wall-clock time
	timeout := time.After(rapWait)
	for {
		select {
		case at := <-w.raps:
			if !at.Before(from) {
				return at, nil
			}
		case err := <-w.end:
			return time.Time{}, err
		case <-timeout:
			return time.Time{}, errors.New("no random-access point in it")
		}
	}
}

func (w *groupWatch) close() { w.conn.Close() }

// kernelTime finds the receive time among a datagram's control messages.
func kernelTime(oob []byte) (time.Time, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return time.Time{}, err
	}
	for _, m := range msgs {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			ts := *(*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			return time.Unix(ts.Unix()), nil
		}
	}
	return time.Time{}, errors.New("datagram without a receive time")
}

// joinGroup makes a socket that receives one group and no other.
func joinGroup(group net.IP, port, ifindex int) (fd int, err error) {
	ip := group.To4()
	if ip == nil {
		return -1, fmt.Errorf("not an IPv4 group: %v", group)
	}
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	m := &unix.IPMreqn{Multiaddr: [4]byte(ip), Ifindex: int32(ifindex)}
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte(ip)})
	}
	if err == nil {
		err = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, m)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
