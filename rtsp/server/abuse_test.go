package server

import (
	"bufio"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v4"

	"zapcast/fanout"
)

// abuses are clients who do what no client should. They read nothing unless it
// is said; what comes of them is that nothing of them is left.
var abuses = map[string]func(r *rig, c talker){
	"half a request": func(r *rig, c talker) { c.shout("SETUP " + r.url() + " RTSP/1.0\r\nCS") },
	"a header of 10000 bytes": func(r *rig, c talker) {
		c.shout(ask("OPTIONS", "*", 1, "X: "+strings.Repeat("x", 10000)))
	},
	"a header without end": func(r *rig, c talker) {
		c.shout("OPTIONS * RTSP/1.0\r\n" + strings.Repeat("x: y\r\n", 100000))
	},
	"a body without end": func(r *rig, c talker) {
		c.shout(ask("SET_PARAMETER", r.url(), 1, "Content-Length: 4096") + strings.Repeat("x", 1<<20))
	},
	"SETUP, 5000 times": func(r *rig, c talker) {
		for i := range 50 {
			c.shout(strings.Repeat(ask("SETUP", r.url(), i, "Transport: RTP/AVP/TCP;interleaved=0-1,RTP/AVP;unicast;client_port=9-10,RTP/AVP;multicast"), 100))
		}
	},
	"SETUP of 500 channels": func(r *rig, c talker) {
		var all strings.Builder
		for i := range 500 {
			all.WriteString(ask("SETUP", "rtsp://h/rtp/239.2.1.1:"+strconv.Itoa(5000+i), i, "Transport: RTP/AVP/TCP"))
		}
		c.shout(all.String())
	},
	"PLAY without SETUP": func(r *rig, c talker) {
		c.shout(strings.Repeat(ask("PLAY", r.url(), 1)+ask("PAUSE", r.url(), 2)+ask("TEARDOWN", r.url(), 3), 100))
	},
	"questions, and no look at the answers": func(r *rig, c talker) {
		for range 1000 {
			c.shout(strings.Repeat(ask("DESCRIBE", r.url(), 1), 20))
		}
	},
	"questions while it plays, and no look at the answers": func(r *rig, c talker) {
		states["playing"](r, c)
		for range 1000 {
			c.shout(strings.Repeat(ask("OPTIONS", "*", 1), 20))
		}
	},
	"frames of 65535 bytes while it plays": func(r *rig, c talker) {
		states["playing"](r, c)
		for range 20 {
			c.shout("$\x01\xff\xff" + strings.Repeat("R", 65535))
		}
	},
	"frames before it plays": func(r *rig, c talker) {
		for range 20 {
			c.shout("$\x01\xff\xff" + strings.Repeat("R", 65535))
		}
	},
	"junk while it plays": func(r *rig, c talker) {
		states["playing"](r, c)
		c.shout("\x00\x01\x02$$$ what is this")
	},
	"noise": func(r *rig, c talker) {
		noise := rand.New(rand.NewPCG(1, uint64(len(r.addr))))
		const alphabet = "$ \r\n:/;=,RTSPOIN*10.\x00\xff"
		b := make([]byte, 4096)
		for i := range b {
			b[i] = alphabet[noise.IntN(len(alphabet))]
		}
		c.shout(string(b))
	},
	"PLAY and PAUSE, 300 times": func(r *rig, c talker) {
		c.shout(ask("SETUP", r.url(), 1, "Transport: RTP/AVP/TCP"))
		b := bufio.NewReader(c)
		session := sessionOf(c.read(b))
		go io.Copy(io.Discard, b)
		for i := range 300 {
			c.shout(ask("PLAY", r.url(), 2*i, session) + ask("PAUSE", r.url(), 2*i+1, session))
		}
	},
	"PLAY behind TEARDOWN": func(r *rig, c talker) {
		c.shout(ask("SETUP", r.url(), 1, "Transport: RTP/AVP/TCP"))
		session := sessionOf(c.read(bufio.NewReader(c)))
		c.shout(ask("TEARDOWN", r.url(), 2, session) + ask("PLAY", r.url(), 3, session) + ask("SETUP", r.url(), 4, "Transport: RTP/AVP/TCP"))
	},
	"another's session": func(r *rig, c talker) {
		other := r.connect()
		defer other.Close()
		other.shout(ask("SETUP", r.url(), 1, "Transport: RTP/AVP/TCP"))
		session := sessionOf(other.read(bufio.NewReader(other)))
		c.shout(ask("PLAY", r.url(), 1, session) + ask("TEARDOWN", r.url(), 2, session))
	},
	"datagrams to the server's own ports": func(r *rig, c talker) {
		p, err := r.openPorts()
		if err != nil {
			r.t.Error(err)
			return
		}
		c.shout(ask("SETUP", r.url(), 1, "Transport: RTP/AVP;unicast;client_port="+pair(p.port(), p.port()+1)))
		session := sessionOf(c.read(bufio.NewReader(c)))
		c.shout(ask("PLAY", r.url(), 2, session))
		time.Sleep(50 * time.Millisecond)
	},
}

