package rtsp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

// A tap is a link in memory: it brings the same frames over and over, numbered on.
type tap struct {
	frames []byte
	seq    uint16
	left   int // reads until there is a pause
}

func (l *tap) read(p []byte) (int, error) {
	if l.left == 0 {
		return 0, errAgain
	}
	l.left--
	n := copy(p, l.frames)
	for at := 0; at < n; at += 4 + 12 + 1316 {
		binary.BigEndian.PutUint16(p[at+6:], l.seq)
		l.seq++
	}
	return n, nil
}

func (l *tap) write(p []byte) (int, error) { return len(p), nil }
func (l *tap) conn() (net.Conn, error)     { return nil, io.EOF }
func (l *tap) close() error                { return nil }

type countingSink struct{ bytes int64 }

func (s *countingSink) Append(ts [][]byte) {
	for _, b := range ts {
		s.bytes += int64(len(b))
	}
}

// steady is a source that plays, without a server.
func steady(tb testing.TB, frames int) (*Source, *tap) {
	tb.Helper()
	cfg := Config{}.withDefaults()
	m := newMachine(&cfg, URL{Host: "h", Port: 554}, "", false, time.Now())
	m.actions = nil
	m.state, m.transport = playing, transport{way: OverTCP, channels: [2]uint8{0, 1}}
	m.keepAlive = time.Now().Add(time.Hour)
	wire, _ := rtpFrames(0, frames)
	l := &tap{frames: wire}
	s := &Source{session: &session{cfg: &cfg, m: m}, started: time.Now()}
	s.tcp = &tcpFlow{link: l, m: m, scratch: new(scratch)}
	s.media = ingest.NewUnicast(s.tcp)
	return s, l
}

func TestSource_steadyStateAllocatesNothing(t *testing.T) {
	s, l := steady(t, 40)
	sink := &countingSink{}
	now := time.Now()
	turn := func() {
		l.left = 1
		now = now.Add(10 * time.Millisecond)
		for s.Drain(now, 256, sink) {
		}
	}
	for range 20 {
		turn()
	}
	if n := testing.AllocsPerRun(200, turn); n != 0 {
		t.Errorf("a turn of 40 packets: got %v allocations, want 0", n)
	}
	if st := s.Status(); st.Lost != 0 || sink.bytes != st.Bytes || st.Bytes < 200*40*1316 {
		t.Errorf("got %d bytes handed on, status %d bytes, %d lost", sink.bytes, st.Bytes, st.Lost)
	}
}

