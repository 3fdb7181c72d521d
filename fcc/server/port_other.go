//go:build !linux

package server

// A batch holds nothing here.
type batch struct{}

// send sends datagrams one by one. The system's buffer takes them, or loses
// them as the network would.
func (p *port) send(datagrams []datagram) (sent int) {
	for _, d := range datagrams {
		_, _ = p.conn.WriteToUDPAddrPort(d.bytes, d.to)
	}
	return len(datagrams)
}
