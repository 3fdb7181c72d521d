package catchup

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Plan is what a request for a stream means, without the parameters that are
// the proxy's own: they never reach a server.
type Plan struct {
	Target    string // path and query for the server
	Range     string // of PLAY: "clock=20240101T120000Z-" or "npt=30-"; empty: none
	Shifted   bool   // it is another moment than now: the stream is this viewer's own
	Duration  bool   // only the length of the recording is asked for
	Interface string // network interface asked for
	Unfilled  string // the first placeholder in Target, such as "{utc}"; empty: none
}

// own are the parameters that are the proxy's.
var own = map[string]bool{
	"r2h-seek-name": true, "r2h-seek-offset": true, "r2h-seek-mode": true, "r2h-start": true, "r2h-duration": true,
	"r2h-ifname": true, "r2h-ifname-fcc": true, "r2h-token": true, "snapshot": true,
}

// seekNames are the parameters that say the time where r2h-seek-name names none.
var seekNames = []string{"playseek", "tvdr"}

// New reads a target: path and query as they came. agent is the viewer's
// User-Agent, which may say his zone. What cannot be read is passed on as it is:
// the server decides.
func New(target, agent string, now time.Time) Plan {
	q := split(target)
	settings := map[string]string{}
	for _, p := range q.params {
		name := strings.ToLower(p.name())
		if _, given := settings[name]; own[name] && !given {
			settings[name] = p.value()
		}
	}
	q.remove(func(p param) bool { return own[strings.ToLower(p.name())] })

	plan := Plan{Duration: settings["r2h-duration"] == "1", Interface: settings["r2h-ifname"]}
	if start, ok := seconds(settings["r2h-start"]); ok {
		plan.Range, plan.Shifted = "npt="+start+"-", true
	}
	by, _ := parseOffsets(settings["r2h-seek-offset"])
	if seeks := seekName(q, settings["r2h-seek-name"]); seeks != nil {
		plan.seek(&q, seeks, by, parseMode(settings["r2h-seek-mode"]), agent, now)
	}
	plan.Target = q.String()
	plan.Unfilled = placeholder(unescape(plan.Target))
	return plan
}

// times are those of own that say which moment is asked for.
var times = []string{"r2h-seek-name", "r2h-seek-offset", "r2h-seek-mode", "r2h-start", "r2h-duration"}

// Ask puts what a viewer's target says of the time behind the target of a
// configured URL, whose own parameters come first and so count. Nothing else of
// his reaches the server. It reports whether there was something.
func Ask(configured, viewers string) (target string, ok bool) {
	q, asked := split(configured), split(viewers)
	name := ""
	for _, p := range slices.Concat(q.params, asked.params) {
		if name == "" && strings.EqualFold(p.name(), "r2h-seek-name") {
			name = p.value()
		}
	}
	names := seekNames
	if name != "" {
		names = []string{name}
	}
	for _, p := range asked.params {
		is := func(name string) bool { return strings.EqualFold(p.name(), name) }
		if !slices.ContainsFunc(times, is) && !slices.ContainsFunc(names, is) {
			continue
		}
		p.sep = '&'
		if len(q.params) == 0 {
			p.sep = '?'
		}
		q.params = append(q.params, p)
		ok = true
	}
	return q.String(), ok
}

// seek brings the seek parameter into the form that the server is asked in.
func (plan *Plan) seek(q *query, seeks func(param) bool, by offsets, m mode, agent string, now time.Time) {
	at := -1
	for i, p := range q.params {
		if seeks(p) && !strings.ContainsAny(p.value(), "{}") {
			at = i
			break
		}
	}
	if at < 0 {
		return // only placeholders, which nobody has filled in
	}
	plan.Shifted = true
	chosen := q.params[at]
	span, ok := ParseSpan(chosen.value())
	ahead, _ := AgentZone(agent)
	if ok && m.ranged {
		zone := ahead
		if m.zoned {
			zone = m.zone
		}
		begin := span.Begin.In(zone).Add(by.begin)
		if !begin.After(now) && now.Sub(begin) < m.window {
			plan.Range = "clock=" + begin.UTC().Format("20060102T150405Z") + "-"
			q.remove(seeks)
			return
		}
	}
	if ok {
		if moved := span.shift(ahead, by).String(); moved != chosen.value() {
			key, before, _ := strings.Cut(chosen.raw, "=")
			chosen.raw = key + "=" + escaped(moved, before)
		}
	}
	q.params[at].raw = chosen.raw
	i := -1
	q.remove(func(p param) bool {
		i++
		return seeks(p) && i != at
	})
}

// seekName finds the parameter that says the time: it returns what knows it, or
// nil where there is none. Names that are not given are known in any case.
func seekName(q query, asked string) (seeks func(param) bool) {
	candidates := []func(param) bool{func(p param) bool { return p.name() == asked }}
	if asked == "" {
		candidates = candidates[:0]
		for _, name := range seekNames {
			candidates = append(candidates, func(p param) bool { return strings.EqualFold(p.name(), name) })
		}
	}
	for _, seeks := range candidates {
		if slices.ContainsFunc(q.params, seeks) {
			return seeks
		}
	}
	return nil
}

// seconds reads a decimal number of seconds, and returns it as it is written.
func seconds(s string) (string, bool) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "0123456789.") != "" || v > 1e9 {
		return "", false
	}
	return s, true
}
