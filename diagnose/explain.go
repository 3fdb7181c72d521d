package diagnose

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"zapcast/ingest"
)

// The levels of a finding.
const (
	Verdict = "verdict" // the most likely cause, or that there is none; the first finding
	Good    = "good"
	Warn    = "warn"
	Bad     = "bad"
)

// A Finding is one sentence of a diagnosis. Code names it for those who say it
// in another language, Values are the figures and names in it.
type Finding struct {
	Level  string            `json:"level"`
	Code   string            `json:"code"`
	Values map[string]string `json:"values"`
	Text   string            `json:"text"`
}

// values are pairs of name and value.
func finding(level, code string, values ...string) Finding {
	f := Finding{Level: level, Code: code, Values: map[string]string{}, Text: sentences[code]}
	if f.Text == "" {
		panic("diagnose: no sentence for " + code)
	}
	for i := 0; i < len(values); i += 2 {
		f.Values[values[i]] = values[i+1]
		f.Text = strings.ReplaceAll(f.Text, "{"+values[i]+"}", values[i+1])
	}
	return f
}

// Explain says what the facts mean: the verdict first, then what speaks for it,
// from the interface to the viewer.
func Explain(f Facts) []Finding {
	found := []Finding{verdict(f)}
	if f.Group.IsValid() {
		found = append(found, network(f)...)
	}
	if f.Opened {
		found = append(found, stream(f)...)
	}
	return found
}

// verdict is the first of these that is true: each presumes that those before
// it are not.
func verdict(f Facts) Finding {
	arrived := f.After.Datagrams - f.Before.Datagrams
	useful := f.After.Packets - f.Before.Packets
	name := f.Link.Name
	switch {
	case f.Refused != "" && f.Link.Exists != No:
		return finding(Verdict, "refused", "error", f.Refused)
	case f.Link.Exists == No:
		return finding(Verdict, "link_missing", "interface", name)
	case name != "" && f.Link.Exists == Yes && !f.Link.Up:
		return finding(Verdict, "link_down", "interface", name)
	case f.Link.Carrier == No:
		return finding(Verdict, "link_unplugged", "interface", name)
	case useful > 0:
		return watchable(f)
	case arrived > 0:
		return finding(Verdict, "useless", "datagrams", number(arrived), "seen", f.Seen)
	case !f.Group.IsValid():
		return finding(Verdict, "silent_source", "source", f.Source, "seen", f.Seen)
	case f.Member == No:
		return finding(Verdict, "not_joined", "group", f.Group.Addr().String(), "interface", name)
	case f.Wire.Looked && f.Wire.Packets > 0:
		return lostOnTheWay(f)
	default:
		return nothingSent(f)
	}
}

// watchable: the stream arrives, so the fault is in it or behind us.
func watchable(f Facts) Finding {
	packets := f.After.Packets - f.Before.Packets
	lost := f.After.Lost - f.Before.Lost
	dropped := f.After.Overflow - f.Before.Overflow
	switch {
	case dropped > 0:
		return finding(Verdict, "overflow", "dropped", number(dropped), "buffer", number(int64(f.After.ReceiveBuffer)>>10))
	case lost*100 > packets:
		return finding(Verdict, "lossy", "lost", number(lost), "share", fmt.Sprintf("%.1f", 100*float64(lost)/float64(lost+packets)))
	case f.RandomAccess < 0 && f.Codec != "":
		return finding(Verdict, "no_start", "codec", f.Codec)
	case f.Codec != "" && f.Codec != "h264":
		return finding(Verdict, "codec", "codec", f.Codec)
	case f.Blocked > 0:
		return finding(Verdict, "slow_viewer", "n", strconv.Itoa(f.Blocked))
	}
	return finding(Verdict, "fine", "rate", megabits(f.BitRate))
}

// lostOnTheWay: the interface gets the group's packets and the socket does not.
func lostOnTheWay(f Facts) Finding {
	port := strconv.Itoa(int(f.Group.Port()))
	sender := ""
	if len(f.Wire.Senders) > 0 {
		sender = f.Wire.Senders[0].String()
	}
	switch {
	case f.Wire.OnPort == 0:
		return finding(Verdict, "other_port", "port", port, "ports", joinPorts(f.Wire.Ports))
	case f.Sender.IsValid() && !f.Wire.has(f.Sender):
		return finding(Verdict, "other_sender", "sender", f.Sender.String(), "senders", joinAddrs(f.Wire.Senders))
	case f.Path > 0 || f.Link.Filter == 1:
		return finding(Verdict, "path_filter", "interface", f.Link.Name, "sender", sender)
	}
	return finding(Verdict, "firewall", "interface", f.Link.Name, "group", f.Group.Addr().String(), "port", port)
}

// nothingSent: the group does not reach this machine.
func nothingSent(f Facts) Finding {
	name, group := f.Link.Name, f.Group.Addr().String()
	switch {
	case f.Sender.IsValid() && f.Queries.Heard > 0 && f.Queries.Version < sourceSpecific(f.Group.Addr()):
		return finding(Verdict, "old_querier", "querier", f.Queries.From.String(), "version", strconv.Itoa(f.Queries.Version))
	case f.Others > 0:
		return finding(Verdict, "only_this", "group", group, "interface", name, "n", strconv.Itoa(f.Others))
	case f.Elsewhere != "":
		return finding(Verdict, "elsewhere", "interface", name, "other", f.Elsewhere)
	case f.Queries.Heard > 0:
		return finding(Verdict, "not_sent", "group", group, "interface", name)
	case f.Queries.Listening && f.Queries.Since >= queryInterval:
		return finding(Verdict, "no_querier", "group", group, "interface", name, "time", seconds(f.Queries.Since))
	}
	return finding(Verdict, "nothing", "group", group, "interface", name)
}

