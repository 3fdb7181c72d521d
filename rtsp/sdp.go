package rtsp

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// A description is what an SDP (RFC 4566) says that matters here. It is read
// line by line and leniently: servers leave out v=, s= and t=, cut c= short and
// name no rtpmap for the static payload type 33.
type description struct {
	control  string        // of the first media section; of any where there is none
	encoding string        // "MP2T" or what the first section's rtpmap says; empty: nothing
	duration time.Duration // of a recording; 0: open-ended or not told
	group    string        // address of c=, "239.1.1.1"
	port     uint16        // of the first m=
}

var errNoSDP = errors.New("expected an SDP in the answer to DESCRIBE")

// parseSDP fails where there is not one line of an SDP's form.
func parseSDP(body []byte) (d description, err error) {
	media, lines := 0, 0
	static := false // the payload type is 33, which needs no rtpmap
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		if len(line) < 2 || line[1] != '=' || line[0] < 'a' || line[0] > 'z' {
			continue
		}
		lines++
		value := line[2:]
		if line[0] == 'm' {
			if media++; media == 1 {
				d.control = "" // that of the session is for the session
				d.port, static = parseMedia(value)
			}
			continue
		}
		if media > 1 {
			continue
		}
		switch name, arg, _ := strings.Cut(value, ":"); {
		case line[0] == 'c':
			if words := strings.Fields(value); len(words) >= 3 {
				d.group, _, _ = strings.Cut(words[2], "/")
			}
		case line[0] != 'a':
		case name == "control" && d.control == "":
			d.control = strings.TrimSpace(arg)
		case name == "range" && d.duration == 0:
			d.duration = parseSpan(arg)
		case name == "rtpmap" && media == 1:
			if words := strings.Fields(arg); len(words) >= 2 && d.encoding == "" {
				d.encoding, _, _ = strings.Cut(words[1], "/")
			}
		}
	}
	if lines == 0 {
		if len(body) == 0 {
			return d, errors.New(errNoSDP.Error() + ", found no body")
		}
		return d, errors.New(errNoSDP.Error() + ", found " + quote(string(body)))
	}
	if d.encoding == "" && static {
		d.encoding = "MP2T"
	}
	return d, nil
}

// parseMedia reads "video 5000/2 RTP/AVP 33 …".
func parseMedia(value string) (port uint16, static bool) {
	words := strings.Fields(value)
	if len(words) >= 2 {
		first, _, _ := strings.Cut(words[1], "/")
		n, err := strconv.ParseUint(first, 10, 16)
		if err == nil {
			port = uint16(n)
		}
	}
	return port, len(words) >= 4 && words[3] == "33"
}

// parseSpan returns the length of "npt=0-1234.5", RFC 2326 §3.6; 0 where the end
// is open, "now", or no time.
func parseSpan(value string) time.Duration {
	text, ok := strings.CutPrefix(strings.TrimSpace(value), "npt=")
	if !ok {
		return 0
	}
	begin, end, _ := strings.Cut(text, "-")
	from, ok := parseNPT(begin)
	to, okEnd := parseNPT(end)
	if !ok && strings.TrimSpace(begin) != "" || !okEnd || to <= from {
		return 0
	}
	return to - from
}

// parseNPT reads seconds or hh:mm:ss, with a fraction.
func parseNPT(text string) (time.Duration, bool) {
	var seconds float64
	parts := strings.Split(strings.TrimSpace(text), ":")
	if len(parts) != 1 && len(parts) != 3 {
		return 0, false
	}
	for _, part := range parts {
		if part == "" || strings.Trim(part, "0123456789.") != "" {
			return 0, false
		}
		v, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return 0, false
		}
		seconds = seconds*60 + v
	}
	if seconds > math.MaxInt32 { // 68 years
		return 0, false
	}
	return time.Duration(math.Round(seconds*1e3)) * time.Millisecond, true
}
