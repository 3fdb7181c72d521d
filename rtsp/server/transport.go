package server

import (
	"strconv"
	"strings"

	"zapcast/tune"
)

// A way is how the packets of a session travel.
type way int

const (
	interleaved way = iota + 1 // in the connection of the requests
	unicast                    // in datagrams to the client
	multicast                  // in datagrams to a group
)

// A transport is one alternative of a Transport header (RFC 2326 §12.39).
type transport struct {
	profile string // as the client wrote it
	way     way
	first   int // channel, or port of the client, of the packets; -1: he named none
	second  int // the same of the reports
}

// profiles are the spellings that clients use for RTP.
var profiles = map[string]way{
	"RTP/AVP/TCP": interleaved, "MP2T/RTP/TCP": interleaved,
	"RTP/AVP": unicast, "RTP/AVP/UDP": unicast, "MP2T/RTP/UDP": unicast,
}

// parseTransports returns the alternatives of a Transport header that are known,
// in the client's order. What he says of destinations is not heard: packets go
// to where he asks from.
func parseTransports(header string) (known []transport, err error) {
	for alternative := range strings.SplitSeq(header, ",") {
		t, ok, err := parseTransport(alternative)
		if err != nil {
			return nil, err
		}
		if ok {
			known = append(known, t)
		}
	}
	if len(known) == 0 {
		return nil, tune.Refuse(461, "expected a Transport of RTP/AVP/TCP or RTP/AVP, found %s", tune.Quote(header))
	}
	return known, nil
}

// parseTransport parses one alternative; ok is false where it is none of ours.
func parseTransport(s string) (t transport, ok bool, err error) {
	profile, rest, _ := strings.Cut(strings.TrimSpace(s), ";")
	t = transport{profile: strings.TrimSpace(profile), first: -1, second: -1}
	t.way = profiles[strings.ToUpper(t.profile)]
	if t.way == 0 {
		return t, false, nil
	}
	most := 255
	pair := "interleaved"
	if t.way == unicast {
		most, pair = 65535, "client_port"
	}
	for parameter := range strings.SplitSeq(rest, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		switch {
		case strings.EqualFold(key, "multicast") && t.way == unicast:
			t.way = multicast
		case strings.EqualFold(key, "mode") && !strings.EqualFold(strings.Trim(value, `"`), "play"):
			return t, false, nil
		case strings.EqualFold(key, pair):
			if t.first, t.second, ok = parsePair(value, most); !ok {
				return t, false, tune.Refuse(400, "expected %s=N-N of at most %d, found %s", pair, most, tune.Quote(value))
			}
		}
	}
	return t, t.way != unicast || t.first > 0, nil
}

// parsePair parses "a-b", or "a" with a+1 for b.
func parsePair(s string, most int) (first, second int, ok bool) {
	a, b, both := strings.Cut(s, "-")
	number := func(s string) int {
		n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
		if err != nil || int(n) > most {
			return -1
		}
		return int(n)
	}
	first = number(a)
	second = first + 1
	if both {
		second = number(b)
	}
	return first, second, first >= 0 && second >= 0 && second <= most && first != second
}

// pair is how a header writes two numbers.
func pair(first, second int) string { return strconv.Itoa(first) + "-" + strconv.Itoa(second) }