func BenchmarkSource_Drain(b *testing.B) {
	s, l := steady(b, 40)
	sink := &countingSink{}
	now := time.Now()
	b.ReportAllocs()
	b.SetBytes(40 * 1316)
	for b.Loop() {
		l.left = 1
		for s.Drain(now, 256, sink) {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/40, "ns/packet")
}

// A turn is bounded although the server could fill it for ever.
func TestSource_turnIsBounded(t *testing.T) {
	s, l := steady(t, 190)
	l.left = 1 << 30
	sink := &countingSink{}
	if more := s.Drain(time.Now(), 50, sink); !more || sink.bytes > 50*1316 {
		t.Errorf("got more %t, %d bytes, want more and at most %d", more, sink.bytes, 50*1316)
	}
}

// A tide is a server that asks without end, as fast as it is read.
type tide struct{ tap }

func (l *tide) read(p []byte) (int, error) {
	l.left++
	one := "OPTIONS rtsp://h RTSP/1.0\r\nCSeq: 1\r\n\r\n"
	return copy(p, strings.Repeat(one, len(p)/len(one)+1)), nil
}

// silentPort is a UDP port that nobody sends to.
type silentPort struct{}

func (silentPort) read([]byte) (int, error)    { return 0, errAgain }
func (silentPort) send([]byte, netip.AddrPort) {}
func (silentPort) close() error                { return nil }

// A server that asks without end has its turn as others do, wherever media come.
func TestSource_floodOfRequests(t *testing.T) {
	for _, way := range []string{OverTCP, OverUDP} {
		s, _ := steady(t, 40)
		l := &tide{}
		s.tcp.link = l
		if s.session.m.transport.way = way; way == OverUDP {
			s.udp = &udpFlow{port: silentPort{}, m: s.session.m, scratch: s.tcp.scratch}
			s.media = ingest.NewUnicast(s.udp)
		}
		done := make(chan bool)
		go func() { done <- s.Drain(time.Now(), 256, &countingSink{}) }()
		select {
		case more := <-done:
			if !more || l.left > 3 {
				t.Errorf("%s: got more %t after %d reads, want more after a few", way, more, l.left)
			}
		case <-time.After(patience):
			t.Fatalf("%s: the turn does not end", way)
		}
	}
}

// With nothing allowed, nothing is read, but the session is kept alive.
func TestSource_keptAliveWhileItWaits(t *testing.T) {
	s, l := steady(t, 40)
	l.left = 1
	sink := &countingSink{}
	s.session.m.keepAlive = time.Now()
	if more := s.Drain(time.Now(), 0, sink); more || sink.bytes > 0 || l.left != 1 {
		t.Errorf("got more %t, %d bytes, %d reads left, want nothing to be read", more, sink.bytes, l.left)
	}
	if s.session.m.waits != "GET_PARAMETER" {
		t.Errorf("got %q under way, want GET_PARAMETER", s.session.m.waits)
	}
}

// sessions counts what a process holds.
func holdings(t *testing.T) (descriptors, goroutines int, heap uint64) {
	t.Helper()
	runtime.GC()
	if all, err := os.ReadDir("/proc/self/fd"); err == nil {
		descriptors = len(all)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return descriptors, runtime.NumGoroutine(), m.HeapAlloc
}

// Sessions that are opened and dropped in every state of the handshake leave
// nothing behind. ZAPCAST_TEST_SESSIONS says how many; 10000 take some 15 s.
func TestSessions_leaveNothing(t *testing.T) {
	count := 200
	if n, err := strconv.Atoi(os.Getenv("ZAPCAST_TEST_SESSIONS")); err == nil {
		count = n
	}
	frames, _ := rtpFrames(0, 4)
	states := []string{"", "OPTIONS", "DESCRIBE", "SETUP", "PLAY", "playing", "TEARDOWN"}
	var turn atomic.Int64
	server := newStubborn(t, func(p *peer) {
		at := states[int(turn.Add(1))%len(states)]
		if at == "" {
			return
		}
		p.serve(func(r request) bool {
			if r.method != at {
				return false
			}
			if turn.Load()%2 == 0 { // some say half a word
				p.send("RTSP/1.0 200 OK\r\nCSeq")
			}
			_ = p.Close()
			return true
		}, func() {
			_, _ = p.Write(frames)
			if at == "playing" {
				_ = p.Close()
			}
		})
	})
	client := NewClient(local(Config{Timeout: 5 * time.Second}))
	defer client.Close()
	loops := make(chan *ingesttest.Receiver, 8) // each drives one session at a time
	for range cap(loops) {
		loops <- ingesttest.NewReceiver()
	}
	open := func(n int) {
		var wg sync.WaitGroup
		for range n {
			receiver := <-loops
			wg.Go(func() {
				defer func() { loops <- receiver }()
				source, err := client.Open(receiver, Request{URL: server.url("/x")})
				if err != nil {
					return
				}
				sink := &countingSink{}
				for range 100 {
					if source.Drain(time.Now(), 256, sink); sink.bytes > 0 || source.Ended() != nil {
						break
					}
					time.Sleep(time.Millisecond)
				}
				_ = source.Close()
			})
		}
		wg.Wait()
		client.ending.Wait()
	}
	settled := func() (int, int, uint64) {
		server.mu.Lock()
		server.conns, server.log = nil, nil
		server.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		return holdings(t)
	}
	open(70)
	fds, goroutines, heap := settled()
	for left := count; left > 0; left -= 500 {
		open(min(left, 500))
		server.mu.Lock()
		server.conns, server.log = nil, nil
		server.mu.Unlock()
	}
	eventually(t, func() bool {
		gotFDs, gotGoroutines, gotHeap := settled()
		return gotFDs <= fds && gotGoroutines <= goroutines && gotHeap <= heap+1<<20
	}, "descriptors, goroutines and memory as before")
	gotFDs, gotGoroutines, gotHeap := settled()
	t.Logf("%d sessions: %d -> %d descriptors, %d -> %d goroutines, heap %d -> %d KiB", count, fds, gotFDs, goroutines, gotGoroutines, heap>>10, gotHeap>>10)
}

// 500 sessions over UDP, one after the other: the ports are free again, and a
// pair is an even port and the next.
func TestPorts_areFreeAgain(t *testing.T) {
	server := newStubborn(t, func(p *peer) {
		p.serve(func(r request) bool {
			if r.method == "SETUP" {
				p.answer(r, "200 OK", "Session: 8", "Transport: RTP/AVP;unicast;server_port=9-10")
			}
			return r.method == "SETUP"
		}, nil)
	})
	client := NewClient(local(Config{Transports: []string{OverUDP}}))
	defer client.Close()
	receiver := ingesttest.NewReceiver()
	for i := range 500 {
		source, err := client.Open(receiver, Request{URL: server.url("/")})
		if err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		n := source.session.m.ports
		if n[0]%2 != 0 || n[1] != n[0]+1 || n[0] < firstPort || n[1] > lastPort {
			t.Fatalf("session %d: got ports %v", i, n)
		}
		_ = source.Close()
		for _, port := range n {
			c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(source.session.m.local.Addr(), port)))
			if err != nil {
				t.Fatalf("session %d: port %d afterwards: %v", i, port, err)
			}
			_ = c.Close()
		}
	}
}

