package fcc

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zapcast/fcc/wire"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

// A station is a channel that is on the air in memory, and a scripted FCC server
// for it on a real socket.
type station struct {
	t        *testing.T
	receiver *ingesttest.Receiver
	spec     ingest.FlowSpec
	rate     int         // payloads a second
	every    uint32      // payloads from one random-access point to the next
	base     uint16      // sequence number of payload 0
	began    time.Time   // of the air
	silent   atomic.Bool // the group sends nothing

	// What the server does.
	speaks    string        // its dialect; empty: it is dead
	delay     time.Duration // before it answers
	refuse    bool
	nothing   bool    // it grants and sends nothing
	most      int     // payloads after which it stops; 0: none
	factor    float64 // of the rate; 0: 3
	deaf      bool    // to terminations
	syncAfter time.Duration
	drop      func(n uint32) bool // payloads of the burst that are lost
	group     func(n uint32) bool // payloads of the group that are lost

	conn *net.UDPConn
	mu   sync.Mutex
	said []wire.Message // by clients, copies left out
	last time.Time      // of the burst
}

func newStation(t *testing.T, s *station) *station {
	t.Helper()
	s.t, s.receiver = t, ingesttest.NewReceiver()
	s.spec = ingest.FlowSpec{Group: netip.MustParseAddrPort("239.1.1.1:5000")}
	if s.rate == 0 {
		s.rate = 950
	}
	if s.every == 0 {
		s.every = uint32(s.rate) * 2
	}
	var err error
	if s.conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop); s.conn.Close(); wg.Wait() })
	if s.began.IsZero() { // 1.2 s have gone by when the test begins
		s.began = time.Now().Add(-1200 * time.Millisecond)
	}
	wg.Go(func() { s.serve(stop, &wg) })
	wg.Go(func() { s.send(stop) })
	return s
}

func (s *station) address() netip.AddrPort {
	return s.conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// now is the payload that is on the air.
func (s *station) now() uint32 {
	return uint32(time.Since(s.began).Seconds() * float64(s.rate))
}

func (s *station) datagram(n uint32, ssrc uint32) []byte {
	return ingesttest.Datagram(s.base+uint16(n), ssrc, ingesttest.Video(n, s.every))
}

func (s *station) send(stop chan struct{}) {
	for n := s.now(); ; {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
		for ; n < s.now(); n++ {
			if !s.silent.Load() && (s.group == nil || !s.group(n)) {
				s.receiver.Send(s.spec.String(), s.datagram(n, 7))
			}
		}
	}
}

// heard returns what clients have said.
func (s *station) heard() []wire.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

func (s *station) serve(stop chan struct{}, wg *sync.WaitGroup) {
	buf := make([]byte, 2048)
	var end *atomic.Int64 // of the burst: payload, -1 none
	copies := map[string]time.Time{}
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if at, again := copies[string(buf[:n])]; again && time.Since(at) < 20*time.Millisecond {
			continue
		}
		copies[string(buf[:n])] = time.Now()
		for p := range wire.Packets(slices.Clone(buf[:n])) {
			m, err := wire.ParseClient(p)
			if err != nil {
				continue
			}
			s.mu.Lock()
			s.said = append(s.said, m)
			s.mu.Unlock()
			stopAt := func(forced bool, first uint16) {
				switch {
				case s.deaf || end == nil:
				case forced:
					end.Store(0)
				default:
					now := s.now()
					end.Store(int64(now) - int64(int16(s.base+uint16(now)-first)))
				}
			}
			media := netip.AddrPort{}
			switch m := m.(type) {
			case *wire.TelecomRequest:
				if s.speaks == Telecom {
					media = netip.AddrPortFrom(from.Addr(), m.MediaPort)
				}
			case *wire.HuaweiRequest:
				if s.speaks == Huawei && !m.TLV || s.speaks == HuaweiTLV && m.TLV {
					media = netip.AddrPortFrom(from.Addr(), m.SignallingPort-1)
				}
			case *wire.RAMSRequest:
				if s.speaks == RAMS {
					media = from
				}
			case *wire.TelecomTermination:
				stopAt(m.Forced, m.First)
			case *wire.HuaweiTermination:
				stopAt(m.Forced, m.First)
			case *wire.RAMSTermination:
				if m.First == nil {
					stopAt(true, 0)
				} else {
					stopAt(false, uint16(*m.First))
				}
			}
			if !media.IsValid() {
				continue
			}
			limit := new(atomic.Int64)
			limit.Store(-1)
			end = limit
			wg.Go(func() { s.burst(stop, from, media, limit) })
		}
	}
}

// answers are what the server says in its dialect: to the request, and as sync.
func (s *station) answers() (answer, sync wire.Message) {
	group := s.spec.Group.Addr()
	switch s.speaks {
	case Telecom:
		m := &wire.TelecomResponse{Group: group, Action: wire.TelecomBurst, Rate: 20_000_000}
		if s.refuse {
			m.Result = 2
		}
		return m, &wire.TelecomSync{Group: group}
	case Huawei, HuaweiTLV:
		tlv := s.speaks == HuaweiTLV
		m := &wire.HuaweiResponse{TLV: tlv, Group: group, Result: wire.HuaweiOK, Type: wire.HuaweiBurst}
		if tlv {
			m.Result = wire.HuaweiTLVOK
		}
		if s.refuse {
			m.Result = wire.HuaweiTLVBad
		}
		return m, &wire.HuaweiSync{TLV: tlv, Group: group}
	}
	m := &wire.RAMSInformation{Server: 1, Media: 7, Code: wire.RAMSAccepted, Join: new(time.Duration(0))}
	if s.refuse {
		m.Code = wire.RAMSDenied
	}
	return m, &wire.RAMSInformation{Server: 1, Media: 7, MSN: 1, Code: wire.RAMSCompleted}
}

func (s *station) burst(stop chan struct{}, from, media netip.AddrPort, end *atomic.Int64) {
	select {
	case <-stop:
		return
	case <-time.After(s.delay):
	}
	answer, sync := s.answers()
	for range 2 {
		s.conn.WriteToUDPAddrPort(answer.Append(nil), from)
	}
	if s.refuse || s.nothing {
		return
	}
	factor := s.factor
	if factor == 0 {
		factor = 3
	}
	began := time.Now()
	first := s.now() / s.every * s.every
	synced := false
	for n := first; ; {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
		if s.syncAfter > 0 && !synced && time.Since(began) >= s.syncAfter {
			synced = true
			for range 2 {
				s.conn.WriteToUDPAddrPort(sync.Append(nil), from)
			}
		}
		due := first + uint32(time.Since(began).Seconds()*float64(s.rate)*factor)
		for ; n <= min(due, s.now()); n++ {
			if s.most > 0 && int(n-first) >= s.most {
				return
			}
			if limit := end.Load(); limit >= 0 && int64(n) >= limit {
				return
			}
			if s.drop != nil && s.drop(n) {
				continue
			}
			b := s.datagram(n, 9)
			if s.speaks == RAMS {
				b = ingesttest.Datagram(uint16(n-first), 11, append([]byte{b[2], b[3]}, ingesttest.Video(n, s.every)...))
				b[1] = 99
			}
			s.conn.WriteToUDPAddrPort(b, media)
			s.mu.Lock()
			s.last = time.Now()
			s.mu.Unlock()
		}
	}
}
