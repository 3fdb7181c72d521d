package server

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"zapcast/fanout"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
	"zapcast/tune"
	"zapcast/tune/tunetest"
)

// A rig is a server with an engine whose network is in memory.
type rig struct {
	*Server
	t       *testing.T
	engine  *fanout.Engine
	network *ingesttest.Receiver
	addr    string
	clients int // with datagrams, and a port that nobody reads

	mu   sync.Mutex
	sent []byte // TS that was fed
}

const group = "239.1.1.1:5000"

// newRig starts a server on which the channel of group runs.
func newRig(t *testing.T, config Config) *rig {
	t.Helper()
	r := newQuietRig(t, config, fanout.Config{StartWait: 2 * time.Second, Silence: time.Second})
	r.feed(group)
	return r
}

// newQuietRig starts a server on which nothing runs.
func newQuietRig(t *testing.T, config Config, engineConfig fanout.Config) *rig {
	t.Helper()
	r := &rig{t: t, network: ingesttest.NewReceiver()}
	engineConfig.Receiver = func() (ingest.Receiver, error) { return r.network, nil }
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	engineConfig.Logger = config.Logger
	var err error
	if r.engine, err = fanout.New(engineConfig); err != nil {
		t.Fatal(err)
	}
	r.Server = New(config, r.engine, tune.New(tune.Config{}, tunetest.Resolver()))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() { r.Serve(l) })
	t.Cleanup(func() {
		r.Shutdown()
		serving.Wait()
		r.engine.Close()
		r.Wait()
	})
	return r
}

// feed sends a clip, again and again, 5 Mbit/s.
func (r *rig) feed(spec string) {
	r.t.Helper()
	clip, err := os.ReadFile("../../cmd/zapcast/clips/one.ts")
	if err != nil {
		r.t.Fatal(err)
	}
	clip = clip[:len(clip)/packetTS*packetTS]
	stop := make(chan struct{})
	var feeding sync.WaitGroup
	feeding.Go(func() {
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			at := n * packetTS % len(clip)
			ts := clip[at : at+packetTS]
			r.mu.Lock()
			r.sent = append(r.sent, ts...)
			r.mu.Unlock()
			r.network.Send(spec, ingesttest.Datagram(uint16(n), 1, ts))
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	})
	r.t.Cleanup(func() {
		close(stop)
		feeding.Wait()
	})
}

func (r *rig) url() string { return "rtsp://" + r.addr + "/rtp/" + group }

// isOurs checks that ts is tables and then a piece of what was fed, without a
// byte more or less.
func (r *rig) isOurs(ts []byte) {
	r.t.Helper()
	tables := 0
	for tables*188 < len(ts) && tables < 8 && (ts[tables*188+1]&0x1f == 0 && ts[tables*188+2] == 0 || tables == 1) {
		tables++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if tables != 2 || len(ts) < 3*188 || !bytes.Contains(r.sent, ts[tables*188:]) {
		r.t.Errorf("%d bytes of TS with %d tables before them are no piece of the stream", len(ts), tables)
	}
}

// talker speaks RTSP by hand.
type talker struct {
	net.Conn
	t *testing.T
}

// dial connects until the test ends.
func (r *rig) dial() talker {
	c := r.connect()
	r.t.Cleanup(func() { c.Close() })
	return c
}

func (r *rig) connect() talker {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return talker{c, r.t}
}

func (c talker) say(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}