// udpServer answers SETUP with UDP and sends ts to the client's port.
func udpServer(t *testing.T, got func(r request), datagrams [][]byte) *stubborn {
	t.Helper()
	rtp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rtp.Close() })
	punched := make(chan netip.AddrPort, 16)
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := rtp.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			if n == punchBytes && strings.HasPrefix(string(buf[:n]), "ZXV10STB") {
				select {
				case punched <- from:
				default:
				}
				_, _ = rtp.WriteToUDPAddrPort(buf[:n], from) // some servers echo it
			}
		}
	}()
	port := rtp.LocalAddr().(*net.UDPAddr).Port
	return newStubborn(t, func(p *peer) {
		p.serve(func(r request) bool {
			got(r)
			if r.method == "SETUP" {
				p.answer(r, "200 OK", "Session: 8", "Transport: MP2T/RTP/UDP;unicast;source=\"127.0.0.1\";server_port="+strconv.Itoa(port))
			}
			return r.method == "SETUP"
		}, func() {
			to := <-punched // where the punch came from: what a NAT would show
			for _, d := range datagrams {
				_, _ = rtp.WriteToUDPAddrPort(d, to)
			}
		})
	})
}

// Datagrams may hold bare TS, whatever was announced.
func TestSource_udpBareTS(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		cfg.Transports = []string{OverUDP}
		want := ingesttest.TS(7, 70)
		var datagrams [][]byte
		for part := range slices.Chunk(want, 7*188) {
			datagrams = append(datagrams, part)
		}
		server := udpServer(t, func(request) {}, datagrams)
		source, sink := watch(t, cfg, server.url("/"), len(want))
		if st := source.Status(); string(sink.Bytes) != string(want) || st.Payload != "mp2t-direct" {
			t.Errorf("got %d bytes, payload %q, want %d that are the same, and mp2t-direct", len(sink.Bytes), st.Payload, len(want))
		}
	})
}

// The answer to a keep-alive may have a body, between two frames.
func TestSource_keepAliveAnsweredWithABody(t *testing.T) {
	s, _ := steady(t, 40)
	one, ts := rtpFrames(0, 3)
	two, more := rtpFrames(3, 3)
	s.session.m.keepAlive = time.Now()
	s.Drain(time.Now(), 0, &countingSink{})
	if s.session.m.waits != "GET_PARAMETER" {
		t.Fatalf("got %q under way, want GET_PARAMETER", s.session.m.waits)
	}
	body := string(frame(0, []byte("no frame"))) + "RTSP/1.0 454 x\r\n\r\n"
	answer := fmt.Sprintf("RTSP/1.0 200 OK\r\nCSeq: %d\r\nContent-Length: %d\r\n\r\n%s", s.session.m.waitCSeq, len(body), body)
	s.tcp.carry = []byte(string(one) + answer + string(two))
	sink := &ingesttest.Sink{T: t}
	drain(t, s, sink, len(ts)+len(more))
	if want := string(ts) + string(more); string(sink.Bytes) != want || s.session.m.waits != "" {
		t.Errorf("got %d bytes, %q under way, want %d that are the same, and nothing", len(sink.Bytes), s.session.m.waits, len(want))
	}
}

func TestSource_udpWithPunchAndSTUN(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		stun := newSTUNServer(t, netip.MustParseAddrPort("203.0.113.5:40404"))
		cfg.STUN = stun
		cfg.Transports = []string{OverUDP}
		var want []byte
		var datagrams [][]byte
		for i := range 40 {
			ts := ingesttest.TS(uint32(i), 7)
			want = append(want, ts...)
			datagrams = append(datagrams, ingesttest.Datagram(uint16(i), 3, ts))
		}
		datagrams[4], datagrams[5] = datagrams[5], datagrams[4] // the window puts them in order
		server := udpServer(t, func(request) {}, datagrams)
		source, sink := watch(t, cfg, server.url("/"), len(want))
		if string(sink.Bytes) != string(want) {
			t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(want))
		}
		r, _ := server.find("SETUP")
		if nat := r.header.get("x-NAT"); nat != "203.0.113.5:40404" {
			t.Errorf("x-NAT: got %q, want what STUN said", nat)
		}
		if got := r.header.get("Transport"); !strings.HasPrefix(got, "MP2T/RTP/UDP;unicast;client_address=203.0.113.5;client_port=40404-40405;mode=PLAY,") {
			t.Errorf("Transport: got %q", got)
		}
		if st := source.Status(); st.Reordered != 1 || st.Foreign == 0 {
			t.Errorf("status: got %d reordered, %d foreign, want 1 and the echo of the punch", st.Reordered, st.Foreign)
		}
	})
}