// queryInterval is how often a querier asks by default (RFC 3376 §8.2), with
// some patience.
const queryInterval = 130 * time.Second

// sourceSpecific is the version of IGMP or MLD that knows of sources.
func sourceSpecific(group netip.Addr) int {
	if group.Is4() {
		return 3
	}
	return 2
}

func network(f Facts) (found []Finding) {
	name := f.Link.Name
	switch {
	case name == "" || f.Link.Exists != Yes || !f.Link.Up:
	case len(f.Link.Addresses) == 0:
		found = append(found, finding(Warn, "link_bare", "interface", name))
	default:
		found = append(found, finding(Good, "link", "interface", name, "addresses", joinAddrs(f.Link.Addresses)))
	}
	switch f.Member {
	case Yes:
		found = append(found, finding(Good, "joined", "group", f.Group.Addr().String(), "interface", name))
	case No:
		found = append(found, finding(Bad, "unjoined", "group", f.Group.Addr().String(), "interface", name))
	}
	switch q := f.Queries; {
	case q.Heard > 0:
		found = append(found, finding(Good, "query", "querier", q.From.String(), "time", seconds(q.Ago), "version", strconv.Itoa(q.Version)))
	case q.Listening:
		found = append(found, finding(Warn, "no_query", "interface", name, "time", seconds(q.Since)))
	default:
		found = append(found, finding(Warn, "deaf"))
	}
	switch w := f.Wire; {
	case !w.Looked:
		found = append(found, finding(Warn, "blind"))
	case w.Packets == 0:
		found = append(found, finding(Bad, "wire_empty", "interface", name, "time", seconds(w.Time)))
	default:
		found = append(found, finding(Good, "wire", "interface", name, "time", seconds(w.Time), "packets", number(int64(w.Packets)),
			"senders", joinAddrs(w.Senders)))
	}
	if f.Path > 0 {
		found = append(found, finding(Bad, "path_dropped", "packets", number(f.Path)))
	}
	for _, warning := range f.After.Warnings {
		found = append(found, finding(Warn, "warning", "text", warning))
	}
	return found
}

func stream(f Facts) (found []Finding) {
	level := Good
	if f.After.Packets == f.Before.Packets {
		level = Bad
	}
	if f.Seen != "" {
		found = append(found, finding(level, "seen", "seen", f.Seen))
	}
	kinds := kindsOf(f.Before, f.After)
	found = append(found, finding(level, "kinds", "time", seconds(f.Took), "kinds", kinds))
	if fcc := f.After.FCC; fcc != nil && fcc.Kind != "" {
		found = append(found, fastChange(fcc))
	}
	if r := f.After.Repair; r != nil {
		level := Good
		if r.Useless {
			level = Warn
		}
		found = append(found, finding(level, "parity", "code", known(r.Code), "where", known(r.Where), "parity", number(r.Parity), "state", r.State))
	}
	if f.After.Packets > f.Before.Packets {
		switch {
		case f.RandomAccess >= 0:
			found = append(found, finding(Good, "picture", "codec", known(f.Codec), "rate", megabits(f.BitRate), "time", seconds(f.RandomAccess)))
		default:
			found = append(found, finding(Warn, "no_picture", "codec", known(f.Codec), "rate", megabits(f.BitRate)))
		}
	}
	if f.After.Packets > 0 {
		if lost := f.After.Lost; lost > 0 {
			found = append(found, finding(Warn, "lost", "lost", number(lost), "reordered", number(f.After.Reordered)))
		} else {
			found = append(found, finding(Good, "whole", "packets", number(f.After.Packets)))
		}
	}
	return found
}

// fastChange says what came of asking for a burst.
func fastChange(fcc *ingest.FCCStatus) Finding {
	server := fcc.Asked
	if server == "" {
		server = fcc.Server
	}
	switch {
	case fcc.Kind == ingest.StartBurst && fcc.Reason == "":
		return finding(Good, "fcc_burst", "server", server, "time", strconv.FormatFloat(fcc.ReplyTime.Seconds()*1e3, 'f', 1, 64))
	case fcc.Kind == ingest.StartBurst:
		return finding(Warn, "fcc_broken", "server", server, "reason", fcc.Reason)
	}
	return finding(Warn, "fcc_none", "server", server, "reason", fcc.Reason)
}

// kindsOf says what the socket took between two looks.
func kindsOf(before, after ingest.Status) string {
	datagrams := after.Datagrams - before.Datagrams
	parts := []string{number(datagrams)}
	for _, kind := range []struct {
		name   string
		before int64
		after  int64
	}{
		{"MPEG-TS", before.Packets, after.Packets},
		{"RTCP", before.RTCP, after.RTCP},
		{"FEC", before.FEC, after.FEC},
		{"neither RTP nor TS", before.Foreign, after.Foreign},
		{"malformed", before.Malformed, after.Malformed},
		{"not whole TS", before.BadTS, after.BadTS},
		{"duplicates", before.Duplicates, after.Duplicates},
	} {
		if n := kind.after - kind.before; n > 0 {
			parts = append(parts, kind.name+" "+number(n))
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return parts[0] + " (" + strings.Join(parts[1:], ", ") + ")"
}

func known(codec string) string {
	if codec == "" {
		return "?"
	}
	return codec
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) }

func megabits(rate int64) string { return strconv.FormatFloat(float64(rate)/1e6, 'f', 1, 64) }

func joinAddrs(addrs []netip.Addr) string {
	var b []string
	for _, a := range addrs {
		b = append(b, a.String())
	}
	return strings.Join(b, ", ")
}

func joinPorts(ports []uint16) string {
	var b []string
	for _, p := range ports {
		b = append(b, strconv.Itoa(int(p)))
	}
	return strings.Join(b, ", ")
}
