package rtsp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zapcast/ingest/ingesttest"
)

func TestEnd_everyByteThenTheEnd(t *testing.T) {
	frames, ts := rtpFrames(0, 1600) // 2 MB
	for name, last := range map[string]string{
		"hang up":      "",
		"cut frame":    "$\x00\x05",
		"announcement": "ANNOUNCE rtsp://h RTSP/1.0\r\nCSeq: 1\r\nx-notice: 2101 \"End-of-Stream Reached\"\r\n\r\n",
		"teardown":     "TEARDOWN rtsp://h RTSP/1.0\r\nCSeq: 1\r\n\r\n",
		"in words":     "ANNOUNCE rtsp://h RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 13\r\n\r\nEnd of stream",
	} {
		t.Run(name, func(t *testing.T) {
			server := newStubborn(t, func(p *peer) {
				p.serve(nil, func() {
					_, _ = p.Write(frames)
					p.send(last)
					if name == "hang up" || name == "cut frame" {
						_ = p.Close()
					}
				})
			})
			source, err := open(t, Config{}, server.url("/"))
			if err != nil {
				t.Fatal(err)
			}
			sink := &ingesttest.Sink{T: t}
			drain(t, source, sink, -1)
			if !bytes.Equal(sink.Bytes, ts) || !errors.Is(source.Ended(), io.EOF) {
				t.Errorf("got %d bytes and %v, want %d and the end", len(sink.Bytes), source.Ended(), len(ts))
			}
		})
	}
}

func TestEnd_noMedia(t *testing.T) {
	server := newStubborn(t, func(p *peer) { p.serve(nil, func() { _, _ = p.Write(frame(0, []byte("not TS, not RTP"))) }) })
	source, err := open(t, Config{Timeout: 300 * time.Millisecond}, server.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	drain(t, source, &ingesttest.Sink{T: t}, -1)
	var failed *Error
	if !errors.As(source.Ended(), &failed) || failed.Status != 408 || !strings.Contains(failed.Reason, "1 datagram, none of them RTP or MPEG-TS") {
		t.Errorf("got %v", source.Ended())
	}
	_ = source.Close()
	if all := server.methods(); all[len(all)-1] != "TEARDOWN" {
		t.Errorf("got %q, want TEARDOWN at the end", all)
	}
}

func TestTeardown_neverHangs(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	for name, script := range map[string]func(p *peer) func(r request) bool{
		"no answer": func(p *peer) func(r request) bool { return func(r request) bool { return r.method == "TEARDOWN" } },
		"hangs up": func(p *peer) func(r request) bool {
			return func(r request) bool {
				if r.method == "TEARDOWN" {
					_ = p.Close()
				}
				return false
			}
		},
		"media goes on": func(p *peer) func(r request) bool {
			return func(r request) bool {
				for r.method == "TEARDOWN" {
					if _, err := p.Write(frames); err != nil {
						return true
					}
				}
				return false
			}
		},
	} {
		onBoth(t, func(t *testing.T, cfg Config) {
			t.Run(name, func(t *testing.T) {
				server := newStubborn(t, func(p *peer) { p.serve(script(p), func() { _, _ = p.Write(frames) }) })
				cfg.Timeout = 500 * time.Millisecond
				source, _ := watch(t, cfg, server.url("/"), len(ts))
				began := time.Now()
				_ = source.Close()
				if spent := time.Since(began); spent > 2*time.Second {
					t.Errorf("Close took %v, want about %v", spent, cfg.Timeout)
				}
				if !slices.Contains(server.methods(), "TEARDOWN") {
					t.Error("the server was not told")
				}
			})
		})
	}
}

// A server that broke the connection off is told by another, for that alone.
func TestTeardown_deadConnection(t *testing.T) {
	frames, ts := rtpFrames(0, 10)
	server := newStubborn(t, func(p *peer) {
		p.serve(nil, func() {
			_, _ = p.Write(frames)
			_ = p.Close()
		})
	})
	u, looked := server.url("/"), atomic.Bool{}
	u.Host = "edge.example.net"
	cfg := Config{Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
		if looked.Swap(true) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.77")}, nil // by then the name means another server
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}}
	source, err := open(t, cfg, u)
	if err != nil {
		t.Fatal(err)
	}
	sink := &ingesttest.Sink{T: t}
	drain(t, source, sink, -1)
	_ = source.Close()
	all := server.methods()
	if len(sink.Bytes) != len(ts) || all[len(all)-1] != "TEARDOWN" {
		t.Errorf("got %d bytes, %q, want %d and TEARDOWN at the end", len(sink.Bytes), all, len(ts))
	}
	if r, _ := server.find("TEARDOWN"); r.header.get("Session") != "123" {
		t.Errorf("TEARDOWN: got Session %q, want 123", r.header.get("Session"))
	}
}
