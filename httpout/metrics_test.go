package httpout

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

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
		"zapcast_viewers_started_total 1", `zapcast_refused_total{reason="not_found"} 1`, `zapcast_zap_first_byte_seconds_count{start="live"} 1`,
		`zapcast_zap_random_access_seconds_bucket{start="history",le="+Inf"} 0`, `zapcast_fcc_total{outcome="burst"} 0`,
	} {
		if !strings.Contains(body, "\n"+want+"\n") && !strings.HasPrefix(body, want+"\n") {
			t.Errorf("want the line %q in\n%s", want, body)
		}
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

func BenchmarkMetrics(b *testing.B) {
	engine, err := fanout.New(engineOf500(b))
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	s := New(Config{Metrics: NewMetrics()}, engine, nil)
	open500(b, engine)
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		s.writeMetrics(&out)
	}
}
