package rtsp

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
)

const (
	// The range that operators' firewalls know set-top boxes to use.
	firstPort, lastPort = 10000, 19999
	// portTries bounds the search for a free pair.
	portTries = 200

	udpReadBuffer = 1 << 20
)

// A portPair is the sockets for media and its control: an even port and the next.
type portPair struct {
	rtp, rtcp *net.UDPConn
}

var errNoPorts = errors.New("rtsp: no free pair of UDP ports from 10000 to 19999")

// openPorts binds a pair to addr, the address of the control connection, so that
// media comes in by the same interface.
func openPorts(addr netip.Addr) (*portPair, error) {
	const pairs = (lastPort - firstPort + 1) / 2
	at := rand.IntN(pairs)
	for i := range portTries {
		port := uint16(firstPort + (at+i)%pairs*2)
		rtp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, port)))
		if err != nil {
			continue
		}
		rtcp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, port+1)))
		if err != nil {
			_ = rtp.Close()
			continue
		}
		_ = rtp.SetReadBuffer(udpReadBuffer) // as much as there is
		return &portPair{rtp, rtcp}, nil
	}
	return nil, errNoPorts
}

func (p *portPair) numbers() [2]uint16 {
	port := p.rtp.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	return [2]uint16{port, port + 1}
}

func (p *portPair) close() {
	_ = p.rtp.Close()
	_ = p.rtcp.Close()
}

// The punch packet of ZTE servers, which tells them where a set-top box behind
// NAT is to be reached:
//
//	 0  "ZXV10STB"
//	 8  7F FF FF FF
//	12  client's IPv4 address
//	16  its RTP port
//	18  its RTSP port, or the mapped UDP port where STUN found one
//	20  zero, to 84 bytes
const punchBytes = 84

func vendorPunch(client netip.Addr, rtpPort, controlPort uint16) []byte {
	b := make([]byte, punchBytes)
	copy(b, "ZXV10STB\x7f\xff\xff\xff")
	ip := client.As4()
	copy(b[12:], ip[:])
	binary.BigEndian.PutUint16(b[16:], rtpPort)
	binary.BigEndian.PutUint16(b[18:], controlPort)
	return b
}

var (
	// emptyRTP opens the way for media through a NAT or firewall, where no
	// vendor's packet is wanted.
	emptyRTP = append([]byte{0x80}, make([]byte, 11)...)
	// emptyReport is a receiver report (RFC 3550 §6.4.2) without a report.
	emptyReport = []byte{0x80, 0xC9, 0x00, 0x01, 0, 0, 0, 0}
)

// punchCopies is how often a punch goes out at a time: nobody repeats a lost one.
const punchCopies = 3

// A punch is what is sent to the server from both ports.
type punch struct {
	rtp, rtcp []byte // nil: nothing
	to        netip.Addr
	ports     [2]uint16
}

// punch says what is to be sent, now that the server has chosen UDP.
func (m *machine) punch() (p punch) {
	if m.transport.way != OverUDP || m.transport.server[0] == 0 {
		return p
	}
	if p.to = m.transport.mediaSource(m.server.Addr()); !m.cfg.allows(p.to) {
		p.to = m.server.Addr() // a server is not to say whom we knock at
	}
	p.ports = m.transport.server
	if addr, ok := m.clientAddr(); ok {
		rtp := m.ports[0]
		if m.mapped.IsValid() {
			rtp = m.mapped.Port()
		}
		p.rtp, p.rtcp = vendorPunch(addr.Addr(), rtp, addr.Port()), emptyReport
		return p
	}
	p.rtcp = emptyReport
	if m.transport.source != "" || m.local.Addr().Is4() {
		p.rtp = emptyRTP
	}
	return p
}

// send sends p: rtp and rtcp send from the one port and the other.
func (p punch) send(rtp, rtcp func(b []byte, to netip.AddrPort)) {
	for range punchCopies {
		if p.rtp != nil {
			rtp(p.rtp, netip.AddrPortFrom(p.to, p.ports[0]))
		}
		if p.rtcp != nil {
			rtcp(p.rtcp, netip.AddrPortFrom(p.to, p.ports[1]))
		}
	}
}

func (p *portPair) sendMedia(b []byte, to netip.AddrPort) { _, _ = p.rtp.WriteToUDPAddrPort(b, to) }

func (p *portPair) sendReport(b []byte, to netip.AddrPort) { _, _ = p.rtcp.WriteToUDPAddrPort(b, to) }
