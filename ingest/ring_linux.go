package ingest

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// frameSize holds a header of 80 bytes and what an Ethernet of the usual
	// MTU brings; larger packets are cut, and their sources read from sockets.
	// It is a multiple of TPACKET_ALIGNMENT.
	frameSize = 1600
	// frameData is where the IP header begins in a frame of a SOCK_DGRAM ring
	// (net/packet/af_packet.c, tpacket_rcv): tpacket2_hdr and sockaddr_ll,
	// aligned, and 16 bytes.
	frameData = 80
	// frameRoom is what a frame takes of a packet.
	frameRoom = frameSize - frameData

	// blockSize is what the kernel allocates at once; a multiple of any page size.
	blockSize      = 64 << 10
	framesPerBlock = blockSize / frameSize

	// What the walk prefetches, since another processor wrote it: the packet, as
	// far as the usual one reaches, and the headers of a frame further on.
	cacheLine   = 64
	frameLines  = 22
	framesAhead = 4
)

// A ring is a PACKET_MMAP receive ring (packet(7), TPACKET_V2): memory in which
// the kernel puts one family's packets of one interface, a frame each, and that
// is read here without a system call. Frames go back to the kernel one by one
// and in any order, so that one flow that is slow to read holds no more than
// its own.
//
// The control plane makes a ring, keeps its filter and closes it (see rings).
// All else is the loop's.
type ring struct {
	fd    int
	v6    bool
	index int // of the interface
	name  string
	mem   []byte

	// The loop's.
	head    int // next frame that the kernel fills
	refs    []uint8
	nodes   []node
	free    int32 // list of nodes; -1: none
	used    int32 // nodes read in this turn
	users   int   // flows that are here, or will be
	table   flowTable
	flows   []*ringFlow
	parts   fragments
	pace    pace
	joined  time.Time // when a flow came last
	full    bool      // no flow more, where it is to be as safe as a socket
	sampled time.Time
	lostAt  time.Time

	packets, drops, unclaimed, malformed, checksums, reassembled int64

	filter  atomic.Int32 // how exactly it filters: filterPorts and so on
	claimed atomic.Bool  // the loop has it
}

// A node is one datagram in one flow's list. Two flows may want the same.
type node struct {
	next  int32
	frame int32 // where it lies; -1-slot: among the reassembled
	from  uint32
	size  int32 // -1: the frame holds only the beginning
}

const noNode = -1

// openRing makes a ring for one family of an interface that takes nothing yet.
func openRing(index int, name string, v6 bool, size int) (*ring, error) {
	fd, err := openPacketSocket()
	if err != nil {
		return nil, err
	}
	r := &ring{fd: fd, v6: v6, index: index, name: name, free: noNode, used: noNode}
	if err := r.setUp(max(1, size/blockSize)); err != nil {
		_ = r.close()
		return nil, err
	}
	return r, nil
}

// openPacketSocket opens a packet socket for a ring, which needs CAP_NET_RAW. It
// hears nothing until it is bound. SOCK_DGRAM begins at the IP header whatever
// the link is: Ethernet, PPP or a tunnel.
func openPacketSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open packet socket: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("ask for TPACKET_V2: %w", err)
	}
	return fd, nil
}

