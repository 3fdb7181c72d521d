package catchup

import (
	"strconv"
	"strings"
	"time"
)

// A Span is a seek value: "BEGIN", "BEGIN-" or "BEGIN-END".
type Span struct {
	Begin, End Time
	closed     bool // there is an end
	dash       bool // there is a "-" behind the begin
}

// ParseSpan reads a seek value. Dates contain "-" too: the one that separates is
// the one with a time on both sides, or with one before it and nothing behind.
func ParseSpan(s string) (p Span, ok bool) {
	if p.Begin, ok = ParseTime(s); ok {
		return p, true
	}
	p.dash = true
	for i := range len(s) {
		if s[i] != '-' {
			continue
		}
		if p.Begin, ok = ParseTime(s[:i]); !ok {
			continue
		}
		if i == len(s)-1 {
			return p, true
		}
		if p.End, p.closed = ParseTime(s[i+1:]); p.closed {
			return p, true
		}
	}
	return Span{}, false
}

// String writes the value in the form in which it came.
func (p Span) String() string {
	s := p.Begin.String()
	if p.dash {
		s += "-"
	}
	if p.closed {
		s += p.End.String()
	}
	return s
}

// shift takes times without a zone from the client's, which is ahead of UTC by so
// much, to UTC, and moves begin and end, zone or not, by the offsets.
func (p Span) shift(ahead time.Duration, by offsets) Span {
	utc := func(t Time) Time {
		if t.Zoned() {
			return t
		}
		return t.Add(-ahead)
	}
	p.Begin = utc(p.Begin).Add(by.begin)
	if p.closed {
		p.End = utc(p.End).Add(by.end)
	}
	return p
}

// offsets are what begin and end are moved by.
type offsets struct{ begin, end time.Duration }

// maxOffset bounds an offset, in seconds: ten years.
const maxOffset = 10 * 366 * 86400

// parseOffsets reads "SECONDS", for both, or "SECONDS,SECONDS".
func parseOffsets(s string) (o offsets, ok bool) {
	first, second, both := strings.Cut(s, ",")
	if !both {
		second = first
	}
	begin, err1 := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	end, err2 := strconv.ParseInt(strings.TrimSpace(second), 10, 64)
	if err1 != nil || err2 != nil || max(begin, end) > maxOffset || min(begin, end) < -maxOffset {
		return o, false
	}
	return offsets{time.Duration(begin) * time.Second, time.Duration(end) * time.Second}, true
}

// Zones of a client run from UTC-12 to UTC+14.
const zoneLowest, zoneHighest = -12, 14

// agentMark is how a viewer's program says its zone: "TZ/UTC+8".
const agentMark = "TZ/"

// AgentZone returns by how much the zone in a User-Agent is ahead of UTC.
func AgentZone(agent string) (ahead time.Duration, ok bool) {
	i := strings.Index(strings.ToUpper(agent), agentMark)
	if i < 0 {
		return 0, false
	}
	mark := agent[i+len(agentMark):]
	n := len("UTC")
	for n < len(mark) && (mark[n] == '+' || mark[n] == '-' || '0' <= mark[n] && mark[n] <= '9') {
		n++
	}
	return parseZone(mark[:min(n, len(mark))])
}

// parseZone reads "UTC", "UTC+8" or "UTC-3".
func parseZone(s string) (ahead time.Duration, ok bool) {
	if len(s) < 3 || !strings.EqualFold(s[:3], "UTC") {
		return 0, false
	}
	if s = s[3:]; s == "" {
		return 0, true
	}
	n, err := strconv.Atoi(s)
	if err != nil || s[0] != '+' && s[0] != '-' || n < zoneLowest || n > zoneHighest {
		return 0, false
	}
	return time.Duration(n) * time.Hour, true
}

// A mode says how a server is told the time.
type mode struct {
	ranged bool          // by a Range header, within the window
	zone   time.Duration // ahead of UTC
	zoned  bool          // zone is given
	window time.Duration
}

// The window of the range mode, in seconds.
const defaultWindow, longestWindow = 3600, 86400

// parseMode reads "passthrough", "range", "range()", "range(TZ)", "range(SEC)",
// "range(TZ/SEC)" or "range(/SEC)". Everything else is passthrough.
func parseMode(s string) mode {
	inside, ok := strings.CutPrefix(s, "range")
	if !ok {
		return mode{}
	}
	m := mode{ranged: true, window: defaultWindow * time.Second}
	if inside == "" || inside == "()" {
		return m
	}
	if len(inside) < 2 || inside[0] != '(' || inside[len(inside)-1] != ')' {
		return mode{}
	}
	zone, seconds, both := strings.Cut(inside[1:len(inside)-1], "/")
	if !both && allDigits(zone) {
		zone, seconds = "", zone
	}
	if zone != "" {
		if m.zone, m.zoned = parseZone(zone); !m.zoned {
			return mode{}
		}
	}
	if seconds != "" || both {
		n, err := strconv.Atoi(seconds)
		if err != nil || !allDigits(seconds) || n < 1 || n > longestWindow {
			return mode{}
		}
		m.window = time.Duration(n) * time.Second
	}
	return m
}
