package httpout

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/VictoriaMetrics/metrics"

	"zapcast/ingest"
)

// metrics answers /metrics in the text format of Prometheus. No label holds what
// a viewer can choose.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	config := s.config.Load()
	var b bytes.Buffer
	s.writeMetrics(&b)
	if config.Metrics != nil {
		config.Metrics.write(&b)
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
	losses := &t.Source.Losses
	counter("repaired_packets_total"+label("by", "reed_solomon"), losses.ReedSolomon)
	counter("repaired_packets_total"+label("by", "row"), losses.Row)
	counter("repaired_packets_total"+label("by", "column"), losses.Column)
	counter("repaired_packets_total"+label("by", "retransmission"), losses.Retransmitted)
	counter("repaired_packets_total"+label("by", "fcc_burst"), losses.Burst)
	counter("repaired_late_packets_total", losses.Late)
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
