package httpout

import (
	"runtime/metrics"
	"time"
)

// usage is what the operating system says of the process; zero where it does
// not say.
type usage struct {
	openFiles     int
	cpu           time.Duration
	residentBytes int64
}

// heapBytes is the memory of live and not yet swept Go objects. Unlike
// runtime.ReadMemStats it stops nothing.
func heapBytes() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}
