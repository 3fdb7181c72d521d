// Package captures reads captured streams for tests. Those that hold an
// operator's stream are too large and not ours to publish: they lie in a folder
// beside the module, and tests skip where that is missing.
package captures

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
)

// Datagram is a UDP datagram as it was captured.
type Datagram struct {
	To      netip.AddrPort
	Payload []byte
}

// ReedSolomon is a channel with k=100 and m=5 of the integer dialect: media on
// port 4056 of its group, parity on port 4055.
const ReedSolomon = "rs-fec-k100-m5.pcapng"

// Load returns the IPv4 UDP datagrams of a capture, in order. Where there is no
// such capture it skips the test, and says so.
func Load(tb testing.TB, name string) []Datagram {
	tb.Helper()
	_, here, _, _ := runtime.Caller(0)
	f, err := os.Open(filepath.Join(filepath.Dir(here), "../../../shared/captures", name))
	if errors.Is(err, os.ErrNotExist) {
		tb.Skipf("the capture %s is not beside this module (../shared/captures): nothing was checked", name)
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		tb.Fatal(err)
	}
	var list []Datagram
	for {
		frame, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			tb.Fatal(err)
		}
		if d, ok := udp(frame); ok {
			list = append(list, d)
		}
	}
}

// udp finds the datagram in an Ethernet frame, perhaps inside a PPPoE session
// (RFC 2516 §4: 6 bytes of header, 2 of protocol).
func udp(frame []byte) (Datagram, bool) {
	const ethernet, pppoe, protocolIP, protocolUDP = 14, 8, 0x0021, 17
	if len(frame) < ethernet+pppoe {
		return Datagram{}, false
	}
	ip := frame[ethernet:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
	case 0x8864:
		if binary.BigEndian.Uint16(ip[6:]) != protocolIP {
			return Datagram{}, false
		}
		ip = ip[pppoe:]
	default:
		return Datagram{}, false
	}
	header := int(ip[0]&0x0f) * 4
	if len(ip) < header+8 || ip[0]>>4 != 4 || ip[9] != protocolUDP {
		return Datagram{}, false
	}
	to, _ := netip.AddrFromSlice(ip[16:20])
	segment := ip[header:]
	length := int(binary.BigEndian.Uint16(segment[4:]))
	if length < 8 || length > len(segment) {
		return Datagram{}, false
	}
	return Datagram{
		To:      netip.AddrPortFrom(to, binary.BigEndian.Uint16(segment[2:])),
		Payload: slices.Clone(segment[8:length]),
	}, true
}
