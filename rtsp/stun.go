package rtsp

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// STUN, RFC 5389 §6:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|0 0|      message type         |     length of attributes      |
//	|                         magic cookie                          |
//	|                transaction id (96 bits)                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const (
	stunRequest  = 0x0001
	stunResponse = 0x0101
	stunCookie   = 0x2112A442
	stunHeader   = 20

	stunMapped    = 0x0001 // MAPPED-ADDRESS, §15.1
	stunXORMapped = 0x0020 // XOR-MAPPED-ADDRESS, §15.2

	stunPort    = "3478"
	stunTries   = 3
	stunTimeout = time.Second
)

type stunID [12]byte

func stunBinding(id stunID) []byte {
	b := make([]byte, 8, stunHeader)
	binary.BigEndian.PutUint16(b, stunRequest)
	binary.BigEndian.PutUint32(b[4:], stunCookie)
	return append(b, id[:]...)
}

// parseSTUN returns the address that a response to id names. The XOR form counts
// where both are there: some routers rewrite the other one.
func parseSTUN(b []byte, id stunID) (mapped netip.AddrPort, ok bool) {
	if len(b) < stunHeader || binary.BigEndian.Uint16(b) != stunResponse ||
		binary.BigEndian.Uint32(b[4:]) != stunCookie || stunID(b[8:stunHeader]) != id {
		return mapped, false
	}
	rest := b[stunHeader:]
	if n := int(binary.BigEndian.Uint16(b[2:])); n > len(rest) {
		return mapped, false
	} else {
		rest = rest[:n]
	}
	for len(rest) >= 4 {
		kind, n := binary.BigEndian.Uint16(rest), int(binary.BigEndian.Uint16(rest[2:]))
		if 4+n > len(rest) {
			return mapped, ok
		}
		value := rest[4 : 4+n]
		rest = rest[min(len(rest), 4+(n+3)&^3):]
		if kind != stunXORMapped && (kind != stunMapped || ok) {
			continue
		}
		if at, good := stunAddress(value, kind == stunXORMapped, b[4:stunHeader]); good {
			mapped, ok = at, true
			if kind == stunXORMapped {
				return mapped, true
			}
		}
	}
	return mapped, ok
}

// stunAddress reads family, port and address, which the XOR form hides behind
// mask, the cookie and the transaction id.
func stunAddress(value []byte, xor bool, mask []byte) (netip.AddrPort, bool) {
	if len(value) < 4 {
		return netip.AddrPort{}, false
	}
	port := binary.BigEndian.Uint16(value[2:])
	raw := append([]byte(nil), value[4:]...)
	if xor {
		port ^= binary.BigEndian.Uint16(mask)
		for i := range min(len(raw), len(mask)) {
			raw[i] ^= mask[i]
		}
	}
	want := 4
	if value[1] == 2 {
		want = 16
	}
	addr, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr, port), ok && len(raw) == want && port != 0
}

// askSTUN asks server which address and port the packets of conn seem to come
// from.
func askSTUN(conn *net.UDPConn, server netip.AddrPort) (netip.AddrPort, error) {
	var id stunID
	_, _ = rand.Read(id[:])
	request, buf := stunBinding(id), make([]byte, 1500)
	defer conn.SetReadDeadline(time.Time{})
	for range stunTries {
		if _, err := conn.WriteToUDPAddrPort(request, server); err != nil {
			return netip.AddrPort{}, fmt.Errorf("rtsp: ask STUN server %s: %w", server, err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(stunTimeout))
		for {
			n, _, err := conn.ReadFromUDPAddrPort(buf)
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				break
			}
			if err != nil {
				return netip.AddrPort{}, fmt.Errorf("rtsp: ask STUN server %s: %w", server, err)
			}
			if mapped, ok := parseSTUN(buf[:n], id); ok {
				return mapped, nil
			}
		}
	}
	return netip.AddrPort{}, fmt.Errorf("rtsp: STUN server %s does not answer", server)
}
