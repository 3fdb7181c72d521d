package fanout_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zapcast/fanout"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

// The tests here run a whole engine over real sockets, each on the accelerated
// and on the plain path.

var group = ingest.FlowSpec{Group: netip.MustParseAddrPort("239.1.1.1:5000")}

type rig struct {
	t        *testing.T
	engine   *fanout.Engine
	receiver *ingesttest.Receiver
	opened   atomic.Int32
	seq      uint16
	number   uint32
}

func onBothPaths(t *testing.T, cfg fanout.Config, test func(t *testing.T, r *rig)) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%v", plain), func(t *testing.T) {
			r := &rig{t: t, receiver: ingesttest.NewReceiver()}
			cfg := cfg
			cfg.Plain = plain
			cfg.Receiver = func() (ingest.Receiver, error) { return r.receiver, nil }
			var err error
			if r.engine, err = fanout.New(cfg); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = r.engine.Close()
				if got := r.receiver.Joined(); len(got) > 0 {
					t.Errorf("groups after the end: want none, got %v", got)
				}
			})
			test(t, r)
		})
	}
}

func (r *rig) open(ctx context.Context) (*fanout.Lease, error) {
	return r.engine.Open(ctx, group.String(), func(rc ingest.Receiver) (ingest.Source, error) {
		r.opened.Add(1)
		return ingest.OpenMulticast(rc, group)
	})
}

// send sends n datagrams of radio, whose viewers start at once: tables first.
func (r *rig) send(n int) {
	for range n {
		ts := ingesttest.TS(r.number, 7)
		if r.number%50 == 0 {
			ts = append(fanout.RadioTables(), ts...)
		}
		r.number++
		r.receiver.Send(group.String(), ingesttest.Datagram(r.seq, 7, ts))
		r.seq++
	}
}

// stream sends until the test ends.
func (r *rig) stream() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				r.send(4)
			}
		}
	}()
	r.t.Cleanup(func() { close(stop); <-done })
}

// pair returns the two ends of a connection.
func pair(t *testing.T, network string) (server, client net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	_ = client.SetDeadline(time.Now().Add(20 * time.Second))
	return server, client
}

const header = "HTTP/1.1 200 OK\r\n\r\n"

