package ingest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// The kernel drops what no flow of a ring has asked for before it takes room
// there: a classic BPF program (Documentation/networking/filter.rst) looks for
// the group in a binary tree, and there for the port. Packets whose port is not
// where the program could find it pass by their group. The program begins at
// the IP header.

// filterMax is BPF_MAXINSNS.
const filterMax = 4096

// A filterKey is a group and port that a flow of the ring wants.
type filterKey struct {
	group ipAddr
	port  uint16
}

// How exactly a filter tells wanted packets, best first. The next is taken where
// a program has too many instructions or the kernel no room for it
// (net.core.optmem_max).
const (
	filterPorts  = iota // by group and port
	filterGroups        // by group
	filterAll           // all multicast UDP passes
	filterKinds
)

var filterNames = [filterKinds]string{"groups and ports", "groups", "all multicast"}

// attachFilter makes the packet socket take what the keys want, as exactly as
// the kernel lets it, and returns how exactly that is.
func attachFilter(fd int, v6 bool, keys []filterKey) (kind int, err error) {
	for kind = range filterKinds {
		program := filterProgram(v6, kind, keys)
		if len(program) > filterMax {
			continue
		}
		if err = attachProgram(fd, program); !errors.Is(err, unix.ENOMEM) {
			break
		}
	}
	if err != nil {
		return kind, fmt.Errorf("attach filter: %w", err)
	}
	return kind, nil
}

