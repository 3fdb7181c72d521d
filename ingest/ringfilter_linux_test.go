package ingest

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// machine runs a filter, without its first instructions, which ask for what only
// the kernel has.
func machine(t *testing.T, program []unix.SockFilter) *bpf.VM {
	t.Helper()
	const kernelOnly = 3
	var code []bpf.Instruction
	for _, i := range program[kernelOnly:] {
		code = append(code, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K}.Disassemble())
	}
	vm, err := bpf.NewVM(code)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func takes(t *testing.T, vm *bpf.VM, b []byte) bool {
	t.Helper()
	n, err := vm.Run(b)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func filterGroup(v6 bool, i int) netip.Addr {
	if v6 { // each two share their last four bytes
		a := testGroup6.As16()
		a[5] = byte(i % 2)
		binary.BigEndian.PutUint32(a[12:], uint32(i/2))
		return netip.AddrFrom16(a)
	}
	return netip.AddrFrom4([4]byte{239, byte(i >> 16), byte(i >> 8), byte(i)})
}

func TestFilter(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		src := testSource4
		if v6 {
			src = testSource6
		}
		for kind := range filterKinds {
			for _, groups := range []int{0, 1, 2, 3, 64, 300} {
				var keys []filterKey
				for i := range groups {
					keys = append(keys, filterKey{rawAddr(filterGroup(v6, 2*i)), 5000}, filterKey{rawAddr(filterGroup(v6, 2*i)), uint16(6000 + i)})
				}
				program := filterProgram(v6, kind, keys)
				if len(program) > filterMax {
					if groups < 300 {
						t.Errorf("%d groups: %d instructions", groups, len(program))
					}
					continue
				}
				vm := machine(t, program)
				f := func(what string, want bool, b []byte) {
					t.Helper()
					if got := takes(t, vm, b); got != want {
						t.Errorf("IPv6 %t, %s, %d groups: %s taken %t, want %t", v6, filterNames[kind], groups, what, got, want)
					}
				}
				some := groups > 0
				for i := range groups {
					group := filterGroup(v6, 2*i)
					f("the first port", true, udpPacket(src, group, 5000, nil))
					f("the second port", true, udpPacket(src, group, uint16(6000+i), nil))
					f("another port", kind > filterPorts, udpPacket(src, group, 5001, nil))
					f("a group beside it", kind == filterAll, udpPacket(src, filterGroup(v6, 2*i+1), 5000, nil))
					f("a later fragment", true, ipPacket(src, group, protocolUDP, 1, 0x2010, make([]byte, 64)))
				}
				f("another group", some && kind == filterAll, udpPacket(src, filterGroup(v6, 1<<18+1), 5000, nil))
				f("unicast", false, udpPacket(src, src, 5000, nil))
				f("TCP", false, ipPacket(src, filterGroup(v6, 0), 6, 0, 0, make([]byte, 64)))
			}
		}
	}
}

// Whatever is asked for, the kernel accepts a filter.
func TestFilter_theKernelTakesIt(t *testing.T) {
	if fault := probeRing(); fault != "" {
		t.Skip(fault)
	}
	fd, err := openPacketSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for groups, want := range map[int]int{0: filterPorts, 1: filterPorts, 200: filterPorts, 5000: filterAll} {
		var keys []filterKey
		for i := range groups {
			keys = append(keys, filterKey{rawAddr(filterGroup(false, i)), 5000})
		}
		kind, err := attachFilter(fd, false, keys)
		if err != nil || kind < want {
			t.Errorf("%d groups: filter by %s, error %v; want %s at best", groups, filterNames[kind], err, filterNames[want])
		}
	}
	var ports []filterKey
	for port := range uint16(1000) {
		ports = append(ports, filterKey{rawAddr(testGroup6), port + 1})
	}
	if _, err := attachFilter(fd, true, ports); err != nil {
		t.Errorf("1000 ports of a group: %v", err)
	}
}