// shout says s to a server that may have hung up.
func (c talker) shout(s string) {
	c.SetWriteDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(c, s)
}

// Clients who do what no client should, all at once and for a while, leave
// nothing, and who watches meanwhile misses nothing.
func TestServer_abused(t *testing.T) {
	r := newQuietRig(t, Config{Logger: slog.New(slog.DiscardHandler)}, fanout.Config{StartWait: 2 * time.Second, Silence: time.Second, Linger: time.Hour})
	r.feed(group)
	good := play(t, r.url(), gortsplib.TransportTCP)
	if _, err := r.openPorts(); err != nil {
		t.Fatal(err)
	}
	before := descriptors()
	var clients sync.WaitGroup
	for _, abuse := range abuses {
		clients.Go(func() {
			for i := range 3 {
				c := r.connect()
				abuse(r, c)
				if i > 0 { // the others wait for the server to hang up, or for 2 s
					c.SetReadDeadline(time.Now().Add(2 * time.Second))
					_, _ = io.Copy(io.Discard, c)
				}
				c.Close()
			}
		})
	}
	clients.Wait()
	eventually(t, "everybody gone but one", func() bool { return r.Pending() == 0 && len(r.engine.Status().Viewers) == 1 })
	eventually(t, "descriptors back to where they were", func() bool { return descriptors() <= before })
	r.isOurs(good.take(t, 1500))
}

// A request that comes byte by byte has no more time than another.
func TestSession_byteByByte(t *testing.T) {
	const limit = time.Second
	r := newRig(t, Config{HeaderTimeout: limit})
	for _, state := range []string{"connected", "described", "set up"} {
		c := r.dial()
		states[state](r, c)
		go func() {
			for {
				if _, err := io.WriteString(c, "A"); err != nil {
					return
				}
				time.Sleep(limit / 20) // the method of a request may have some thirty letters
			}
		}()
		begun := time.Now()
		if n, err := io.Copy(io.Discard, c); n > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: got %d bytes, %v, want the end without a word", state, n, err)
		}
		if took := time.Since(begun); took < limit/2 || took > 10*time.Second {
			t.Errorf("%s: closed after %v, want about %v", state, took, limit)
		}
	}
}

// Datagrams go to who asks for them, whatever destination he names.
func TestSession_datagramsGoToNobodyElse(t *testing.T) {
	r := newRig(t, Config{})
	packets, _ := listenPair(t)
	port := packets.LocalAddr().(*net.UDPAddr).Port
	victim, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2), Port: port})
	if err != nil {
		t.Skip("127.0.0.2 is not this machine's: ", err)
	}
	defer victim.Close()
	c := r.dial()
	b := bufio.NewReader(c)
	c.say(ask("SETUP", r.url(), 1, "Transport: RTP/AVP;unicast;destination=127.0.0.2;client_port="+pair(port, port+1)+";source=127.0.0.2"))
	c.say(ask("PLAY", r.url(), 2, sessionOf(c.read(b))))
	for n := range 100 {
		if _, err := packets.Read(make([]byte, 2000)); err != nil {
			t.Fatalf("who asked: after %d datagrams: %v", n, err)
		}
	}
	victim.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := victim.Read(make([]byte, 2000)); err == nil {
		t.Errorf("who did not ask: got %d bytes", n)
	}
}

// A session with datagrams ends when its client is silent, and goes on while he
// sends reports, or requests.
func TestSession_silenceEndsDatagrams(t *testing.T) {
	r := newRig(t, Config{sessionTimeout: 2 * time.Second})
	ports, err := r.openPorts()
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var talking sync.WaitGroup
	every := func(f func()) {
		talking.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
					f()
				}
			}
		})
	}
	for _, kind := range []string{"silent", "reports", "requests"} {
		packets, reports := listenPair(t)
		c := r.dial()
		session, b := r.setUpDatagrams(c, packets.LocalAddr().(*net.UDPAddr).Port)
		switch kind {
		case "reports":
			to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: ports.port() + 1}
			every(func() { reports.WriteTo([]byte("\x80\xc9\x00\x01abcd"), to) })
		case "requests":
			every(func() { c.say(ask("GET_PARAMETER", r.url(), 3, session)) })
			go io.Copy(io.Discard, b)
		default:
			defer func() {
				if _, err := b.ReadByte(); err != io.EOF {
					t.Errorf("the silent one: got %v, want the end of the connection", err)
				}
			}()
		}
	}
	eventually(t, "the silent one has gone", func() bool { return len(r.engine.Status().Viewers) < 3 })
	time.Sleep(3 * time.Second) // longer than the others may be silent
	if n := len(r.engine.Status().Viewers); n != 2 {
		t.Errorf("got %d viewers, want the two who are heard", n)
	}
	close(stop)
	talking.Wait()
	eventually(t, "all have gone", func() bool { return len(r.engine.Status().Viewers) == 0 })
}
