package httpout

import (
	"bytes"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// zapBuckets are the upper bounds of the histograms of waiting times, in
// seconds: an instant start takes some milliseconds, a cold one as long as the
// next random-access point.
var zapBuckets = [...]float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10}

// zapStarts are the kinds of start that are told apart, as in
// fanout.ViewerStatus.
var zapStarts = [...]string{"history", "cold", "live"}

// Metrics counts how long viewers wait. It is made before the engine, which
// tells it. Its methods may be called from any goroutine.
type Metrics struct {
	firstByte, randomAccess [len(zapStarts)]waits
}

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics { return new(Metrics) }

// Zapped is for fanout.Config.Zapped.
func (m *Metrics) Zapped(start string, randomAccess bool, after time.Duration) {
	kinds := &m.firstByte
	if randomAccess {
		kinds = &m.randomAccess
	}
	if i := slices.Index(zapStarts[:], start); i >= 0 {
		kinds[i].count(after)
	}
}

func (m *Metrics) write(b *bytes.Buffer) {
	for i, start := range zapStarts {
		m.firstByte[i].write(b, "zapcast_zap_first_byte_seconds", start)
		m.randomAccess[i].write(b, "zapcast_zap_random_access_seconds", start)
	}
}

// waits is a histogram.
type waits struct {
	buckets [len(zapBuckets) + 1]atomic.Int64 // the last is all above
	total   atomic.Int64                      // nanoseconds
}

func (w *waits) count(d time.Duration) {
	i, _ := slices.BinarySearch(zapBuckets[:], d.Seconds())
	w.buckets[i].Add(1)
	w.total.Add(int64(d))
}

// write writes it as Prometheus has histograms: each bucket holds those below it.
func (w *waits) write(b *bytes.Buffer, name, start string) {
	sum := int64(0)
	for i := range w.buckets {
		le := "+Inf"
		if i < len(zapBuckets) {
			le = strconv.FormatFloat(zapBuckets[i], 'g', -1, 64)
		}
		sum += w.buckets[i].Load()
		metrics.WriteCounterUint64(b, name+`_bucket{start="`+start+`",le="`+le+`"}`, uint64(sum))
	}
	metrics.WriteCounterFloat64(b, name+`_sum{start="`+start+`"}`, time.Duration(w.total.Load()).Seconds())
	metrics.WriteCounterUint64(b, name+`_count{start="`+start+`"}`, uint64(sum))
}

// zapsJSON is the histogram of one kind of start in /api/status: the waits for
// the first random-access byte; for viewers who start where there is none, those
// for the first byte.
type zapsJSON struct {
	Start   string       `json:"start"`
	Buckets []bucketJSON `json:"buckets"`
}

type bucketJSON struct {
	UpToMS *float64 `json:"up_to_ms"`
	Count  int64    `json:"count"`
}

func (m *Metrics) status() []zapsJSON {
	out := []zapsJSON{}
	if m == nil {
		return out
	}
	for i, start := range zapStarts {
		w := &m.randomAccess[i]
		if start == "live" {
			w = &m.firstByte[i]
		}
		shown := zapsJSON{Start: start}
		for k := range w.buckets {
			var upTo *float64
			if k < len(zapBuckets) {
				ms := zapBuckets[k] * 1000
				upTo = &ms
			}
			shown.Buckets = append(shown.Buckets, bucketJSON{upTo, w.buckets[k].Load()})
		}
		out = append(out, shown)
	}
	return out
}
