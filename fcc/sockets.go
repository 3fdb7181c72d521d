package fcc

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"

	"zapcast/ingest"
)

// pairTries bounds the search for two ports that follow each other where any
// will do.
const pairTries = 50

// turn is where the next search of a port range begins, so that what is still
// on its way to an old burst's port does not meet a new one.
var turn atomic.Uint32

// sockets are what a burst comes to: media, and with twin a signalling socket on
// the port above.
type sockets struct{ media, signal ingest.Unicast }

func openSockets(cfg Config, twin bool) (s sockets, err error) {
	first, last := int(cfg.FirstPort), int(cfg.LastPort)
	if first == 0 {
		for range pairTries {
			if s, err = openAt(cfg, 0, twin); err == nil {
				return s, nil
			}
		}
		return s, err
	}
	step := 1
	if twin {
		step = 2
	}
	n := (last - first + 1) / step
	for i := range n {
		port := first + (int(turn.Add(1))+i)%n*step
		if s, err = openAt(cfg, uint16(port), twin); err == nil {
			return s, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("the range has no two ports")
	}
	return s, fmt.Errorf("fcc: no free port from %d to %d: %w", first, last, err)
}

func openAt(cfg Config, port uint16, twin bool) (s sockets, err error) {
	at := ingest.UnicastConfig{Port: port, Interface: cfg.Interface, Plain: cfg.Plain}
	if s.media, err = ingest.OpenUnicast(at); err != nil || !twin {
		return s, err
	}
	at.Port = s.media.Port() + 1
	if at.Port == 0 {
		at.Port = 1 // taken, or above what a program may use: the next try
	}
	if s.signal, err = ingest.OpenUnicast(at); err != nil || s.signal.Port() != s.media.Port()+1 {
		s.close()
		return sockets{}, fmt.Errorf("port %d: %w", at.Port, err)
	}
	return s, nil
}

func (s *sockets) close() {
	for _, u := range []ingest.Unicast{s.media, s.signal} {
		if u != nil {
			_ = u.Close()
		}
	}
	s.media, s.signal = nil, nil
}

func (s *sockets) send(a action) error {
	from := s.media
	if a.signal && s.signal != nil {
		from = s.signal
	}
	var err error
	for range a.copies {
		if e := from.Write(a.bytes, a.to); e != nil {
			err = e
		}
	}
	return err
}

// localAddr is the address from which the system reaches a server.
func localAddr(server netip.AddrPort) (netip.Addr, error) {
	conn, err := net.Dial("udp4", server.String()) // sends nothing
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}
