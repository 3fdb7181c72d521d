package nettest

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Line says what a wire does to what goes one way. The zero value is a good
// one. A frame is counted when it matches, from 0 on; only such frames are
// dropped, jittered and repeated, while the delay is everybody's.
type Line struct {
	Match func(Packet) bool // nil: everything, with ARP and neighbour discovery

	Loss     float64 // probability, 0 to 1
	Lose, Of int     // the first Lose frames of every Of are lost
	Drop     []int   // frames that are lost, by their number

	Delay     time.Duration
	Jitter    time.Duration // up to so much is added to the delay
	Reorder   bool          // jitter may change the order; else it does not
	Duplicate float64       // probability, 0 to 1

	Seed uint64
}

// UDP matches all UDP, for Line.Match.
func UDP(p Packet) bool { return p.Protocol == unix.IPPROTO_UDP }

// Port matches UDP from or to a port, for Line.Match.
func Port(port uint16) func(Packet) bool {
	return func(p Packet) bool { return UDP(p) && (p.From.Port() == port || p.To.Port() == port) }
}

// A Wire is a link that a goroutine a direction carries frames over.
type Wire struct{ AtoB, BtoA *Direction }

// A Direction is one way of a wire.
type Direction struct {
	in, out int // packet sockets

	mu      sync.Mutex // guards the rest
	line    Line
	rng     *rand.Rand
	counted int
	dropped []Packet
	carried int
	waiting frames
	order   int
	last    time.Time // when the last frame that may not be overtaken is due
}

// Wire joins two namespaces as [Lab.Link] does, by a cable that is not good.
//
//	a ──── veth ──── packet socket │ AtoB, BtoA │ packet socket ──── veth ──── b
//
// The inner ends are in a namespace of their own. What a socket leaves to a card
// (checksums, cutting into packets) is done by the kernel before the cable.
func (l *Lab) Wire(a, b string, atob, btoa Line) *Wire {
	l.t.Helper()
	l.wires++
	ns := fmt.Sprint("wire", l.wires)
	l.run("netns add " + l.Name(ns))
	l.prepare(ns)
	ends := []end{parseEnd(a), parseEnd(b)}
	var fds [2]int
	for i, e := range ends {
		inner := fmt.Sprint("inner", i)
		l.IP(e.ns, fmt.Sprintf("link add %s type veth peer name %s netns %s", e.dev, inner, l.Name(ns)))
		l.IP(ns, "link set "+inner+" addrgenmode none up")
		l.Do(e.ns, func() {
			if err := noOffloads(e.dev); err != nil {
				l.t.Errorf("offloads of %s: %v", e.dev, err)
			}
		})
		fds[i] = l.packetSocket(ns, inner, unix.SOCK_RAW)
	}
	w := &Wire{&Direction{in: fds[0], out: fds[1]}, &Direction{in: fds[1], out: fds[0]}}
	w.AtoB.Set(atob)
	w.BtoA.Set(btoa)
	for _, d := range []*Direction{w.AtoB, w.BtoA} {
		buf := make([]byte, 1<<16)
		l.background(d.in, func() { d.step(buf) })
	}
	for _, e := range ends {
		l.address(e)
	}
	for _, e := range ends {
		l.awaitIPv6(e)
	}
	return w
}

// noOffloads switches off that the interface's sender leaves checksums and
// segmentation to the card, as it does on a veth, which does neither
// (linux/ethtool.h).
func noOffloads(dev string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, command := range []uint32{unix.ETHTOOL_STXCSUM, unix.ETHTOOL_STSO, unix.ETHTOOL_SGSO, unix.ETHTOOL_SGRO} {
		value := [2]uint32{command, 0}
		request := struct {
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte
		}{data: unsafe.Pointer(&value)}
		copy(request.name[:], dev)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
		if errno != 0 && errno != unix.EOPNOTSUPP {
			return fmt.Errorf("ethtool command %#x: %w", command, errno)
		}
	}
	return nil
}

// Set changes the line from now on; frames count from 0 again.
func (d *Direction) Set(line Line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.line, d.counted, d.rng = line, 0, rand.New(rand.NewPCG(line.Seed, 0))
}

// Dropped returns the packets that were lost, oldest first.
func (d *Direction) Dropped() []Packet {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.dropped)
}

// Carried is how many frames arrived, duplicates with them.
func (d *Direction) Carried() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.carried
}

// step waits for a frame, or until one is due.
func (d *Direction) step(buf []byte) {
	wait := 20 * time.Millisecond
	d.mu.Lock()
	if len(d.waiting) > 0 {
		wait = max(0, min(wait, time.Until(d.waiting[0].due)))
	}
	d.mu.Unlock()
	timeout := unix.NsecToTimespec(wait.Nanoseconds())
	_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(d.in), Events: unix.POLLIN}}, &timeout, nil) // a signal ends it early

	d.mu.Lock()
	defer d.mu.Unlock()
	for range 64 {
		n, _, err := unix.Recvfrom(d.in, buf, unix.MSG_DONTWAIT)
		if err != nil {
			break
		}
		d.take(slices.Clone(buf[:n]), time.Now())
	}
	for now := time.Now(); len(d.waiting) > 0 && !d.waiting[0].due.After(now); {
		if _, err := unix.Write(d.out, heap.Pop(&d.waiting).(frame).bytes); err == nil {
			d.carried++
		}
	}
}

// take decides what becomes of a frame.
func (d *Direction) take(b []byte, now time.Time) {
	var p Packet
	if len(b) > 14 {
		switch binary.BigEndian.Uint16(b[12:]) {
		case unix.ETH_P_IP, unix.ETH_P_IPV6:
			p, _ = parse(b[14:], now)
		}
	}
	due, copies := now.Add(d.line.Delay), 1
	if d.line.Match == nil || d.line.Match(p) {
		n := d.counted
		d.counted++
		// Each is drawn for each frame, so that one does not move another.
		loss, jitter, twice := d.rng.Float64(), d.rng.Float64(), d.rng.Float64()
		if loss < d.line.Loss || d.line.Of > 0 && n%d.line.Of < d.line.Lose || slices.Contains(d.line.Drop, n) {
			d.dropped = append(d.dropped, p)
			return
		}
		due = due.Add(time.Duration(jitter * float64(d.line.Jitter)))
		if twice < d.line.Duplicate {
			copies = 2
		}
	}
	if !d.line.Reorder {
		if due.Before(d.last) {
			due = d.last
		}
		d.last = due
	}
	for range copies {
		heap.Push(&d.waiting, frame{due, d.order, b})
		d.order++
	}
}

// frames is a heap: the first is due first.
type frames []frame

type frame struct {
	due   time.Time
	order int // of arrival
	bytes []byte
}

func (f frames) Len() int      { return len(f) }
func (f frames) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *frames) Push(x any)   { *f = append(*f, x.(frame)) }

func (f frames) Less(i, j int) bool {
	if !f[i].due.Equal(f[j].due) {
		return f[i].due.Before(f[j].due)
	}
	return f[i].order < f[j].order
}

func (f *frames) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}
