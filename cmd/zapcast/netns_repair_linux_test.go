package main

import (
	"regexp"
	"strings"
	"testing"
)

// Parity that `zapcast send` makes brings back what its bad line loses: the
// viewer misses nothing, and the status says what has repaired it.
func TestNetns_repair(t *testing.T) {
	for name, tt := range map[string]struct{ send, url, code string }{
		"Reed-Solomon":          {"--fec rs:20,4 --drop 1%", "fec=5002", "Reed-Solomon 20+4 (integer)"},
		"Reed-Solomon, alpha":   {"--fec rs:48,6,alpha --drop 1%", "fec=5002", "Reed-Solomon 48+6 (alpha)"},
		"rows and columns":      {"--fec 2022-1:10,10 --drop 1%", "fec=2022-1", "SMPTE 2022-1 10×10, rows and columns"},
		"bursts":                {"--fec 2022-1:20,5 --drop 1%,3", "fec=2022-1", "SMPTE 2022-1 20×5, rows and columns"},
		"parity on a good line": {"--fec rs:20,4", "fec=5002", "Reed-Solomon 20+4 (integer)"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			s := l.serve("", "--interface", "eth7")
			viewer := l.watch(s, "/rtp/239.7.0.1:5000?"+tt.url, 1)
			eventually(t, func() bool { return len(s.status().Channels) == 1 }, "the group is joined")
			l.send(numberedFile(t, 1) + " --rate 8M --loop --interface peer7 --to rtp://239.7.0.1:5000 --seed 7 " + tt.send)
			viewer.more(t, numberedCount)
			viewer.whole(t, "the viewer of a repaired channel")

			c := s.channel()
			repaired := c.Losses.ReedSolomon + c.Losses.Row + c.Losses.Column
			if bad := strings.Contains(tt.send, "--drop"); bad && repaired < 10 || !bad && repaired > 0 {
				t.Errorf("%d packets repaired on a line that is bad: %v", repaired, bad)
			}
			if _, text := s.fetch("/metrics"); tt.url == "fec=5002" && strings.Contains(tt.send, "--drop") &&
				!regexp.MustCompile(`(?m)^zapcast_repaired_packets_total\{by="reed_solomon"\} [1-9]`).MatchString(text) {
				t.Errorf("no packet repaired by Reed-Solomon in the metrics:\n%s", text)
			}
			if c.Losses.Unrepaired > 0 || c.Lost > 0 {
				t.Errorf("%d packets unrepaired, %d lost, want none", c.Losses.Unrepaired, c.Lost)
			}
			if c.Repair.Code != tt.code || c.Repair.Useless {
				t.Errorf("status: got %+v, want code %q", c.Repair, tt.code)
			}
		})
	}
}

// Where the port of parity is a wrong one, the media play and the status says
// what is wrong.
func TestNetns_parityOnAWrongPort(t *testing.T) {
	l := newLab(t)
	s := l.serve("", "--interface", "eth7")
	viewer := l.watch(s, "/rtp/239.7.0.1:5000?fec=4999", 1)
	eventually(t, func() bool { return len(s.status().Channels) == 1 }, "the group is joined")
	l.send(numberedFile(t, 1) + " --rate 8M --loop --interface peer7 --to rtp://239.7.0.1:5000 --fec rs:20,4")
	viewer.more(t, 1000)
	eventually(t, func() bool { return s.channel().Repair.Useless }, "the parity is found useless")
	if want := "nothing arrives on port 4999: the wrong port, or nobody sends FEC there"; s.channel().Repair.State != want {
		t.Errorf("state %q, want %q", s.channel().Repair.State, want)
	}
	viewer.whole(t, "the viewer")
}