func (r *ring) setUp(blocks int) error {
	if _, err := attachFilter(r.fd, r.v6, nil); err != nil {
		return err
	}
	frames := blocks * framesPerBlock
	request := unix.TpacketReq{Block_size: blockSize, Block_nr: uint32(blocks), Frame_size: frameSize, Frame_nr: uint32(frames)}
	if err := unix.SetsockoptTpacketReq(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err != nil {
		return fmt.Errorf("allocate a ring of %d KiB: %w", blocks*blockSize>>10, err)
	}
	mem, err := unix.Mmap(r.fd, 0, blocks*blockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the ring: %w", err)
	}
	r.mem = mem
	r.refs = make([]uint8, frames)
	r.nodes = make([]node, 2*frames)
	for i := range r.nodes {
		r.nodes[i].next = r.free
		r.free = int32(i)
	}
	r.pace.room = int64(frames)

	// Bound to one protocol a packet socket stands where the kernel's IP does:
	// behind VLANs, bridges and tunnels, and it does not see what is sent. That
	// a socket of one protocol is never given outgoing packets is not written
	// anywhere, hence the option (Linux 4.20).
	const ignoreOutgoing = unix.PACKET_IGNORE_OUTGOING
	_ = unix.SetsockoptInt(r.fd, unix.SOL_PACKET, ignoreOutgoing, 1)
	protocol := uint16(unix.ETH_P_IP)
	if r.v6 {
		protocol = unix.ETH_P_IPV6
	}
	address := &unix.SockaddrLinklayer{Protocol: networkOrder(&protocol), Ifindex: r.index}
	if err := unix.Bind(r.fd, address); err != nil {
		return fmt.Errorf("bind to %s: %w", r.name, err)
	}
	return nil
}

func (r *ring) close() error {
	var err error
	if r.mem != nil {
		err = unix.Munmap(r.mem)
	}
	return errors.Join(err, unix.Close(r.fd))
}

// at is where a frame begins: none straddles two blocks.
func (r *ring) at(frame int) int {
	return frame/framesPerBlock*blockSize + frame%framesPerBlock*frameSize
}

func (r *ring) header(at int) *unix.Tpacket2Hdr {
	return (*unix.Tpacket2Hdr)(unsafe.Pointer(&r.mem[at]))
}

// walk hands what has come in to the flows it is for.
func (r *ring) walk(now time.Time) {
	if now.Sub(r.sampled) >= sampleInterval {
		r.sample(now)
	}
	n, lost := int64(0), uint32(0)
	for ; n < int64(len(r.refs)) && r.refs[r.head] == 0; n++ {
		at := r.at(r.head)
		h := r.header(at)
		status := atomic.LoadUint32(&h.Status)
		if status&unix.TP_STATUS_USER == 0 {
			break
		}
		lost |= status & unix.TP_STATUS_LOSING
		frame := r.head
		prefetch(unsafe.Pointer(&r.mem[at+frameData]), cacheLine, frameLines)
		prefetch(unsafe.Pointer(&r.mem[r.at((frame+framesAhead)%len(r.refs))]), cacheLine, 2)
		if r.head++; r.head == len(r.refs) {
			r.head = 0
		}
		begin := min(int(h.Net), frameSize)
		b := r.mem[at+begin : at+min(begin+int(h.Snaplen), frameSize)]
		r.sort(int32(frame), b, status, h.Len > h.Snaplen)
		if r.refs[frame] == 0 {
			atomic.StoreUint32(&h.Status, unix.TP_STATUS_KERNEL)
		}
	}
	r.pace.take(now, n)
	if lost != 0 && r.sampled != now {
		r.sample(now) // which also takes the mark from frames to come
	}
}

// sort finds out what is in a frame. The checksum of what comes from this host,
// or by a veth, is not there yet: its way has no bits to lose.
func (r *ring) sort(frame int32, b []byte, status uint32, cut bool) {
	p, ok := parsePacket(b, cut)
	switch {
	case !ok:
		r.malformed++
	case p.fragment && !p.oversize():
		slot := r.parts.add(&p)
		if slot < 0 {
			return
		}
		r.reassembled++
		p = r.parts.packet(slot)
		r.sortDatagram(-1-int32(slot), &p, false)
		if r.parts.slots[slot].refs == 0 {
			r.parts.release(slot)
		}
	default:
		r.sortDatagram(frame, &p, status&(unix.TP_STATUS_CSUM_VALID|unix.TP_STATUS_CSUMNOTREADY) != 0)
	}
}

// sortDatagram finds the flows of a datagram.
func (r *ring) sortDatagram(frame int32, p *packet, trusted bool) {
	d, ok := p.udp()
	if !ok {
		r.malformed++
		return
	}
	f := r.table.find(p.dst, d.dstPort)
	for f != nil && !f.wants(p.src) {
		f = f.sibling
	}
	if f == nil {
		r.unclaimed++
		return
	}
	n := node{frame: frame, size: -1}
	if !p.cut {
		if !trusted && !p.intact(&d) {
			r.checksums++
			f.malformed++
			return
		}
		n.size = int32(len(d.payload))
		if frame >= 0 {
			n.from = uint32(uintptr(unsafe.Pointer(unsafe.SliceData(d.payload))) - uintptr(unsafe.Pointer(&r.mem[0])))
		}
	}
	for ; f != nil; f = f.sibling {
		if f.wants(p.src) {
			r.claim(f, n)
		}
	}
}

// claim puts a datagram at the end of a flow's list.
func (r *ring) claim(f *ringFlow, n node) {
	i := r.free
	if i == noNode { // every datagram is wanted by more than two flows
		f.overflow++
		return
	}
	r.free = r.nodes[i].next
	n.next = noNode
	r.nodes[i] = n
	if n.frame >= 0 {
		r.refs[n.frame]++
	} else {
		r.parts.slots[-1-n.frame].refs++
		f.pieced = true
	}
	if f.last == noNode {
		f.list = i
	} else {
		r.nodes[f.last].next = i
	}
	f.last = i
	f.listed++
}

// data is the datagram of a node, valid until it is released; nil: cut.
func (r *ring) data(i int32) []byte {
	n := &r.nodes[i]
	switch {
	case n.size < 0:
		return nil
	case n.frame >= 0:
		end := int(n.from) + int(n.size)
		return r.mem[n.from:end:end]
	}
	p := r.parts.packet(int(-1 - n.frame))
	return p.body[udpHeader : udpHeader+n.size : udpHeader+n.size]
}

// sender is where the datagram of a node came from; false: it was in pieces.
func (r *ring) sender(i int32) (netip.AddrPort, bool) {
	n := &r.nodes[i]
	if n.frame < 0 {
		return netip.AddrPort{}, false
	}
	at := r.at(int(n.frame))
	h := r.header(at)
	p, ok := parsePacket(r.mem[at+int(h.Net):at+int(h.Net)+int(h.Snaplen)], true)
	if !ok {
		return netip.AddrPort{}, false
	}
	port := uint16(p.body[0])<<8 | uint16(p.body[1])
	if p.v6 {
		return netip.AddrPortFrom(netip.AddrFrom16(p.src), port), true
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(p.src[:4])), port), true
}