// watch attaches a viewer and returns his end, and a channel that is closed when
// the engine is done with him.
func (r *rig) watch(network string) (net.Conn, <-chan struct{}) {
	r.t.Helper()
	lease, err := r.open(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	server, client := pair(r.t, network)
	done := make(chan struct{})
	err = lease.Attach(fanout.Viewer{Conn: server, Header: []byte(header), Client: "test", Requested: time.Now(), Done: func() { close(done) }})
	if err != nil {
		r.t.Fatal(err)
	}
	return client, done
}

// follow reads n datagrams' worth of TS and checks that none is missing.
func follow(c net.Conn, n int) error {
	b := bufio.NewReader(c)
	for head := ""; !strings.HasSuffix(head, "\r\n\r\n"); {
		line, err := b.ReadString('\n')
		if err != nil {
			return fmt.Errorf("header: %w", err)
		}
		head += line
	}
	var p [188]byte
	next, place := uint32(0), byte(0)
	for i := 0; i < n; {
		if _, err := io.ReadFull(b, p[:]); err != nil {
			return fmt.Errorf("packet %d: %w", i, err)
		}
		if p[0] != 0x47 {
			return fmt.Errorf("packet %d: no sync byte", i)
		}
		if p[1]&0x1f != 1 || p[2] != 0 { // tables
			continue
		}
		number := uint32(p[4])<<24 | uint32(p[5])<<16 | uint32(p[6])<<8 | uint32(p[7])
		if i == 0 {
			next, place = number, p[8]
		}
		if number != next || p[8] != place {
			return fmt.Errorf("packet %d: want %d/%d, got %d/%d", i, next, place, number, p[8])
		}
		if place++; place == 7 {
			next, place = next+1, 0
		}
		i++
	}
	return nil
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("did not happen within 10 s: %s", what)
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
}

func TestViewers_getEveryByteFromOneSource(t *testing.T) {
	onBothPaths(t, fanout.Config{}, func(t *testing.T, r *rig) {
		r.stream()
		errs := make(chan error)
		for i := range 8 {
			c, _ := r.watch([]string{"tcp", "unix"}[i%2])
			go func() { errs <- follow(c, 3000) }()
		}
		for range 8 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if got := r.opened.Load(); got != 1 {
			t.Errorf("sources opened: want 1, got %d", got)
		}
		s := r.engine.Status()
		if len(s.Channels) != 1 || len(s.Viewers) != 8 || s.Viewers[0].Bytes == 0 || s.Viewers[0].FirstByte <= 0 {
			t.Errorf("status: %+v", s)
		}
	})
}

func TestViewer_whoLeavesFreesTheGroupAfterTheLinger(t *testing.T) {
	onBothPaths(t, fanout.Config{Linger: 100 * time.Millisecond}, func(t *testing.T, r *rig) {
		r.stream()
		one, oneDone := r.watch("tcp")
		two, twoDone := r.watch("tcp")
		_ = one.Close()
		<-oneDone
		if err := follow(two, 1000); err != nil {
			t.Errorf("viewer two after viewer one left: %v", err)
		}
		if got := r.receiver.Joined(); len(got) != 1 {
			t.Errorf("groups while one watches: want 1, got %v", got)
		}
		_ = two.(*net.TCPConn).SetLinger(0) // a reset
		_ = two.Close()
		<-twoDone
		eventually(t, "group left", func() bool { return len(r.receiver.Joined()) == 0 })
	})
}

func TestOpen_saysWhyNothingComes(t *testing.T) {
	onBothPaths(t, fanout.Config{Silence: 150 * time.Millisecond}, func(t *testing.T, r *rig) {
		_, err := r.open(t.Context())
		for _, want := range []string{"239.1.1.1:5000", "test0", "received nothing"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error: want it to name %q, got %v", want, err)
			}
		}
		eventually(t, "group left", func() bool { return len(r.receiver.Joined()) == 0 })
		if got := strings.Join(r.receiver.Events(), ", "); got != "join 239.1.1.1:5000, rejoin 239.1.1.1:5000, leave 239.1.1.1:5000" {
			t.Errorf("events: %s", got)
		}
	})
}

// Who zaps on before anything comes does not make the group be left: it is
// silence for nobody.
func TestOpen_givenUpLingers(t *testing.T) {
	onBothPaths(t, fanout.Config{Silence: 300 * time.Millisecond, Linger: 700 * time.Millisecond}, func(t *testing.T, r *rig) {
		start := time.Now()
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if _, err := r.open(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error: want the context's, got %v", err)
			}
			cancel()
			time.Sleep(60 * time.Millisecond)
		}
		eventually(t, "group left", func() bool { return len(r.receiver.Joined()) == 0 })
		if took := time.Since(start); took < 700*time.Millisecond {
			t.Errorf("left after %v, want the linger", took)
		}
		if got := strings.Join(r.receiver.Events(), ", "); got != "join 239.1.1.1:5000, leave 239.1.1.1:5000" {
			t.Errorf("events: %s", got)
		}
	})
}

func TestOpen_failsAsTheSourceDoes(t *testing.T) {
	onBothPaths(t, fanout.Config{}, func(t *testing.T, r *rig) {
		refused := errors.New("no such interface")
		r.receiver.Refuse(group.String(), refused)
		for range 3 {
			if _, err := r.open(t.Context()); !errors.Is(err, refused) {
				t.Errorf("error: want %v, got %v", refused, err)
			}
		}
		r.receiver.Refuse(group.String(), nil)
		r.stream()
		if lease, err := r.open(t.Context()); err != nil {
			t.Errorf("after the fault is mended: %v", err)
		} else {
			lease.Close()
			lease.Close()
		}
	})
}

