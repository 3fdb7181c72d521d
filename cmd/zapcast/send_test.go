package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"zapcast/fec"
	"zapcast/playout"
)

func TestParseSend(t *testing.T) {
	rtp := playout.Destination{RTP: true, Addr: netip.MustParseAddrPort("239.1.1.1:5000")}
	udp := playout.Destination{Addr: netip.MustParseAddrPort("[ff15::1]:1234")}
	for args, want := range map[string]struct {
		cfg   playout.Config
		paths []string
	}{
		"a.ts --to rtp://239.1.1.1:5000": {
			playout.Config{Destinations: []playout.Destination{rtp}, TTL: 1},
			[]string{"a.ts"},
		},
		"--loop a.ts -to=rtp://239.1.1.1:5000 b.ts --to udp://[ff15::1] -- --c.ts --loop": {
			playout.Config{Destinations: []playout.Destination{rtp, udp}, TTL: 1, Loop: true},
			[]string{"a.ts", "b.ts", "--c.ts", "--loop"},
		},
		"--to rtp://239.1.1.1:5000 --interface eth1 --ttl 0 --rate 0.5 --fec rs:48,3,alpha --drop 2%,3 --duplicate 1/8 --reorder 0.1,16 --jitter 20ms --seed 9 a.ts": {
			playout.Config{
				Destinations: []playout.Destination{rtp},
				Interface:    "eth1",
				Rate:         playout.Rate{Factor: 0.5},
				Parity:       playout.Parity{Media: 48, Count: 3, Dialect: fec.Alpha},
				Impairments: playout.Impairments{
					Drop: 0.02, Burst: 3, Duplicate: 0.125, Reorder: 0.1, Distance: 16, Jitter: 20 * time.Millisecond,
				},
				Seed: 9,
			},
			[]string{"a.ts"},
		},
	} {
		cfg, paths, err := parseSend(strings.Fields(args), io.Discard)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if want.cfg.Seed == 0 {
			cfg.Seed = 0
		}
		if diff := cmp.Diff(want.cfg, cfg, cmpopts.EquateComparable(netip.AddrPort{}, netip.Addr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
		if diff := cmp.Diff(want.paths, paths); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", args, diff)
		}
	}
}

func TestParseSend_faults(t *testing.T) {
	for _, args := range []string{
		"", "a.ts", "--to rtp://239.1.1.1:5000", "a.ts --to", "a.ts --to rtp://x:1", "a.ts --to rtp://239.1.1.1 --ttl x",
		"a.ts --to rtp://239.1.1.1 --jitter 5", "a.ts --to rtp://239.1.1.1 --fec rs:300,5", "a.ts --to rtp://239.1.1.1 --fec x:3,5", "a.ts --to rtp://239.1.1.1 --seed -1", "a.ts --to rtp://239.1.1.1 --no",
	} {
		_, _, err := parseSend(strings.Fields(args), io.Discard)
		if !errors.As(err, new(usageError)) {
			t.Errorf("%q: error %v, want a fault of usage", args, err)
		}
	}
	var out bytes.Buffer
	if _, _, err := parseSend([]string{"a.ts", "--help"}, &out); !errors.Is(err, flag.ErrHelp) || out.String() != sendUsage {
		t.Errorf("--help: error %v and %q", err, out.String())
	}
}

// TestSendUsage_namesEveryFlag compares usage and page with the flags.
func TestSendUsage_namesEveryFlag(t *testing.T) {
	page, err := os.ReadFile("../../docs/send.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"to", "interface", "ttl", "loop", "rate", "fec", "drop", "duplicate", "reorder", "jitter", "seed"} {
		if !strings.Contains(sendUsage, "\n  --"+name) {
			t.Errorf("the usage lacks --%s", name)
		}
		if !strings.Contains(string(page), "| `--"+name) {
			t.Errorf("docs/send.md lacks --%s", name)
		}
	}
}

func TestReadShare(t *testing.T) {
	for s, want := range map[string][2]float64{
		"0": {0, 0}, "0%": {0, 0}, "1%": {0.01, 0}, "100%": {1, 0}, "0.25": {0.25, 0}, "3/100": {0.03, 0}, "1/1": {1, 0},
		"1%,1": {0.01, 1}, "0.5,50": {0.5, 50}, "1/4,2.5": {0.25, 2.5},
	} {
		share, number, err := readShare(s, "BURST", 50)
		if got := [2]float64{share, number}; err != nil || got != want {
			t.Errorf("readShare(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "%", "x", "1", "5", "101%", "-1%", "-0.1", "2/1", "1/0", "0/0", "1/", "NaN", "NaN%", "Inf", "1%,", "1%,0", "1%,51", "1%,NaN", "1%,2,3",
	} {
		if share, number, err := readShare(s, "BURST", 50); err == nil {
			t.Errorf("readShare(%q) = %v, %v, want an error", s, share, number)
		}
	}
	if _, _, err := readShare("1%,2", "", 0); err == nil {
		t.Error("a number was read where none is wanted")
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 7)
	p.update(playout.Stats{Position: 2 * time.Second, Datagrams: 100, Bytes: 131_600, Dropped: 12, LastError: errors.New("no room"), Failed: 1})
	p.update(playout.Stats{Position: 4 * time.Second, Datagrams: 200})
	p.finish(playout.Stats{Position: 4 * time.Second, Datagrams: 200, Skipped: time.Second})
	text := out.String()
	for _, want := range []string{
		"\r2s  ", "100 datagrams, 12 dropped, 1 failed (no room)",
		"\r4s  ", "\r0s, 0.00 Mbit/s: ", "200 datagrams, stood still for 1s, seed 7\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q, want %q in it", text, want)
		}
	}
	lines := strings.Split(text, "\r")
	if len(lines[2]) < len(lines[1]) {
		t.Errorf("%q does not cover %q", lines[2], lines[1])
	}
}
