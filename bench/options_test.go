//go:build linux

package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parsed is what a command line makes of the programs, or its error.
func parsed(t *testing.T, args ...string) *settings {
	t.Helper()
	s, err := parseOptions(args, nil)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return s
}

func labels(s *settings) (list []string) {
	for _, p := range s.Peers {
		list = append(list, p.Label)
	}
	return list
}

// fakeBinary makes a file that passes for a program.
func fakeBinary(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParseOptions_programs(t *testing.T) {
	bin := fakeBinary(t, "bin")
	for _, c := range []struct {
		args     []string
		want     []string
		baseline string
	}{
		{nil, []string{"zapcast", "floor"}, "floor"},
		{[]string{"--own", "zapcast"}, []string{"zapcast"}, ""},
		{[]string{"--own", "yardstick,floor-ring"}, []string{"yardstick", "floor-ring"}, "yardstick"},
		{[]string{"--peer", "udpxy=" + bin}, []string{"zapcast", "udpxy", "floor"}, "floor"},
		{[]string{"--peer", "zapcast@a=" + bin, "--peer", "zapcast@b=" + bin}, []string{"zapcast@a", "zapcast@b", "floor"}, "floor"},
		{[]string{"--peer", "floor=" + bin, "--peer", "yardstick="}, []string{"zapcast", "floor", "yardstick"}, "floor"},
		{[]string{"--own", "", "--program", "other=" + bin + " -p {http}"}, []string{"other"}, "other"},
		{[]string{"--peer", "udpxy=" + bin, "--baseline", "udpxy"}, []string{"zapcast", "udpxy", "floor"}, "udpxy"},
	} {
		s := parsed(t, c.args...)
		if diff := cmp.Diff(c.want, labels(s)); diff != "" {
			t.Errorf("%q: programs, -want +got:\n%s", c.args, diff)
		}
		if s.chooseBaseline(); s.Baseline != c.baseline {
			t.Errorf("%q: baseline %q, want %q", c.args, s.Baseline, c.baseline)
		}
	}
}

func TestParseOptions_programByTemplate(t *testing.T) {
	bin := fakeBinary(t, "server")
	s := parsed(t, "--own", "", "--program", "x="+bin+" -p {http} -i {iface}",
		"--url", "x=http://127.0.0.1:{http}/udp/{group}:{port}")
	l, err := s.Peers[0].prepare(t.TempDir(), "lo", 8080, benchCase{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{bin, "-p", "8080", "-i", "lo"}, l.argv); diff != "" {
		t.Errorf("command line, -want +got:\n%s", diff)
	}
	if got, want := l.channel("239.1.2.3", 5004), "http://127.0.0.1:8080/udp/239.1.2.3:5004"; got != want {
		t.Errorf("URL: got %s, want %s", got, want)
	}
}

func TestPrepare_configFile(t *testing.T) {
	s := parsed(t, "--own", "", "--peer", "tvgate="+fakeBinary(t, "tvgate"))
	dir := t.TempDir()
	if _, err := s.Peers[0].prepare(dir, "lo", 8080, benchCase{}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := "server:\n  port: 8080\nmulticast:\n  multicast_ifaces: [\"lo\"]\n"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("configuration, -want +got:\n%s", diff)
	}
}

func TestParseOptions_cases(t *testing.T) {
	names := func(list []benchCase) (n []string) {
		for _, c := range list {
			n = append(n, c.Name)
		}
		return n
	}
	if diff := cmp.Diff([]string{"distinct8", "shared8", "shared64", "high400"}, names(parsed(t).Cases)); diff != "" {
		t.Errorf("default cases, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"zap", "shared8"}, names(parsed(t, "--cases", "zap,shared8").Cases)); diff != "" {
		t.Errorf("given cases, -want +got:\n%s", diff)
	}
	if got := len(parsed(t, "--cases", "all").Cases); got != len(cases) {
		t.Errorf("all cases: got %d, want %d", got, len(cases))
	}
}

func TestParseOptions_mistakes(t *testing.T) {
	bin := fakeBinary(t, "bin")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"flag provided but not defined", []string{"--frobnicate"}},
		{"unexpected argument", []string{"zapcast"}},
		{"no case named", []string{"--cases", "shared9"}},
		{"no program named", []string{"--peer", "nobody=" + bin}},
		{"path is missing", []string{"--peer", "udpxy"}},
		{"no binary at", []string{"--peer", "udpxy=/does/not/exist"}},
		{"given twice", []string{"--peer", "udpxy=" + bin, "--peer", "udpxy=" + bin}},
		{"--own udpxy", []string{"--own", "udpxy"}},
		{"nothing to measure", []string{"--own", ""}},
		{"NAME=BIN ARGS", []string{"--program", "x"}},
		{"--program x", []string{"--program", "x=/does/not/exist"}},
		{"NAME=TEMPLATE", []string{"--url", "x=http://127.0.0.1/"}},
		{"--baseline udpxy", []string{"--baseline", "udpxy"}},
		{"listens on every address", []string{"--peer", "tvgate=" + bin, "--netns=false"}},
		{"--tick", []string{"--tick", "5ms"}},
		{"--rounds", []string{"--rounds", "0"}},
		{"--sample", []string{"--sample", "0s"}},
	} {
		_, err := parseOptions(c.args, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got error %v, want one with %q", c.args, err, c.want)
		}
	}
}

func TestParseOptions_help(t *testing.T) {
	var out bytes.Buffer
	if _, err := parseOptions([]string{"-h"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("got %v, want flag.ErrHelp", err)
	}
	for _, want := range []string{"--program 'NAME=/path/to/bin args {http} {iface}'", "-rounds int"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help has no %q:\n%s", want, &out)
		}
	}
}

func TestBuild_withoutCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := parsed(t, "--own", "yardstick,floor")
	s.Dir = t.TempDir()
	if err := s.build(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"yardstick"}, labels(s)); diff != "" {
		t.Errorf("programs left, -want +got:\n%s", diff)
	}
	s = parsed(t, "--own", "zapcast")
	s.Dir = t.TempDir()
	if err := s.build(); err == nil || !strings.Contains(err.Error(), "no go command") {
		t.Errorf("without go: got %v", err)
	}
}

func TestParseCPUs(t *testing.T) {
	got, err := parseCPUs("0,2-4")
	if diff := cmp.Diff([]int{0, 2, 3, 4}, got); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	for _, s := range []string{"", "a", "3-1", "-1", "0-9999"} {
		if got, err := parseCPUs(s); err == nil {
			t.Errorf("%q: got %v, want an error", s, got)
		}
	}
}
