package httpout

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zapcast/internal/testlog"
)

// Connections that say nothing neither keep others out nor disturb a stream,
// even if they come from the same address.
func TestServer_floodOfSilentConnections(t *testing.T) {
	for _, row := range []struct {
		name   string
		config Config
		flood  func(i int) string // address that the flood comes from
		held   int
	}{
		{"one address", Config{}, func(int) string { return "127.0.0.1" }, 64},
		{"another address", Config{}, func(int) string { return "127.0.0.2" }, 64},
		{"many addresses", Config{MaxPending: 100}, func(i int) string { return fmt.Sprintf("127.0.1.%d", i%200+1) }, 100},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFront(t, row.config)
			f.feed("239.1.1.1:5000")
			viewer := f.watch("/rtp/239.1.1.1:5000")
			for i := range 300 {
				c := f.dialAt("tcp", f.addr, row.flood(i))
				if i%2 == 0 {
					io.WriteString(c, "GET /rtp/") // and no more
				}
			}
			if response, body := f.request("GET", "/healthz", "Connection: close"); response.StatusCode != 200 {
				t.Errorf("request in the flood: got %s %q, want 200", response.Status, body)
			}
			f.watch("/rtp/239.1.1.1:5000")
			if _, err := io.ReadFull(viewer.Body, make([]byte, 188*200)); err != nil {
				t.Errorf("running stream: %v", err)
			}
			if n := f.pending.count(); n > row.held {
				t.Errorf("%d connections pending, want at most %d", n, row.held)
			}
			if n := f.counters.pending.Load(); n < int64(300-row.held) {
				t.Errorf("counted %d, want at least %d", n, 300-row.held)
			}
			if n := strings.Count(f.log.String(), "too many pending"); n != 1 {
				t.Errorf("%d lines in the log, want 1:\n%s", n, f.log)
			}
		})
	}
}

// Viewers who wait for a stream are bounded as viewers: many of one address may
// wait for a channel that starts slowly, and others still get in.
func TestServer_waitingViewersAreNotPending(t *testing.T) {
	const viewers = 20
	f := newFront(t, Config{MaxPendingPerAddress: 3})
	var waiting []net.Conn
	for range viewers {
		c := f.dial()
		io.WriteString(c, "GET /rtp/239.9.9.9:5000 HTTP/1.1\r\nHost: test\r\n\r\n")
		waiting = append(waiting, c)
		f.eventually("the request waits", func() bool { return f.slots.count() == len(waiting) }) // until then it is pending
	}
	if answer, _ := f.request("GET", "/healthz"); answer.StatusCode != 200 {
		t.Errorf("another request meanwhile: got %s, want 200", answer.Status)
	}
	for i, c := range waiting {
		if b, err := io.ReadAll(c); !strings.HasPrefix(string(b), "HTTP/1.1 503") {
			t.Errorf("waiting request %d: got %q, %v, want its answer", i, b, err)
		}
	}
}

func TestPending_oldestIdleMakesRoom(t *testing.T) {
	s := &Server{}
	p := &s.pending
	p.total, p.perAddress = 3, 3
	conns := make([]*conn, 6)
	for i := range conns {
		conns[i] = &conn{server: s}
	}
	add := func(i int, evicted *conn, ok bool) {
		t.Helper()
		if gotEvicted, gotOK := p.add(conns[i]); gotEvicted != evicted || gotOK != ok {
			t.Errorf("add(%d) = %p, %t, want %p, %t", i, gotEvicted, gotOK, evicted, ok)
		}
	}
	add(0, nil, true)
	add(1, nil, true)
	add(2, nil, true)
	p.setBusy(conns[0], true)
	add(3, conns[1], true)
	p.setBusy(conns[2], true)
	p.setBusy(conns[3], true)
	add(4, nil, false)
	p.remove(conns[0])
	p.remove(conns[0]) // a second time does nothing
	add(4, nil, true)
	if p.count() != 3 || len(p.byAddr) != 1 {
		t.Errorf("got %d connections of %d addresses, want 3 of 1", p.count(), len(p.byAddr))
	}
}

// A brokenListener answers Accept with errors, then with a connection.
type brokenListener struct {
	net.Listener
	mu     sync.Mutex
	errors []error
	closed chan struct{}
}

func (l *brokenListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errors) > 0 {
		err := l.errors[0]
		l.errors = l.errors[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	_, server := net.Pipe()
	return server, nil
}

func (l *brokenListener) Close() error   { close(l.closed); return nil }
func (l *brokenListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestListener_survivesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(testlog.Log)
		s := New(Config{Logger: log.Logger()}, nil, nil)
		broken := &brokenListener{closed: make(chan struct{})}
		l := &listener{Listener: broken, server: s, closed: make(chan struct{})}
		for _, row := range []struct {
			err   error
			times int
			pause time.Duration
			lines int
		}{
			{syscall.ECONNABORTED, 3, 0, 0},
			{syscall.EPROTO, 3, 0, 0},
			{syscall.EMFILE, 10, 3275 * time.Millisecond, 1}, // 5 ms doubled 7 times, then 1 s
			{errors.New("whatever"), 1, 5 * time.Millisecond, 0},
		} {
			for range row.times {
				broken.errors = append(broken.errors, row.err)
			}
			lines, start := strings.Count(log.String(), "\n"), time.Now()
			c, err := l.Accept()
			if err != nil {
				t.Fatalf("Accept after %v: %v", row.err, err)
			}
			c.Close()
			if got := time.Since(start); got != row.pause {
				t.Errorf("%v: paused %v, want %v", row.err, got, row.pause)
			}
			if got := strings.Count(log.String(), "\n") - lines; got != row.lines {
				t.Errorf("%v: %d lines in the log, want %d:\n%s", row.err, got, row.lines, log)
			}
		}

		// Close ends a pause.
		broken.errors = []error{syscall.EMFILE, syscall.EMFILE, syscall.EMFILE}
		time.AfterFunc(time.Millisecond, func() { l.Close() })
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept after Close: got %v, want net.ErrClosed", err)
		}
	})
}

func TestRepeated_oneLinePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r repeated
		var lines []int64
		for range 25 {
			r.log(func(times int64) { lines = append(lines, times) })
			time.Sleep(time.Second)
		}
		if got := fmt.Sprint(lines); got != "[1 10 10]" {
			t.Errorf("lines for 25 events in 25 s: got %s, want [1 10 10]", got)
		}
	})
}