func TestSource_stunServerIsSilent(t *testing.T) {
	if testing.Short() {
		t.Skip("takes three seconds")
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	datagrams := [][]byte{ingesttest.Datagram(1, 3, ingesttest.TS(1, 7)), ingesttest.Datagram(2, 3, ingesttest.TS(2, 7))}
	server := udpServer(t, func(request) {}, datagrams)
	_, _ = watch(t, Config{STUN: conn.LocalAddr().String(), Transports: []string{OverUDP}}, server.url("/"), 2*1316)
	if r, _ := server.find("DESCRIBE"); !strings.HasPrefix(r.header.get("x-NAT"), "127.0.0.1:") {
		t.Errorf("x-NAT: got %q, want the local address", r.header.get("x-NAT"))
	}
}

// newSTUNServer answers every binding request with the same address.
func newSTUNServer(t *testing.T, mapped netip.AddrPort) (address string) {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			if n != stunHeader {
				continue
			}
			b := append([]byte{1, 1, 0, 12}, buf[4:stunHeader]...)
			ip := mapped.Addr().As4()
			b = append(b, 0, 0x20, 0, 8, 0, 1)
			b = binary.BigEndian.AppendUint16(b, mapped.Port()^0x2112)
			b = binary.BigEndian.AppendUint32(b, binary.BigEndian.Uint32(ip[:])^stunCookie)
			_, _ = conn.WriteToUDPAddrPort([]byte("no answer at all"), from)
			_, _ = conn.WriteToUDPAddrPort(b, from)
		}
	}()
	return conn.LocalAddr().String()
}

// A server that sends to a group: it is joined, with the sender where it must be.
func TestSource_multicast(t *testing.T) {
	for group, spec := range map[string]string{"239.1.1.9": "239.1.1.9:5000", "232.1.1.9": "198.51.100.1@232.1.1.9:5000"} {
		server := newStubborn(t, func(p *peer) {
			p.serve(func(r request) bool {
				if r.method == "SETUP" {
					p.answer(r, "200 OK", "Transport: RTP/AVP;multicast;destination="+group+";port=5000-5001;source=198.51.100.1")
				}
				return r.method == "SETUP"
			}, nil)
		})
		client := NewClient(local(Config{Transports: []string{OverMulticast, OverTCP}}))
		defer client.Close()
		receiver := ingesttest.NewReceiver()
		source, err := client.Open(receiver, Request{URL: server.url("/")})
		if err != nil {
			t.Fatal(err)
		}
		if n := receiver.Send(spec, ingesttest.Datagram(1, 3, ingesttest.TS(1, 7))); n != 1 {
			t.Fatalf("joined %q, want %s", receiver.Joined(), spec)
		}
		sink := &ingesttest.Sink{T: t}
		drain(t, source, sink, 1316)
		if st := source.Status(); !strings.HasPrefix(st.Source, "rtsp://") || source.Waits() {
			t.Errorf("got source %s, waits %t", st.Source, source.Waits())
		}
		_ = source.Close()
		if left := receiver.Joined(); len(left) > 0 {
			t.Errorf("after Close: joined %q", left)
		}
		if r, _ := server.find("SETUP"); !strings.HasPrefix(r.header.get("Transport"), "MP2T/RTP/UDP;multicast,") {
			t.Errorf("got Transport %q", r.header.get("Transport"))
		}
	}
}

func TestSource_tls(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	frames, ts := rtpFrames(0, 300)
	server := newStubborn(t, func(p *peer) { p.serve(nil, func() { _, _ = p.Write(frames) }) })
	front, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	go func() { // what comes in through TLS goes on to the server
		for {
			in, err := front.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server.ln.Addr().String())
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	u, err := ParseURL("rtsps://" + front.Addr().String() + "/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, Config{}, u); err == nil {
		t.Error("a certificate of nobody's: got no error")
	}
	source, sink := watch(t, Config{SkipVerify: true}, u, len(ts))
	if string(sink.Bytes) != string(ts) {
		t.Errorf("got %d bytes that differ, want %d", len(sink.Bytes), len(ts))
	}
	_ = source.Close()
	if all := server.methods(); all[len(all)-1] != "TEARDOWN" {
		t.Errorf("got %q, want TEARDOWN at the end", all)
	}
}
