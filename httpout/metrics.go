package httpout

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"zapcast/ingest"
)

// zapBuckets are the upper bounds of the histograms of waiting times, in
// seconds: an instant start takes some milliseconds, a cold one as long as the
// next random-access point.
var zapBuckets = []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10}

// Metrics counts how long viewers wait. It is made before the engine, which
// tells it. Its methods may be called from any goroutine.
type Metrics struct {
	set *metrics.Set

	mu   sync.Mutex // guards made
	made map[string]*metrics.PrometheusHistogram
}

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics {
	m := &Metrics{set: metrics.NewSet(), made: map[string]*metrics.PrometheusHistogram{}}
	for _, start := range []string{"history", "cold", "live"} {
		m.histogram(start, false)
		m.histogram(start, true)
	}
	return m
}

// Zapped is for fanout.Config.Zapped.
func (m *Metrics) Zapped(start string, randomAccess bool, after time.Duration) {
	m.histogram(start, randomAccess).Update(after.Seconds())
}

// histogram returns the histogram of a kind of start.
func (m *Metrics) histogram(start string, randomAccess bool) *metrics.PrometheusHistogram {
	name := "zapcast_zap_first_byte_seconds"
	if randomAccess {
		name = "zapcast_zap_random_access_seconds"
	}
	name += `{start="` + start + `"}`
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.made[name]
	if h == nil {
		h = m.set.NewPrometheusHistogramExt(name, zapBuckets)
		m.made[name] = h
	}
	return h
}

// metrics answers /metrics in the text format of Prometheus. No label holds what
// a viewer can choose.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	config := s.config.Load()
	var b bytes.Buffer
	s.writeMetrics(&b)
	if config.Metrics != nil {
		config.Metrics.set.WritePrometheus(&b)
	}
	metrics.WriteProcessMetrics(&b)
	w.Header().Set("Cache-Control", noCache)
	answer(config, w, r, http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", b.Bytes())
	return nil
}

func (s *Server) writeMetrics(b *bytes.Buffer) {
	engine := s.engine.Status()
	gauge := func(name string, n int64) { metrics.WriteGaugeUint64(b, "zapcast_"+name, uint64(max(n, 0))) }
	counter := func(name string, n int64) { metrics.WriteCounterUint64(b, "zapcast_"+name, uint64(max(n, 0))) }
	label := func(key, value string) string { return "{" + key + "=" + strconv.Quote(value) + "}" }

	gauge("info"+label("version", s.config.Load().Version), 1)
	states := map[string]int64{"opening": 0, "starting": 0, "live": 0, "silent": 0, "lingering": 0, "ending": 0}
	for _, c := range engine.Channels {
		states[c.State]++
	}
	for _, state := range []string{"opening", "starting", "live", "silent", "lingering", "ending"} {
		gauge("channels"+label("state", state), states[state])
	}
	blocked := int64(0)
	for _, v := range engine.Viewers {
		if v.Blocked {
			blocked++
		}
	}
	gauge("viewers", int64(len(engine.Viewers)))
	gauge("viewers_blocked", blocked)
	gauge("stream_memory_bytes", engine.MemoryBytes)
	gauge("stream_memory_limit_bytes", engine.MemoryBudget)
	gauge("pending_connections", int64(s.pending.count()))

	t := &engine.Totals
	counter("channels_opened_total", t.Channels)
	counter("viewers_started_total", t.Viewers)
	counter("viewer_skips_total", t.Skips)
	counter("sent_bytes_total", t.Sent)
	counter("batches_total"+label("kind", "memory"), t.Blocks)
	counter("batches_total"+label("kind", "memfd"), t.Files)
	counter("received_bytes_total", t.Source.Bytes)
	counter("received_datagrams_total", t.Source.Datagrams)
	counter("received_packets_total", t.Source.Packets)
	counter("lost_packets_total"+label("cause", "line"), t.Source.Lost)
	counter("lost_packets_total"+label("cause", "overflow"), t.Source.Overflow)
	counter("repaired_packets_total"+label("by", "order"), t.Source.Reordered)
	counter("duplicate_packets_total", t.Source.Duplicates)
	counter("resyncs_total", t.Source.Resyncs)
	counter("bad_datagrams_total"+label("cause", "foreign"), t.Source.Foreign)
	counter("bad_datagrams_total"+label("cause", "malformed"), t.Source.Malformed)
	counter("bad_datagrams_total"+label("cause", "ts"), t.Source.BadTS)
	for _, outcome := range ingest.Outcomes {
		counter("fcc_total"+label("outcome", outcome), t.FCC[outcome])
	}
	for _, refused := range []struct {
		reason string
		n      int64
	}{
		{"bad_request", s.counters.badRequest.Load()},
		{"denied", s.counters.denied.Load()},
		{"gone", s.counters.gone.Load()},
		{"max_clients", s.counters.limit.Load()},
		{"method", s.counters.method.Load()},
		{"no_stream", s.counters.noStream.Load()},
		{"not_found", s.counters.notFound.Load()},
		{"pending_connections", s.counters.pending.Load()},
		{"too_large", s.counters.tooLarge.Load()},
	} {
		counter("refused_total"+label("reason", refused.reason), refused.n)
	}
}