// pop takes the first datagram out of a flow's list; it stays readable until
// release.
func (r *ring) pop(f *ringFlow) {
	i := f.list
	f.list = r.nodes[i].next
	if f.list == noNode {
		f.last = noNode
	}
	f.listed--
	r.nodes[i].next = r.used
	r.used = i
}

// release gives the kernel back what has been read.
func (r *ring) release() {
	for i := r.used; i != noNode; {
		n := &r.nodes[i]
		if n.frame >= 0 {
			if r.refs[n.frame]--; r.refs[n.frame] == 0 {
				atomic.StoreUint32(&r.header(r.at(int(n.frame))).Status, unix.TP_STATUS_KERNEL)
			}
		} else {
			slot := int(-1 - n.frame)
			if r.parts.slots[slot].refs--; r.parts.slots[slot].refs == 0 {
				r.parts.release(slot)
			}
		}
		next := n.next
		n.next = r.free
		r.free = i
		i = next
	}
	r.used = noNode
}

// crowded reports whether a loop that comes late loses packets too soon.
func (r *ring) crowded() bool {
	d, known := r.pace.slack()
	return known && d < enoughSlack
}

// sample asks the kernel what it had no room for. The counters start anew each
// time they are read.
func (r *ring) sample(now time.Time) {
	r.sampled = now
	var s unix.TpacketStats
	size := uint32(unsafe.Sizeof(s))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(r.fd), unix.SOL_PACKET, unix.PACKET_STATISTICS,
		uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return
	}
	r.packets += int64(s.Packets - s.Drops)
	if s.Drops > 0 {
		r.drops += int64(s.Drops)
		r.lostAt = now
		r.pace.overflowed()
	}
}

func (r *ring) status() RingStatus {
	family := "IPv4"
	if r.v6 {
		family = "IPv6"
	}
	return RingStatus{
		Interface: r.name, Family: family, Bytes: len(r.mem), Frames: len(r.refs), Flows: len(r.flows),
		Filter: filterNames[r.filter.Load()], Packets: r.packets, Drops: r.drops, Unclaimed: r.unclaimed,
		Malformed: r.malformed, BadChecksums: r.checksums, Reassembled: r.reassembled,
	}
}