func TestOpen_endsWithItsContext(t *testing.T) {
	onBothPaths(t, fanout.Config{Linger: -1}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error)
		go func() { _, err := r.open(ctx); errs <- err }()
		eventually(t, "joined", func() bool { return len(r.receiver.Joined()) == 1 })
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("error: want %v, got %v", context.Canceled, err)
		}
		eventually(t, "group left", func() bool { return len(r.receiver.Joined()) == 0 })
	})
}

func TestSource_thatFallsSilentGoesOnAfterAShortPauseAndEndsAfterALongOne(t *testing.T) {
	onBothPaths(t, fanout.Config{Silence: 600 * time.Millisecond}, func(t *testing.T, r *rig) {
		errs := make(chan error)
		go func() {
			c, _ := r.watch("tcp")
			if err := follow(c, 7*20); err != nil {
				errs <- err
				return
			}
			_, err := io.Copy(io.Discard, c)
			errs <- err
		}()
		eventually(t, "joined", func() bool { return len(r.receiver.Joined()) == 1 })
		r.send(10)
		eventually(t, "silent for a while", func() bool {
			s := r.engine.Status()
			return len(s.Viewers) == 1 && time.Since(s.Channels[0].Source.LastData) > 400*time.Millisecond
		})
		r.send(20)
		if err := <-errs; err != nil { // a clean end of the connection, not a reset
			t.Errorf("viewer: %v", err)
		}
	})
}

func TestClose_endsViewersWithinASecond(t *testing.T) {
	onBothPaths(t, fanout.Config{}, func(t *testing.T, r *rig) {
		r.stream()
		c, done := r.watch("tcp")
		stuck, stuckDone := r.watch("tcp") // never reads
		_ = stuck
		if err := follow(c, 100); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		_ = r.engine.Close()
		<-done
		<-stuckDone
		if took := time.Since(begun); took > time.Second {
			t.Errorf("close: want at most 1 s, took %v", took)
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("viewer's end: want a clean one, got %v", err)
		}
		if _, err := r.open(t.Context()); !errors.Is(err, fanout.ErrClosed) {
			t.Errorf("open after close: want %v, got %v", fanout.ErrClosed, err)
		}
	})
}

// Close waits for connections of the portable path that are still being written to.
func TestClose_waitsForConnections(t *testing.T) {
	onBothPaths(t, fanout.Config{}, func(t *testing.T, r *rig) {
		r.stream()
		lease, err := r.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		server, client := net.Pipe() // has no descriptor, and nobody reads
		defer client.Close()
		if err := lease.Attach(fanout.Viewer{Conn: server, Header: []byte(header), Client: "test", Requested: time.Now()}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the viewer is there", func() bool { return len(r.engine.Status().Viewers) == 1 })
		_ = r.engine.Close()
		stacks := make([]byte, 1<<20)
		if stacks = stacks[:runtime.Stack(stacks, true)]; bytes.Contains(stacks, []byte("(*goConn)")) {
			t.Errorf("a connection's goroutine has outlived the engine:\n%s", stacks)
		}
	})
}

func TestShortRequests_leaveNothingBehind(t *testing.T) {
	onBothPaths(t, fanout.Config{}, func(t *testing.T, r *rig) {
		r.stream()
		zap := func() {
			c, done := r.watch("tcp")
			if err := follow(c, 1); err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			<-done
		}
		zap()
		goroutines, files := runtime.NumGoroutine(), descriptors(t)
		for range 1000 {
			zap()
		}
		eventually(t, "goroutines and descriptors back to where they were", func() bool {
			return runtime.NumGoroutine() <= goroutines+2 && descriptors(t) <= files+8
		})
	})
}

// descriptors counts the process's, memfds of history among them.
func descriptors(t *testing.T) int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // not on this system
	}
	return len(d)
}
