package httpout

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zapcast/fanout"
)

func TestMetrics_ofARunningChannel(t *testing.T) {
	m := NewMetrics()
	f := newFrontOn(t, Config{Metrics: m, Version: "1.2.3"}, fanout.Config{StartWait: time.Millisecond, Silence: time.Second, Zapped: m.Zapped})
	f.feed("239.1.1.1:5000")
	f.watch("/rtp/239.1.1.1:5000")
	f.request("GET", "/nothing")
	_, body := f.request("GET", "/metrics", "Connection: close")
	for _, want := range []string{
		`zapcast_info{version="1.2.3"} 1`, `zapcast_channels{state="live"} 1`, `zapcast_channels{state="silent"} 0`, "zapcast_viewers 1",
		"zapcast_channels_opened_total 1", "zapcast_viewers_started_total 1", `zapcast_refused_total{reason="not_found"} 1`, `zapcast_zap_first_byte_seconds_count{start="live"} 1`,
		`zapcast_zap_random_access_seconds_bucket{start="history",le="+Inf"} 0`, `zapcast_fcc_total{outcome="burst"} 0`,
	} {
		if !strings.Contains(body, "\n"+want+"\n") && !strings.HasPrefix(body, want+"\n") {
			t.Errorf("want the line %q in\n%s", want, body)
		}
	}
	if zaps := f.snapshot(time.Now()).Zaps; len(zaps) != 3 || zaps[2].Start != "live" || total(zaps[2]) != 1 || total(zaps[0])+total(zaps[1]) != 0 {
		t.Errorf("zaps in the status: got %+v, want one, live", zaps)
	}
	for _, never := range []string{"239.1.1.1", "127.0.0.1"} {
		if strings.Contains(body, never) {
			t.Errorf("got %s, an address, in a label", never)
		}
	}
	for _, name := range []string{"zapcast_sent_bytes_total", "zapcast_received_bytes_total"} {
		if !regexp.MustCompile(`(?m)^` + name + ` [1-9]`).MatchString(body) {
			t.Errorf("want %s above zero in\n%s", name, body)
		}
	}
}

// The page names every metric, and no other.
func TestMetrics_pageNamesEveryOne(t *testing.T) {
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	f := newFront(t, Config{Metrics: NewMetrics()})
	_, body := f.request("GET", "/metrics", "Connection: close")
	written, documented := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(zapcast_[a-z_]+?)(?:_bucket|_sum|_count)?[{ ]`).FindAllStringSubmatch(body, -1) {
		written[m[1]] = true
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(zapcast_[a-z_]+)").FindAllStringSubmatch(string(page), -1) {
		documented[m[1]] = true
	}
	if diff := cmp.Diff(written, documented); diff != "" {
		t.Errorf("metrics and docs/metrics.md (-written +documented):\n%s", diff)
	}
}

func total(z zapsJSON) (n int64) {
	for _, b := range z.Buckets {
		n += b.Count
	}
	return n
}

func TestWaits(t *testing.T) {
	var w waits
	for _, d := range []time.Duration{0, 5 * time.Millisecond, 5*time.Millisecond + 1, 10 * time.Second, time.Minute} {
		w.count(d)
	}
	var b bytes.Buffer
	w.write(&b, "m", "cold")
	for _, want := range []string{
		`m_bucket{start="cold",le="0.005"} 2`, `m_bucket{start="cold",le="0.01"} 3`, `m_bucket{start="cold",le="10"} 4`,
		`m_bucket{start="cold",le="+Inf"} 5`, `m_count{start="cold"} 5`, `m_sum{start="cold"} 70.010000001`,
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("want %s in\n%s", want, b.String())
		}
	}
}

// Every metric of the dashboard is exported.
func TestMetrics_dashboard(t *testing.T) {
	f := newFront(t, Config{Metrics: NewMetrics()})
	_, body := f.request("GET", "/metrics", "Connection: close")
	dashboard, err := os.ReadFile("../examples/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(dashboard) {
		t.Fatal("the dashboard is no JSON")
	}
	names := regexp.MustCompile(`\b(?:zapcast|process)_[a-z_]+`).FindAllString(string(dashboard), -1)
	if len(names) < 15 {
		t.Fatalf("got %d names in the dashboard, want more", len(names))
	}
	for _, name := range names {
		if !regexp.MustCompile(`(?m)^` + name + `[ {]`).MatchString(body) {
			t.Errorf("%s is in the dashboard and not exported", name)
		}
	}
}
