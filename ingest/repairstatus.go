package ingest

import (
	"fmt"
	"strings"
	"time"
)

// usefulAfter is how long parity may take to show before it is said to be
// missing.
const usefulAfter = 3 * time.Second

// RepairStatus says what repairs a stream, in words a person understands.
type RepairStatus struct {
	Code    string        // "Reed-Solomon 100+5 (integer)"; empty: none has been seen
	Where   string        // "in band", "port 4055", "ports 5002, 5004"; empty: nowhere
	State   string        // one sentence
	Useless bool          // it is configured or there, and cannot repair
	Latency time.Duration // the longest that a hole waits for it

	Parity  int64 // parity datagrams that came
	Unused  int64 // of groups that nothing was missing of
	Foreign int64 // for numbers far from the media
	Failed  int64 // groups whose parity contradicted the media
}

// status describes the repair; false: there is none, and no parity has been
// seen.
func (r *repair) status(latency time.Duration) (s RepairStatus, ok bool) {
	if r.decoder == nil && r.inBand.malformed == 0 {
		return s, false
	}
	s.Latency = latency
	s.Parity = r.inBand.parity
	for _, p := range r.ports {
		s.Parity += p.parity
	}
	s.Where = r.where()
	if r.decoder != nil {
		stats := r.decoder.Stats()
		s.Code = r.decoder.Code().String()
		s.Unused, s.Foreign, s.Failed = stats.Useless, stats.Foreign, stats.Failed
	}
	s.State = r.fault(s)
	s.Useless = s.State != ""
	switch {
	case s.Useless:
	case s.Parity == 0:
		s.State = "waiting for FEC on " + s.Where
	case r.now.Sub(r.last) >= parityLife:
		s.State = fmt.Sprintf("FEC stopped %s ago; nothing waits for it", r.now.Sub(r.last).Round(time.Second))
	default:
		s.State = "FEC arrives and fits"
	}
	return s, true
}

// where names the places where parity comes, or should.
func (r *repair) where() string {
	var ports []string
	for _, p := range r.ports {
		ports = append(ports, fmt.Sprint(p.spec.Group.Port()))
	}
	text := ""
	switch len(ports) {
	case 0:
	case 1:
		text = "port " + ports[0]
	default:
		text = "ports " + strings.Join(ports, ", ")
	}
	if r.inBand.parity > 0 {
		if text != "" {
			text += " and "
		}
		text += "in band"
	}
	return text
}

// fault says why the parity is of no use; empty: it is, as far as can be told.
func (r *repair) fault(s RepairStatus) string {
	if s.Parity > 0 {
		code := r.decoder.Code()
		stats := r.decoder.Stats()
		repaired := stats.Repaired[0] + stats.Repaired[1] + stats.Repaired[2]
		switch {
		case s.Foreign > s.Parity/2:
			return "the FEC on " + s.Where + " belongs to another stream: its sequence numbers are far from the media's"
		case code.Mismatch || s.Failed > 3 && repaired == 0:
			return "the FEC on " + s.Where + " does not fit the media: another stream's, or a code that is not known"
		}
		return ""
	}
	if r.inBand.malformed > 0 {
		return malformedParity("the media's port", r.inBand.fault)
	}
	waited := !r.began.IsZero() && r.now.Sub(r.began) >= usefulAfter
	for _, p := range r.ports {
		place := fmt.Sprintf("port %d", p.spec.Group.Port())
		switch {
		case p.fault != nil:
			return fmt.Sprintf("%s could not be joined for FEC: %v", place, p.fault)
		case p.malformed > 0:
			return malformedParity(place, p.fault)
		case p.media > 0:
			return place + " carries another stream and no FEC: the wrong port"
		case p.other > 0:
			return place + " carries something that is not FEC: the wrong port"
		}
	}
	if waited {
		return "nothing arrives on " + s.Where + ": the wrong port, or nobody sends FEC there"
	}
	return ""
}

func malformedParity(place string, err error) string {
	return fmt.Sprintf("the FEC on %s has a geometry that cannot be used: %v", place, err)
}