func attachProgram(fd int, program []unix.SockFilter) error {
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

const (
	loadByte   = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
	loadHalf   = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
	loadWord   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	loadImm    = unix.BPF_LD | unix.BPF_IMM
	loadCell   = unix.BPF_LD | unix.BPF_MEM
	storeCell  = unix.BPF_ST
	loadLength = unix.BPF_LD | unix.BPF_W | unix.BPF_LEN
	jumpEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpAbove  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	jumpMore   = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
	jumpSet    = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	jump       = unix.BPF_JMP | unix.BPF_JA
	answer     = unix.BPF_RET | unix.BPF_K

	takeAll  = 0x40000
	takeNone = 0

	// portsMax keeps the tests of one group within the reach of a jump.
	portsMax = 64

	// anyPort stands for the port of a packet in which it was not found.
	anyPort = 1 << 16
)

func filterProgram(v6 bool, kind int, keys []filterKey) []unix.SockFilter {
	keys = slices.Clone(keys)
	word := groupWord4
	if v6 {
		word = groupWord6
	}
	slices.SortFunc(keys, func(a, b filterKey) int {
		return cmp.Or(cmp.Compare(word(a.group), word(b.group)), slices.Compare(a.group[:], b.group[:]), cmp.Compare(a.port, b.port))
	})
	keys = slices.Compact(keys)

	p := program{v6: v6, kind: kind, word: word}
	p.preamble()
	switch {
	case len(keys) == 0:
		p.add(answer, takeNone)
	case kind == filterAll:
		p.multicast()
	default:
		p.tree(keys)
	}
	return p.code
}

// groupWord4 and groupWord6 are what the tree is ordered by: four bytes of the group
// that are likely to differ.
func groupWord4(g ipAddr) uint32 { return binary.BigEndian.Uint32(g[:]) }
func groupWord6(g ipAddr) uint32 { return binary.BigEndian.Uint32(g[12:]) }

// Offsets of a packet's fields.
const (
	ip4Parts    = 6
	ip4Protocol = 9
	ip4Dst      = 16
	ip6Next     = 6
	ip6Dst      = 24
)

type program struct {
	code []unix.SockFilter
	v6   bool
	kind int
	word func(ipAddr) uint32
}

func (p *program) add(code uint16, k uint32) { p.test(code, k, 0, 0) }

// test adds an instruction that skips jt others if it holds, else jf.
func (p *program) test(code uint16, k uint32, jt, jf uint8) {
	p.code = append(p.code, unix.SockFilter{Code: code, K: k, Jt: jt, Jf: jf})
}

// preamble drops what the kernel's IP would not take, leaves the port in cell
// 0 and the word of the group in the accumulator.
func (p *program) preamble() {
	const (
		ancillary  = 0xfffff000 // SKF_AD_OFF
		packetType = 4          // SKF_AD_PKTTYPE
		otherHost  = 3          // PACKET_OTHERHOST: of a VLAN that nobody here is in, too
	)
	p.add(loadByte, ancillary+packetType)
	p.test(jumpEqual, otherHost, 0, 1)
	p.add(answer, takeNone)
	if p.v6 {
		p.add(loadByte, ip6Next)
		p.test(jumpEqual, protocolUDP, 0, 2)
		p.add(loadHalf, ip6Header+2)
		p.add(jump, 6)
		p.test(jumpEqual, protocolHopByHop, 4, 0)
		p.test(jumpEqual, protocolRouting, 3, 0)
		p.test(jumpEqual, protocolFragment, 2, 0)
		p.test(jumpEqual, protocolDestination, 1, 0)
		p.add(answer, takeNone)
		p.add(loadImm, anyPort)
		p.add(storeCell, 0)
		p.add(loadWord, ip6Dst+12)
		return
	}
	p.add(loadByte, ip4Protocol)
	p.test(jumpEqual, protocolUDP, 1, 0)
	p.add(answer, takeNone)
	p.add(unix.BPF_LDX|unix.BPF_B|unix.BPF_MSH, 0) // X: length of the header
	p.add(loadHalf, ip4Parts)
	p.test(jumpSet, 0x1fff, 2, 0)
	p.add(unix.BPF_LD|unix.BPF_H|unix.BPF_IND, 2)
	p.add(jump, 1)
	p.add(loadImm, anyPort)
	p.add(storeCell, 0)
	p.add(loadWord, ip4Dst)
}

// multicast takes every group.
func (p *program) multicast() {
	if p.v6 {
		p.add(loadByte, ip6Dst)
		p.test(jumpEqual, 0xff, 0, 1)
	} else {
		p.test(jumpAbove, 0xe0000000, 0, 1)
	}
	p.add(answer, takeAll)
	p.add(answer, takeNone)
}

// tree looks for the word in the accumulator among the sorted keys.
func (p *program) tree(keys []filterKey) {
	words := 1
	middle := 0 // first key of a word near the middle, not the first word
	for i := 1; i < len(keys); i++ {
		if p.word(keys[i].group) != p.word(keys[i-1].group) {
			words++
			if middle == 0 || abs(i-len(keys)/2) < abs(middle-len(keys)/2) {
				middle = i
			}
		}
	}
	if words == 1 {
		p.leaf(keys)
		return
	}
	p.test(jumpAbove, p.word(keys[middle].group), 0, 1)
	far := len(p.code)
	p.add(jump, 0) // conditional jumps reach 255 instructions only
	p.tree(keys[:middle])
	p.code[far].K = uint32(len(p.code) - far - 1)
	p.tree(keys[middle:])
}

// leaf decides on keys whose groups have one word.
func (p *program) leaf(keys []filterKey) {
	p.test(jumpEqual, p.word(keys[0].group), 1, 0)
	p.add(answer, takeNone)
	for len(keys) > 0 {
		group := keys[0].group
		n := slices.IndexFunc(keys, func(k filterKey) bool { return k.group != group })
		if n < 0 {
			n = len(keys)
		}
		p.group(keys[:n])
		keys = keys[n:]
	}
	p.add(answer, takeNone)
}

// group takes what the keys of one group want; other groups go on behind it.
func (p *program) group(keys []filterKey) {
	var misses []int // tests that lead behind the group
	if p.v6 {
		for at := 0; at < 12; at += 4 {
			p.add(loadWord, ip6Dst+uint32(at))
			misses = append(misses, len(p.code))
			p.add(jumpEqual, binary.BigEndian.Uint32(keys[0].group[at:]))
		}
	}
	if p.kind == filterPorts && len(keys) <= portsMax {
		p.add(loadCell, 0)
		p.test(jumpEqual, anyPort, 0, 1)
		p.add(answer, takeAll)
		for _, k := range keys {
			p.test(jumpEqual, uint32(k.port), 0, 1)
			p.add(answer, takeAll)
		}
		// A port that is not wanted: another group does not begin here.
		p.add(answer, takeNone)
	} else {
		p.add(answer, takeAll)
	}
	for _, i := range misses {
		p.code[i].Jf = uint8(len(p.code) - i - 1)
	}
}

func abs(i int) int { return max(i, -i) }
