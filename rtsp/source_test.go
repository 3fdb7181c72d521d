package rtsp

import (
	"bytes"
	"testing"

	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

// onBoth runs a test on the system's own path and on the portable one.
func onBoth(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Run("own", func(t *testing.T) { f(t, Config{}) })
	t.Run("plain", func(t *testing.T) { f(t, Config{Plain: true}) })
}

func TestSource_interleaved(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		ingesttest.TestSource(t, func(t *testing.T) (ingest.Source, func([]byte)) {
			var seq uint16
			playing := make(chan *peer, 1)
			server := newStubborn(t, func(p *peer) { p.serve(nil, func() { playing <- p }) })
			source, err := open(t, cfg, server.url("/live"))
			if err != nil {
				t.Fatal(err)
			}
			p := <-playing
			return source, func(ts []byte) {
				_, _ = p.Write(frame(0, ingesttest.Datagram(seq, 9, ts)))
				seq++
			}
		})
	})
}

func TestSource_burstBehindTheAnswerToPlay(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		frames, ts := rtpFrames(0, 160) // 210 kB
		server := newStubborn(t, func(p *peer) {
			p.serve(func(r request) bool {
				if r.method == "PLAY" {
					p.send(answerTo(r, "200 OK", "") + string(frames))
				}
				return r.method == "PLAY"
			}, nil)
		})
		_, sink := watch(t, cfg, server.url("/live"), len(ts))
		if !bytes.Equal(sink.Bytes, ts) {
			t.Errorf("got %d bytes that differ, want the %d that were sent", len(sink.Bytes), len(ts))
		}
	})
}
