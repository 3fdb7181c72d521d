package server

import (
	"bufio"
	"crypto/md5"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/pion/rtcp"

	"zapcast/fanout"
)

func TestSession_digest(t *testing.T) {
	r := newRig(t, Config{User: "viewer", Password: "pa ss:wo@rd%"})
	var peers sync.WaitGroup
	for _, transport := range []gortsplib.Transport{gortsplib.TransportTCP, gortsplib.TransportUDP} {
		peers.Go(func() {
			url := strings.Replace(r.url(), "://", "://viewer:pa%20ss%3Awo%40rd%25@", 1)
			play(t, url, transport).take(t, 100)
		})
	}
	peers.Wait()

	c := r.dial()
	b := bufio.NewReader(c)
	c.say(ask("DESCRIBE", r.url(), 1))
	_, nonce, _ := strings.Cut(c.read(b), `nonce="`)
	nonce, _, _ = strings.Cut(nonce, `"`)
	sum := func(s string) string { return fmt.Sprintf("%x", md5.Sum([]byte(s))) }
	for uri, want := range map[string]string{r.url(): "200", "/rtp/" + group: "200", "/rtp/239.1.1.2:5000": "401"} { // some sign the path alone
		response := sum(sum("viewer:zapcast:pa ss:wo@rd%") + ":" + nonce + ":" + sum("DESCRIBE:"+uri))
		c.say(ask("DESCRIBE", r.url(), 1, `Authorization: Digest username="viewer", realm="zapcast", nonce="`+nonce+`", uri="`+uri+`", response="`+response+`"`))
		if answer := c.read(b); !strings.HasPrefix(answer, "RTSP/1.0 "+want) {
			t.Errorf("signed %s: got %q, want %s", uri, answer, want)
		}
	}
	c = r.dial()
	b = bufio.NewReader(c)
	for i := range maxFailures {
		c.say(ask("DESCRIBE", r.url(), i, `Authorization: Digest username="viewer", realm="zapcast", nonce="0", uri="`+r.url()+`", response="0"`))
		if answer := c.read(b); !strings.HasPrefix(answer, "RTSP/1.0 401 ") || !strings.Contains(answer, "WWW-Authenticate: Digest realm=") {
			t.Errorf("wrong password: %q", answer)
		}
	}
	if _, err := b.ReadByte(); err != io.EOF {
		t.Errorf("after %d wrong passwords: got %v, want the end", maxFailures, err)
	}
}

// What a client says while he is sent a stream is answered between two frames,
// however it is split; what he says behind PLAY is not lost.
func TestSession_requestsWhilePlaying(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	b := bufio.NewReader(c)
	c.say(ask("SETUP", r.url(), 1, "Transport: RTP/AVP/TCP;unicast;interleaved=6-7"))
	session := sessionOf(c.read(b))
	c.say(ask("PLAY", r.url(), 2, session) + ask("GET_PARAMETER", r.url(), 3, session))
	for _, cseq := range []string{"2", "3"} {
		if answer := c.read(b); !strings.Contains(answer, "CSeq: "+cseq+"\r\n") {
			t.Errorf("want an answer to %s, got %q", cseq, answer)
		}
	}
	for i := range 50 {
		request := "$\x07\x00\x08\x80\xc9\x00\x01abcd" + ask("GET_PARAMETER", r.url(), 10+i, session)
		for j := 0; j < len(request); j += 1 + i {
			c.say(request[j:min(j+1+i, len(request))])
		}
		if answer := c.read(b); !strings.HasPrefix(answer, "RTSP/1.0 200 OK\r\n") {
			t.Errorf("keep-alive %d: %q", i, answer)
		}
	}
	c.say(ask("TEARDOWN", r.url(), 99, session))
	if answer := c.read(b); !strings.Contains(answer, "CSeq: 99\r\n") {
		t.Errorf("TEARDOWN: %q", answer)
	}
	if _, err := b.ReadByte(); err != io.EOF {
		t.Errorf("after TEARDOWN: got %v, want the end", err)
	}
}

func TestSession_channelsThatDoNotStart(t *testing.T) {
	r := newQuietRig(t, Config{}, fanout.Config{Silence: 100 * time.Millisecond})
	for _, transport := range []string{"RTP/AVP/TCP", "RTP/AVP;unicast;client_port=5000-5001"} {
		c := r.dial()
		b := bufio.NewReader(c)
		c.say(ask("SETUP", r.url(), 1, "Transport: "+transport))
		session := sessionOf(c.read(b))
		for i := range 2 { // the session is still there
			c.say(ask("PLAY", r.url(), 2+i, session))
			if answer := c.read(b); !strings.HasPrefix(answer, "RTSP/1.0 503 ") || !strings.Contains(answer, "no stream from") {
				t.Errorf("%s: PLAY: %q", transport, answer)
			}
		}
	}
	if n := len(r.engine.Status().Viewers); n != 0 {
		t.Errorf("viewers: got %d, want none", n)
	}
}

