package mpegts

import "testing"

func TestContinuity_situations(t *testing.T) {
	const payload, none, jump = "payload", "none", "jump"
	type step struct {
		kind string
		cc   uint8
		want bool
	}
	for name, steps := range map[string][]step{
		"counts on":              {{payload, 14, true}, {payload, 15, true}, {payload, 0, true}},
		"gap":                    {{payload, 1, true}, {payload, 3, false}, {payload, 4, true}},
		"sent twice":             {{payload, 1, true}, {payload, 1, true}, {payload, 2, true}},
		"sent three times":       {{payload, 1, true}, {payload, 1, true}, {payload, 1, false}},
		"no payload":             {{payload, 1, true}, {none, 1, true}, {none, 1, true}, {payload, 2, true}},
		"no payload, but counts": {{payload, 1, true}, {none, 2, false}},
		"announced jump":         {{payload, 1, true}, {jump, 9, true}, {payload, 10, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				c Continuity
				m mux
			)
			for i, s := range steps {
				var p Packet
				switch s.kind {
				case payload:
					p = m.packet(7, false, nil, make([]byte, 100))
				case none:
					p = m.packet(7, false, nil, nil)
				case jump:
					p = m.packet(7, false, []byte{discontinuityBit}, make([]byte, 100))
				}
				p.setContinuity(s.cc)
				if got := c.Check(p); got != s.want {
					t.Errorf("step %d: %s with counter %d: got %v, want %v", i, s.kind, s.cc, got, s.want)
				}
			}
		})
	}
}

func TestContinuity_nullPacketsAndOtherPIDs(t *testing.T) {
	var (
		c Continuity
		m mux
	)
	for i := range uint8(5) {
		m.null()
		m.last().setContinuity(3 * i)
		if !c.Check(m.last()) {
			t.Errorf("null packet %d does not continue", i)
		}
		m.audio()
		if !c.Check(m.last()) {
			t.Errorf("audio packet %d does not continue", i)
		}
	}
}
