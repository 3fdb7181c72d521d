package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A heard message is an IGMP or MLD message as it was seen on the wire.
type heard struct {
	to       netip.Addr
	hops     int  // TTL or hop limit
	alert    bool // router alert option
	checksum bool // is right
	from     netip.Addr
	body     []byte
}

// record is the first group record of an IGMPv3 or MLDv2 report: its type,
// group and sources. Type 0: another message.
func (h heard) record() (kind byte, group netip.Addr, sources []netip.Addr) {
	size := len(h.to.AsSlice())
	if len(h.body) < 12+size || (h.body[0] != igmpV3Report && h.body[0] != mldV2Report) {
		return 0, netip.Addr{}, nil
	}
	group, _ = netip.AddrFromSlice(h.body[12 : 12+size])
	for i := range int(binary.BigEndian.Uint16(h.body[10:])) {
		source, _ := netip.AddrFromSlice(h.body[12+size*(i+1) : 12+size*(i+2)])
		sources = append(sources, source)
	}
	return h.body[8], group, sources
}

// A capture listens to membership messages that come out of eth<n>.
type capture struct{ fd int }

func (ns namespaces) capture(t *testing.T, n int) *capture {
	t.Helper()
	c := &capture{fd: -1}
	inside(t, ns.tx, func() {
		link, err := net.InterfaceByName(fmt.Sprint("peer", n))
		if err != nil {
			t.Error(err)
			return
		}
		protocol := binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff})
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = errors.Join(
				unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Index}),
				unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}))
		}
		if err != nil {
			t.Error(err)
			return
		}
		c.fd = fd
	})
	if c.fd < 0 {
		t.FailNow()
	}
	t.Cleanup(func() { unix.Close(c.fd) })
	return c
}

// wait returns the first message that is wanted, and how many others came
// before it.
func (c *capture) wait(t *testing.T, what string, wanted func(heard) bool) (h heard, before []heard) {
	t.Helper()
	buf := make([]byte, 2048)
	for end := time.Now().Add(2 * patience); time.Now().Before(end); {
		n, from, err := unix.Recvfrom(c.fd, buf, 0)
		if err != nil {
			continue
		}
		if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		h, ok := decode(slices.Clone(buf[:n]))
		if !ok {
			continue
		}
		if wanted(h) {
			return h, before
		}
		before = append(before, h)
	}
	t.Errorf("%s was not seen on the wire; but %d other messages: %+v", what, len(before), before)
	return heard{}, before
}

// untilQuiet returns when nothing has come for a while.
func (c *capture) untilQuiet(while time.Duration) {
	buf := make([]byte, 2048)
	for since := time.Now(); time.Since(since) < while; {
		n, from, err := unix.Recvfrom(c.fd, buf, 0)
		if ll, ok := from.(*unix.SockaddrLinklayer); err != nil || !ok || ll.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if _, ok := decode(slices.Clone(buf[:n])); ok {
			since = time.Now()
		}
	}
}

func decode(b []byte) (h heard, ok bool) {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4 && b[9] == unix.IPPROTO_IGMP:
		header := int(b[0]&0xf) * 4
		h.from, _ = netip.AddrFromSlice(b[12:16])
		h.to, _ = netip.AddrFromSlice(b[16:20])
		h.hops = int(b[8])
		h.alert = string(b[20:header]) == "\x94\x04\x00\x00"
		h.body = b[header:binary.BigEndian.Uint16(b[2:])]
		h.checksum = onesSum(h.body) == 0xffff
		return h, true
	case len(b) >= 48 && b[0]>>4 == 6 && b[6] == 0 && b[40] == unix.IPPROTO_ICMPV6:
		h.from, _ = netip.AddrFromSlice(b[8:24])
		h.to, _ = netip.AddrFromSlice(b[24:40])
		h.hops = int(b[7])
		h.alert = string(b[42:46]) == "\x05\x02\x00\x00"
		h.body = b[48 : 40+int(binary.BigEndian.Uint16(b[4:]))]
		pseudo := append(slices.Clone(b[8:40]), 0, 0, 0, byte(len(h.body)), 0, 0, 0, unix.IPPROTO_ICMPV6)
		h.checksum = onesSum(append(pseudo, h.body...)) == 0xffff
		return h, true
	}
	return h, false
}
