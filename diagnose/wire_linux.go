package diagnose

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// wireMost ends a look that has seen enough.
	wireMost = 2000
	// wireNames is how many ports and senders are worth naming.
	wireNames = 4
	// wireBytes is as much of a packet as is looked at: IP and UDP headers.
	wireBytes = 96
)

// wire looks at what comes in by the interface for the group, for as long as d,
// with a packet socket (packet(7)): it gets everything that the driver delivers,
// before the reverse-path filter and the firewall.
func (system) wire(ctx context.Context, name string, group netip.AddrPort, d time.Duration) (w Wire) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	began := time.Now()
	file, err := openWire(name, group.Addr())
	if err != nil {
		<-ctx.Done() // the channel is given the time all the same
		return w
	}
	defer file.Close()
	defer context.AfterFunc(ctx, func() { file.SetReadDeadline(time.Unix(1, 0)) })()
	conn, err := file.SyscallConn()
	if err != nil {
		return w
	}
	w.Looked = true
	b := make([]byte, wireBytes)
	for w.Packets < wireMost {
		var n int
		var from unix.Sockaddr
		var failed error
		err := conn.Read(func(fd uintptr) bool {
			n, from, failed = unix.Recvfrom(int(fd), b, 0)
			return failed != unix.EAGAIN
		})
		if err != nil || failed != nil && failed != unix.EINTR {
			break
		}
		if link, ok := from.(*unix.SockaddrLinklayer); ok && link.Pkttype != unix.PACKET_OUTGOING {
			w.take(b[:n], group.Port())
		}
	}
	if w.Packets >= wireMost {
		<-ctx.Done()
	}
	w.Time = time.Since(began)
	return w
}

// openWire opens a packet socket that gets the IP packets for a group, without
// their link header.
func openWire(name string, group netip.Addr) (*os.File, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	protocol, offset := uint16(unix.ETH_P_IP), uint32(16) // RFC 791 §3.1: destination
	if group.Is6() {
		protocol, offset = unix.ETH_P_IPV6, 24 // RFC 8200 §3
	}
	// Bound to no protocol yet, so that nothing comes before the filter is there.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("diagnose: open packet socket: %w", err)
	}
	address := group.AsSlice()
	var filter []unix.SockFilter
	words := len(address) / 4
	for i := range words {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset + uint32(4*i)},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: binary.BigEndian.Uint32(address[4*i:]), Jf: uint8(2*(words-i) - 1)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: wireBytes},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0})
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, protocol)), Ifindex: ifi.Index})
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("diagnose: set up packet socket on %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), "packet socket"), nil
}

// take counts one packet.
func (w *Wire) take(b []byte, port uint16) {
	sender, to, ok := udpOf(b)
	if !sender.IsValid() {
		return
	}
	w.Packets++
	if !slices.Contains(w.Senders, sender) && len(w.Senders) < wireNames {
		w.Senders = append(w.Senders, sender)
	}
	switch {
	case !ok:
	case to == port:
		w.OnPort++
	case !slices.Contains(w.Ports, to) && len(w.Ports) < wireNames:
		w.Ports = append(w.Ports, to)
	}
}

// udpOf reads sender and destination port of an IP packet; the port is not ok
// where it is no UDP, or not the first fragment.
func udpOf(b []byte) (sender netip.Addr, port uint16, ok bool) {
	const udp = 17
	var payload []byte
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		sender = netip.AddrFrom4([4]byte(b[12:16]))
		header := int(b[0]&15) * 4
		first := binary.BigEndian.Uint16(b[6:])&0x1fff == 0
		if b[9] != udp || !first || header > len(b) {
			return sender, 0, false
		}
		payload = b[header:]
	case len(b) >= 40 && b[0]>>4 == 6:
		sender = netip.AddrFrom16([16]byte(b[8:24]))
		if b[6] != udp {
			return sender, 0, false
		}
		payload = b[40:]
	}
	if len(payload) < 4 {
		return sender, 0, false
	}
	return sender, binary.BigEndian.Uint16(payload[2:]), true
}
