package ingest

import (
	"encoding/binary"
	"net/netip"
)

// Membership reports that nobody has asked for, so that a network without a
// querier does not forget a member. Each tells the state as it is
// (MODE_IS_EXCLUDE nobody for any source, MODE_IS_INCLUDE the sender for a
// source-specific join), so nothing is left and no datagram is lost.
//
//	IGMPv3 report, RFC 3376 §4.2          MLDv2 report, RFC 3810 §5.2
//	 0 type 0x22, reserved                 0 type 143, reserved
//	 2 checksum                            2 checksum
//	 4 reserved, number of records         4 reserved, number of records
//	 8 record: type, aux length, number    8 record: type, aux length, number
//	   of sources, group, sources            of sources, group, sources
//
//	IGMPv2 report, RFC 2236 §2: type 0x16, 0, checksum, group

const (
	igmpV2Report  = 0x16
	igmpV3Report  = 0x22
	mldV2Report   = 143
	modeIsInclude = 1
	modeIsExclude = 2
)

var (
	allIGMPv3Routers = netip.AddrFrom4([4]byte{224, 0, 0, 22})
	allMLDv2Routers  = netip.MustParseAddr("ff02::16")
)

// A report is what one membership has to tell its network.
type report struct {
	index  int
	group  netip.Addr
	source netip.Addr // zero value: any source
}

// needed is false for groups that reports leave out because no router forwards
// them: 224.0.0.0/24, as the kernel has it, and RFC 3810 §6.
func (r report) needed() bool {
	if r.group.Is4() {
		b := r.group.As4()
		return !(b[0] == 224 && b[1] == 0 && b[2] == 0)
	}
	return !r.group.IsInterfaceLocalMulticast() && r.group != netip.IPv6LinkLocalAllNodes()
}

// igmpV2 is the report of an any-source join for networks that never saw IGMPv3.
func (r report) igmpV2() []byte {
	b := append([]byte{igmpV2Report, 0, 0, 0}, r.group.AsSlice()...)
	return withChecksum(b)
}

func (r report) igmpV3() []byte { return withChecksum(r.records(igmpV3Report)) }

// mldV2 has no checksum: the kernel puts it into what goes out by an ICMPv6
// socket (RFC 3542 §3.1).
func (r report) mldV2() []byte { return r.records(mldV2Report) }

func (r report) records(kind byte) []byte {
	b := []byte{kind, 0, 0, 0, 0, 0, 0, 1}
	if !r.source.IsValid() {
		return append(append(b, modeIsExclude, 0, 0, 0), r.group.AsSlice()...)
	}
	b = append(append(b, modeIsInclude, 0, 0, 1), r.group.AsSlice()...)
	return append(b, r.source.AsSlice()...)
}

// withChecksum fills in bytes 2 and 3 (RFC 1071) of a message of even length.
func withChecksum(b []byte) []byte {
	binary.BigEndian.PutUint16(b[2:], ^onesSum(b))
	return b
}

func onesSum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	sum = sum>>16 + sum&0xffff
	return uint16(sum>>16 + sum)
}
