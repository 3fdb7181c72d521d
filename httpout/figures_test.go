package httpout

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"zapcast/fanout"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
	"zapcast/lineup"
	"zapcast/playlist"
)

// figure is for tests of how long something takes.
func figure(t *testing.T) {
	if underRace {
		t.Skip("the race detector makes everything slower; .ci/test runs this without it")
	}
}

// least is the shortest of some runs: what the work takes, and not what others
// do to the machine.
func least(work func()) time.Duration {
	best := time.Hour
	for range 15 {
		began := time.Now()
		work()
		best = min(best, time.Since(began))
	}
	return best
}

// listOf5000 is a playlist as operators' are.
func listOf5000() []byte {
	var b bytes.Buffer
	b.WriteString("#EXTM3U x-tvg-url=\"http://192.0.2.1/epg.xml.gz\"\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "#EXTINF:-1 tvg-id=\"%d\" tvg-logo=\"http://192.0.2.1/logo/%d.png\" group-title=\"组%d\",频道%d\nrtp://239.1.%d.%d:5000?fcc=192.0.2.3:8027\n",
			i, i, i%20, i, i>>8, i&255)
	}
	return b.Bytes()
}

// lineupOf5000 reads it from a file.
func lineupOf5000(tb testing.TB) *lineup.Lineup {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "tv.m3u")
	if err := os.WriteFile(file, listOf5000(), 0o600); err != nil {
		tb.Fatal(err)
	}
	l := lineup.Open(lineup.Config{Playlists: []lineup.Playlist{{Source: file}}})
	tb.Cleanup(l.Close)
	if n := len(l.Table().Channels); n != 5000 {
		tb.Fatalf("got %d channels, want 5000: %+v", n, l.Playlists())
	}
	return l
}

// answerTo answers a request without a network.
func answerTo(tb testing.TB, s *Server, target string) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RequestURI = target
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		tb.Fatalf("GET %s: got %d %s", target, w.Code, w.Body)
	}
	return w
}

// A list of 5000 channels is read within 50 ms and answered within 20 ms.
func TestFigures_playlist(t *testing.T) {
	figure(t)
	text := listOf5000()
	read := least(func() {
		if l, err := playlist.Parse(text); err != nil || len(l.Entries) != 5000 {
			t.Fatalf("got %d entries, %v, want 5000", len(l.Entries), err)
		}
	})
	t.Logf("5000 channels read: %v", read)
	if read > 50*time.Millisecond {
		t.Errorf("reading took %v, want at most 50 ms", read)
	}
	f := newFront(t, Config{Lineup: lineupOf5000(t)})
	for _, path := range []string{"/playlist.m3u", "/api/channels"} {
		took := least(func() {
			if n := answerTo(t, f.Server, path).Body.Len(); n < 5000*100 {
				t.Fatalf("%s: got %d bytes, want 5000 channels", path, n)
			}
		})
		t.Logf("%s of 5000 channels: %v", path, took)
		if path == "/playlist.m3u" && took > 20*time.Millisecond {
			t.Errorf("%s: took %v, want at most 20 ms", path, took)
		}
	}
}

// /metrics with 500 channels takes at most 5 ms.
func TestFigures_metrics(t *testing.T) {
	figure(t)
	network := ingesttest.NewReceiver()
	engine, err := fanout.New(fanout.Config{
		Receiver: func() (ingest.Receiver, error) { return network, nil }, Linger: time.Hour, Silence: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	s := New(Config{Metrics: NewMetrics()}, engine, nil)
	open500(t, engine)
	took := least(func() {
		var b bytes.Buffer
		s.writeMetrics(&b)
	})
	t.Logf("metrics of 500 channels: %v", took)
	if took > 5*time.Millisecond {
		t.Errorf("metrics: took %v, want at most 5 ms", took)
	}
}

// open500 opens 500 channels that wait for their first data.
func open500(tb testing.TB, engine *fanout.Engine) {
	for i := range 500 {
		spec := ingest.FlowSpec{Group: netip.MustParseAddrPort(fmt.Sprintf("239.1.%d.%d:5000", i>>8, i&255))}
		go engine.Open(tb.Context(), spec.String(), func(r ingest.Receiver) (ingest.Source, error) { return ingest.OpenMulticast(r, spec) })
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		opened := 0
		for _, c := range engine.Status().Channels {
			if c.State == "starting" {
				opened++
			}
		}
		if opened == 500 {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("got %d channels open, want 500", opened)
		}
	}
}

// An update of the status, of which there is one a second, takes at most 0.3 %
// of a core with 64 viewers: 3 ms.
func TestFigures_statusUpdates(t *testing.T) {
	figure(t)
	const viewers = 64
	f := newFrontOn(t, Config{Metrics: NewMetrics()}, fanout.Config{StartWait: time.Millisecond, Flush: 5 * time.Millisecond})
	for i := range viewers {
		group := fmt.Sprintf("239.1.1.%d:5000", i%8)
		if i < 8 {
			f.feed(group)
		}
		f.watch("/rtp/" + group)
	}
	if n := len(f.snapshot(time.Now()).Viewers); n != viewers {
		t.Fatalf("got %d viewers, want %d", n, viewers)
	}
	took := least(func() { f.statusEvent() })
	t.Logf("an update of the status with %d viewers: %v", viewers, took)
	if took > 3*time.Millisecond {
		t.Errorf("took %v, want at most 3 ms", took)
	}
}
