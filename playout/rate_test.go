package playout

import "testing"

func TestParseRate(t *testing.T) {
	for s, want := range map[string]Rate{
		"1": {Factor: 1}, "1.0": {Factor: 1}, "2x": {Factor: 2}, "0.5X": {Factor: 0.5}, " 100x ": {Factor: 100},
		"8M": {BitsPerSecond: 8e6}, "8m": {BitsPerSecond: 8e6}, "800k": {BitsPerSecond: 8e5}, "1.5G": {BitsPerSecond: 15e8},
		"8Mbit/s": {BitsPerSecond: 8e6}, "64000bit/s": {BitsPerSecond: 64000}, "10G": {BitsPerSecond: 1e10},
	} {
		if got, err := ParseRate(s); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %+v, %v, want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "0", "-1", "8000000", "1e9", "0.001", "NaN", "Inf", "NaNM", "0M", "-8M", "11G", "0.5k", "8MM", "8Mx", "M"} {
		if got, err := ParseRate(s); err == nil {
			t.Errorf("ParseRate(%q) = %+v, want an error", s, got)
		}
	}
}
