package ingest

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// settle is how long a change of the network may go on before it is looked at:
// a dial-up makes the link, its address and its routes one after the other, and
// a host with many routes never falls silent.
const settle = 200 * time.Millisecond

const watchedGroups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR |
	unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE

// watchLinks returns a function that tells of changes of links, addresses and
// routes, and another that ends it; each message holds the indices of links
// that were deleted. It subscribes at once, so nothing is missed before run is
// called. Where netlink is not to be had it polls.
func watchLinks() (run func(changes chan<- []int, done <-chan struct{}), stop func()) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return pollLinks, func() {}
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: watchedGroups}); err != nil {
		unix.Close(fd)
		return pollLinks, func() {}
	}
	file := os.NewFile(uintptr(fd), "netlink")
	run = func(changes chan<- []int, done <-chan struct{}) { followLinks(file, changes, done) }
	return run, func() { file.Close() }
}

func followLinks(file *os.File, changes chan<- []int, done <-chan struct{}) {
	buf := make([]byte, 32<<10)
	for {
		var gone []int
		if file.SetReadDeadline(time.Time{}) != nil { // closed
			return
		}
		for first := true; ; first = false {
			n, err := file.Read(buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if errors.Is(err, os.ErrClosed) {
				return
			}
			if first && file.SetReadDeadline(time.Now().Add(settle)) != nil {
				return
			}
			// Any other error is ENOBUFS: changes went by unseen.
			if err == nil {
				gone = append(gone, deletedLinks(buf[:n])...)
			}
		}
		slices.Sort(gone)
		select {
		case <-done:
			return
		case changes <- slices.Compact(gone):
		}
	}
}

// deletedLinks lists the indices in RTM_DELLINK messages. A bridge sends the
// same type with its own family when a port leaves it: that link lives on.
func deletedLinks(b []byte) (gone []int) {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if m.Header.Type == unix.RTM_DELLINK && len(m.Data) >= unix.SizeofIfInfomsg && m.Data[0] == unix.AF_UNSPEC {
			gone = append(gone, int(int32(binary.NativeEndian.Uint32(m.Data[4:]))))
		}
	}
	return gone
}
