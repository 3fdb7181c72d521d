//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for the program: started with the name
// of a role it plays it, and "enter DIR" goes from settings to a measurement.
func TestMain(m *testing.M) {
	roles["enter"] = func(args []string) error {
		b, err := os.ReadFile(filepath.Join(args[0], settingsFile))
		if err != nil {
			return err
		}
		s := &settings{}
		if err := json.Unmarshal(b, s); err != nil {
			return err
		}
		return s.enter()
	}
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestMeasure_yardstick runs the whole program, all its processes and the
// namespace included, on a load small enough for the race detector.
func TestMeasure_yardstick(t *testing.T) {
	s, err := parseOptions([]string{
		"--own", "yardstick", "--rounds", "1", "--joins", "1", "--cold", "0s",
		"--quiet", "0s", "--settle", "0s", "--warmup", "200ms", "--sample", "500ms",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.checkMachine(); err != nil {
		if os.Getenv("ZAPCAST_TEST_NET") == "1" {
			t.Fatal(err)
		}
		t.Skip("this machine cannot measure:", err)
	}
	s.Dir, s.Out = t.TempDir(), t.TempDir()
	s.Cases = []benchCase{
		{Name: "load", Sources: 2, Mbps: 2, Clients: 3},
		{Name: "wait", Sources: 2, Mbps: 2, Join: true, WaitRAP: true},
	}
	if err := s.build(); err != nil {
		t.Fatal(err)
	}
	s.chooseBaseline()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, settingsFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(s.Peers[0].Bin, "enter", s.Dir)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // a lock of its own: it need not wait for a real measurement
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	if b, err = os.ReadFile(filepath.Join(s.Out, "results.json")); err != nil {
		t.Fatal(err)
	}
	res := &results{}
	if err := json.Unmarshal(b, res); err != nil {
		t.Fatal(err)
	}
	if len(res.Trials) != 2 {
		t.Fatalf("got %d trials, want 2\n%s", len(res.Trials), out)
	}
	for _, r := range res.Trials {
		if r.Error != "" {
			t.Fatalf("%s: %s", r.Case, r.Error)
		}
	}
	// A busy machine may lose packets and take its time, so only what it cannot
	// change is looked at.
	load, wait := res.Trials[0], res.Trials[1]
	if load.Read.Clients != 3 || load.Read.Window.Packets == 0 || load.Gen.Datagrams == 0 || load.Dup+load.Reordered+load.Corrupt != 0 {
		t.Errorf("load: got %+v, generator %+v", load.Read, load.Gen)
	}
	if load.CPU <= 0 || load.PSS <= 0 || load.Procs != 4 {
		t.Errorf("load: got CPU %v, PSS %v, %d processes, want some, some, 4", load.CPU, load.PSS, load.Procs)
	}
	for _, v := range [][]float64{wait.Join.Cold.Byte, wait.Join.Cold.Decodable, wait.Join.Cold.AfterRAP, wait.Join.Warm.RAP} {
		if len(v) != 1 {
			t.Errorf("wait: got %d of each time, want 1: %+v", len(v), wait.Join)
		}
	}
	for i, after := range wait.Join.Cold.AfterRAP {
		if decodable := wait.Join.Cold.Decodable[i]; after > decodable || after < -float64(rapWait/time.Millisecond) {
			t.Errorf("wait: decodable after %v ms, and %v ms after the next random-access point", decodable, after)
		}
	}
	for _, want := range []string{"| yardstick | cold    | decodable - next RAP | 1 |", "load: 2 sources x 2 Mbit/s, 3 clients"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the report has no %q:\n%s", want, out)
		}
	}
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("the working folder is still there: %v", err)
	}
}
