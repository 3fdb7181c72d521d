package playout

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of a rate.
const (
	minFactor, maxFactor = 0.01, 100.0
	minBitRate           = 1000           // one TS packet in 1.5 s
	maxBitRate           = 10_000_000_000 // more than the program could send
)

// Rate says how fast a stream is played. The zero value plays it in its own
// time, by its PCR.
type Rate struct {
	Factor        float64 // of the stream's own time, 0.01 to 100; 0 means 1
	BitsPerSecond int64   // constant bit rate of the TS packets, 1000 to 10^10; 0: by the PCR
}

// rateUnits are tried in this order, the longest first.
var rateUnits = []struct {
	suffix string
	bits   float64
}{
	{"kbit/s", 1e3},
	{"mbit/s", 1e6},
	{"gbit/s", 1e9},
	{"bit/s", 1},
	{"k", 1e3},
	{"m", 1e6},
	{"g", 1e9},
}

// ParseRate reads a factor, as in "2" or "0.5x", or a bit rate with its unit,
// as in "800k", "8M", "1.5G" or "8Mbit/s".
func ParseRate(s string) (Rate, error) {
	number, bits := strings.ToLower(strings.TrimSpace(s)), 0.0
	for _, u := range rateUnits {
		if n, ok := strings.CutSuffix(number, u.suffix); ok {
			number, bits = n, u.bits
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(number, "x"), 64)
	rate := Rate{Factor: v}
	if bits > 0 {
		v, err = strconv.ParseFloat(number, 64)
		if rate = (Rate{}); v > 0 && v*bits <= maxBitRate {
			rate.BitsPerSecond = max(1, int64(v*bits))
		}
	}
	if err != nil || rate == (Rate{}) || rate.validate() != nil {
		return Rate{}, fmt.Errorf("playout: rate %q: want a factor from %v to %v, as in 2 or 0.5x, or a bit rate from 1k to 10G, as in 8M", s, minFactor, maxFactor)
	}
	return rate, nil
}

func (r Rate) validate() error {
	if r.Factor != 0 && !(r.Factor >= minFactor && r.Factor <= maxFactor) {
		return fmt.Errorf("playout: rate factor %v: want %v to %v", r.Factor, minFactor, maxFactor)
	}
	if r.BitsPerSecond != 0 && (r.BitsPerSecond < minBitRate || r.BitsPerSecond > maxBitRate) {
		return fmt.Errorf("playout: rate %d bit/s: want %d to %d", r.BitsPerSecond, minBitRate, int64(maxBitRate))
	}
	return nil
}