// A channel that ends ends its clients, with BYE to those with datagrams.
func TestSession_endOfTheChannel(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	states["playing"](r, c)
	packets, reports := listenPair(t)
	d := r.dial()
	r.setUpDatagrams(d, packets.LocalAddr().(*net.UDPAddr).Port)
	go r.engine.Close()
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("interleaved: got %v, want a clean end", err)
	}
	if _, err := io.Copy(io.Discard, d); err != nil {
		t.Errorf("datagrams: got %v, want a clean end", err)
	}
	b := make([]byte, 1500)
	for {
		n, err := reports.Read(b)
		if err != nil {
			t.Fatalf("no BYE: %v", err)
		}
		if list, err := rtcp.Unmarshal(b[:n]); err == nil {
			if _, ok := list[len(list)-1].(*rtcp.Goodbye); ok {
				break
			}
		}
	}
}

// listenPair opens an even port and the next.
func listenPair(t *testing.T) (packets, reports *net.UDPConn) {
	t.Helper()
	for range 100 {
		a, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		port := a.LocalAddr().(*net.UDPAddr).Port
		if port%2 == 0 {
			if b, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port + 1}); err == nil {
				for _, c := range []*net.UDPConn{a, b} {
					c.SetDeadline(time.Now().Add(20 * time.Second))
					t.Cleanup(func() { c.Close() })
				}
				return a, b
			}
		}
		a.Close()
	}
	t.Fatal("no pair of ports")
	return nil, nil
}

func TestSession_limits(t *testing.T) {
	seats := make(chan struct{}, 1)
	r := newRig(t, Config{MaxPendingPerAddress: 3, HeaderTimeout: 300 * time.Millisecond, Seat: func(netip.Addr, string) (func(), bool) {
		select {
		case seats <- struct{}{}:
			return func() { <-seats }, true
		default:
			return nil, false
		}
	}})
	first := r.dial()
	states["playing"](r, first)
	c := r.dial()
	b := bufio.NewReader(c)
	c.say(ask("SETUP", r.url(), 1, "Transport: RTP/AVP/TCP"))
	session := sessionOf(c.read(b))
	c.say(ask("PLAY", r.url(), 2, session))
	if answer := c.read(b); !strings.HasPrefix(answer, "RTSP/1.0 453 ") {
		t.Errorf("one viewer too many: %q", answer)
	}
	first.Close()
	eventually(t, "the place is free", func() bool { return len(seats) == 0 })
	c.say(ask("PLAY", r.url(), 3, session))
	if answer := c.read(b); !strings.HasPrefix(answer, "RTSP/1.0 200 ") {
		t.Errorf("after the place is free: %q", answer)
	}

	var silent []talker // connections that say nothing: too many, and too long
	for range 5 {
		silent = append(silent, r.dial())
	}
	begun := time.Now()
	for _, s := range silent {
		if _, err := io.Copy(io.Discard, s); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Error(err)
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("silent connections were closed after %v", took)
	}
}

// Whoever is heard stays: reports of the right client count, and only those.
func TestReceiver_silence(t *testing.T) {
	p, err := openPorts(0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	client, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := &receiver{ports: p, to: client.LocalAddr().(*net.UDPAddr).AddrPort(), timeout: sessionTimeout}
	if !p.add(r) || p.add(&receiver{to: r.to}) {
		t.Error("want one session on a port, not two")
	}
	now := time.Now()
	if !r.silent(now) {
		t.Error("nothing was heard, and that is not noticed")
	}
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.port() + 1}
	for _, junk := range []string{"", "hello, world", "\x80\x21\x00\x01\x00\x00\x00\x00"} {
		client.WriteTo([]byte(junk), to)
	}
	if stranger, err := net.DialUDP("udp4", nil, to); err == nil {
		stranger.Write([]byte("\x80\xc9\x00\x01abcd"))
		stranger.Close()
	}
	time.Sleep(20 * time.Millisecond)
	if r.heard.Load() != 0 {
		t.Error("junk, or another client's report, counts as a word of this one")
	}
	client.WriteTo([]byte("\x80\xc9\x00\x01abcd"), to)
	eventually(t, "the report is heard", func() bool { return r.heard.Load() != 0 })
	if r.silent(now.Add(sessionTimeout-2*time.Second)) || !r.silent(now.Add(sessionTimeout+2*time.Second)) {
		t.Error("want silence after 60 s, and not before")
	}
}
