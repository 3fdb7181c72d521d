package catchup

import (
	"strings"
	"testing"
	"time"
)

func TestNew_placeholders(t *testing.T) {
	long := strings.Repeat("y", maxPlaceholder)
	for in, want := range map[string]string{
		"/ch1?playseek={utc}":                       "{utc}",
		"/ch1?playseek=%7Butc%7D-%7Butcend%7D":      "{utc}",
		"/ch1?playseek={start:YmdHMS}-{end:YmdHMS}": "{start:YmdHMS}",
		"/ch1?playseek=${(b)yyyyMMddHHmmss|UTC}":    "${(b)yyyyMMddHHmmss|UTC}",
		"/ch1?playseek={(e)YmdHMS}":                 "{(e)YmdHMS}",
		"/ch1?begin=${start}&playseek=1":            "${start}",
		"/{Y}/{m}/ch1.ts":                           "{Y}",
		"/ch1?x={{utc}}":                            "{utc}",
		"/ch1?playseek={utc}&playseek=946684800":    "", // the second is one
		"/ch1?AuthInfo={0A-{}&x={unknown}&y={utc":   "",
		"/ch1?x={(b)" + long + "}":                  "",
		"/ch1?r2h-start={utc}":                      "", // which does not reach the server
	} {
		if got := New(in, "", time.Unix(946684800, 0)).Unfilled; got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}
