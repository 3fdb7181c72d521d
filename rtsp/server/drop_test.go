package server

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"zapcast/fanout"
)

// read returns the next response, with its body, and skips frames.
func (c talker) read(b *bufio.Reader) string {
	c.t.Helper()
	for {
		first, err := b.Peek(1)
		if err != nil {
			c.t.Fatal(err)
		}
		if first[0] != '$' {
			break
		}
		var head [4]byte
		if _, err := io.ReadFull(b, head[:]); err != nil {
			c.t.Fatal(err)
		}
		if _, err := b.Discard(int(head[2])<<8 | int(head[3])); err != nil {
			c.t.Fatal(err)
		}
	}
	var text strings.Builder
	length := 0
	for {
		line, err := b.ReadString('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		text.WriteString(line)
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		}
		if line == "\r\n" {
			break
		}
	}
	if _, err := io.CopyN(&text, b, int64(length)); err != nil {
		c.t.Fatal(err)
	}
	return text.String()
}

// sessionOf is the value of Session in a response.
func sessionOf(response string) string {
	_, rest, _ := strings.Cut(response, "Session: ")
	id, _, _ := strings.Cut(rest, ";")
	return "Session: " + id
}

// states leads a client to each state of the handshake, where he is dropped.
var states = map[string]func(r *rig, c talker){
	"connected": func(*rig, talker) {},
	"in a request": func(r *rig, c talker) {
		c.say("DESCRIBE " + r.url() + " RTSP/1.0\r\nCSe")
	},
	"in a frame": func(_ *rig, c talker) { c.say("$\x00\xff\xffabc") },
	"described": func(r *rig, c talker) {
		c.say(ask("OPTIONS", "*", 1) + ask("DESCRIBE", r.url(), 2))
		b := bufio.NewReader(c)
		c.read(b)
		c.read(b)
	},
	"set up": func(r *rig, c talker) {
		c.say(ask("SETUP", r.url(), 1, "Transport: RTP/AVP/TCP"))
		c.read(bufio.NewReader(c))
	},
	"set up for datagrams": func(r *rig, c talker) {
		c.say(ask("SETUP", r.url(), 1, "Transport: RTP/AVP;unicast;client_port=9-10"))
		c.read(bufio.NewReader(c))
	},
	"waiting for a stream": func(r *rig, c talker) {
		url := "rtsp://" + r.addr + "/rtp/239.1.1.9:5000" // where nothing is sent
		c.say(ask("SETUP", url, 1, "Transport: RTP/AVP/TCP"))
		c.say(ask("PLAY", url, 2, sessionOf(c.read(bufio.NewReader(c)))))
	},
	"playing": func(r *rig, c talker) {
		c.say(ask("SETUP", r.url(), 1, "Transport: RTP/AVP/TCP"))
		b := bufio.NewReader(c)
		c.say(ask("PLAY", r.url(), 2, sessionOf(c.read(b))))
		c.read(b)
	},
	"playing in datagrams": func(r *rig, c talker) {
		r.setUpDatagrams(c, 0)
	},
	"paused": func(r *rig, c talker) {
		c.say(ask("SETUP", r.url(), 1, "Transport: RTP/AVP/TCP"))
		b := bufio.NewReader(c)
		session := sessionOf(c.read(b))
		c.say(ask("PLAY", r.url(), 2, session) + ask("PAUSE", r.url(), 3, session))
		c.read(b)
		c.read(b)
	},
	"torn down": func(r *rig, c talker) {
		c.say(ask("SETUP", r.url(), 1, "Transport: RTP/AVP/TCP"))
		b := bufio.NewReader(c)
		session := sessionOf(c.read(b))
		c.say(ask("PLAY", r.url(), 2, session))
		c.read(b)
		c.say(ask("TEARDOWN", r.url(), 3, session))
		c.read(b)
	},
}

// setUpDatagrams plays to a port of the client's, or a new one for zero, and
// returns the session.
func (r *rig) setUpDatagrams(c talker, port int) (session string, b *bufio.Reader) {
	r.t.Helper()
	if port == 0 {
		r.clients++ // not soon one that had a session before
		port = 20000 + r.clients*2%40000
	}
	b = bufio.NewReader(c)
	c.say(ask("SETUP", r.url(), 1, "Transport: RTP/AVP;unicast;client_port="+pair(port, port+1)))
	session = sessionOf(c.read(b))
	c.say(ask("PLAY", r.url(), 2, session))
	if answer := c.read(b); !strings.HasPrefix(answer, "RTSP/1.0 200") {
		r.t.Fatalf("PLAY: %s", answer)
	}
	return session, b
}

// Clients who are lost in any state leave nothing behind, whether they close or
// reset their connection. ZAPCAST_TEST_DROPS says how many in each state.
func TestDrop_everyStateLeavesNothing(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("ZAPCAST_TEST_DROPS"))
	if count == 0 {
		count = 40
	}
	r := newQuietRig(t, Config{Logger: slog.New(slog.DiscardHandler)}, fanout.Config{StartWait: 2 * time.Second, Silence: time.Second, Linger: time.Hour})
	r.feed(group)
	keep := r.dial() // one who stays
	states["playing"](r, keep)
	keep.SetDeadline(time.Time{})
	go io.Copy(io.Discard, keep)

	round := func(lead func(*rig, talker), i int) {
		c := r.connect()
		lead(r, c)
		if i%2 == 1 {
			c.Conn.(*net.TCPConn).SetLinger(0) // a reset
		}
		c.Close()
	}
	for _, lead := range states { // whatever is made once is made now
		round(lead, 0)
		round(lead, 1)
	}
	settled := func() bool { return r.Pending() == 0 && len(r.engine.Status().Viewers) == 1 }
	eventually(t, "everybody gone but one", settled)
	goroutines, files, heap := runtime.NumGoroutine(), descriptors(), heapInUse()
	for name, lead := range states {
		for i := range count {
			round(lead, i)
		}
		eventually(t, name+": everybody gone but one", settled)
		eventually(t, name+": goroutines and descriptors back to where they were", func() bool {
			return runtime.NumGoroutine() <= goroutines+2 && descriptors() <= files+8
		})
	}
	r.mu.Lock()
	r.sent = nil
	r.mu.Unlock()
	if grown := heapInUse() - heap; grown > 2<<20 {
		t.Errorf("heap grew by %d KB over %d clients in each state", grown>>10, count)
	} else {
		t.Logf("%d clients in each of %d states: heap %+d KB, goroutines %+d, descriptors %+d", count, len(states),
			grown>>10, runtime.NumGoroutine()-goroutines, descriptors()-files)
	}
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// descriptors counts the process's.
func descriptors() int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // not on this system
	}
	return len(d)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("did not happen within 20 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
