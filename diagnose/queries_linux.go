package diagnose

import (
	"encoding/binary"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// listen opens a raw socket a family (raw(7)), with a filter that lets nothing
// but queries through, and reads them. Without CAP_NET_RAW there is none.
func (q *Queries) listen() (stop func()) {
	var running sync.WaitGroup
	igmp, mld := openQueries4(), openQueries6()
	var files []*os.File
	if igmp != nil {
		q.last4 = map[int]heard{}
		files = append(files, igmp)
	}
	if mld != nil {
		q.last6 = map[int]heard{}
		files = append(files, mld)
	}
	if igmp != nil {
		running.Go(func() { q.read(igmp, igmpMessage) })
	}
	if mld != nil {
		running.Go(func() { q.read(mld, mldMessage) })
	}
	return func() {
		for _, file := range files {
			file.Close()
		}
		running.Wait()
	}
}

func openQueries4() *os.File {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_IGMP)
	if err != nil {
		return nil
	}
	const query = 0x11
	filter := []unix.SockFilter{
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH}, // X: length of the IP header
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: query, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 256},
		{Code: unix.BPF_RET | unix.BPF_K},
	}
	if unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}) != nil ||
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1) != nil {
		unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), "IGMP")
}

func openQueries6() *os.File {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_ICMPV6)
	if err != nil {
		return nil
	}
	const query = 130
	var blocked unix.ICMPv6Filter // RFC 3542 §3.2: a bit set is a type blocked
	for i := range blocked.Data {
		blocked.Data[i] = ^uint32(0)
	}
	blocked.Data[query>>5] &^= 1 << (query & 31)
	if unix.SetsockoptICMPv6Filter(fd, unix.IPPROTO_ICMPV6, unix.ICMPV6_FILTER, &blocked) != nil ||
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1) != nil {
		unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), "MLD")
}

// read notes queries until the file is closed.
func (q *Queries) read(file *os.File, parse func(b, control []byte, from unix.Sockaddr) (index int, sender netip.Addr, version int)) {
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	b, control := make([]byte, 256), make([]byte, 128)
	for {
		var n, c int
		var from unix.Sockaddr
		var failed error
		err := conn.Read(func(fd uintptr) bool {
			n, c, _, from, failed = unix.Recvmsg(int(fd), b, control, 0)
			return failed != unix.EAGAIN
		})
		if err != nil {
			return
		}
		if failed != nil {
			continue
		}
		if index, sender, version := parse(b[:n], control[:c], from); version > 0 {
			q.note(index, sender, version, time.Now())
		}
	}
}

// igmpMessage reads what a raw socket has of IPv4: the IP header too.
func igmpMessage(b, control []byte, from unix.Sockaddr) (index int, sender netip.Addr, version int) {
	if len(b) < 20 || int(b[0]&15)*4 > len(b) {
		return 0, sender, 0
	}
	sender = netip.AddrFrom4([4]byte(b[12:16]))
	return interfaceOf(control, unix.IPPROTO_IP, unix.IP_PKTINFO, 0), sender, igmpQuery(b[int(b[0]&15)*4:])
}

func mldMessage(b, control []byte, from unix.Sockaddr) (index int, sender netip.Addr, version int) {
	if a, ok := from.(*unix.SockaddrInet6); ok {
		sender = netip.AddrFrom16(a.Addr)
	}
	return interfaceOf(control, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, 16), sender, mldQuery(b)
}

// interfaceOf reads the interface's index out of the packet information (ip(7),
// ipv6(7)), where it stands at an offset.
func interfaceOf(control []byte, level, kind int32, offset int) int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == level && m.Header.Type == kind && len(m.Data) >= offset+4 {
			return int(binary.NativeEndian.Uint32(m.Data[offset:]))
		}
	}
	return 0
}
