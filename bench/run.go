//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// results is what results.json holds.
type results struct {
	Started  string
	Machine  map[string]string
	Settings map[string]string
	Notes    map[string]string // by program
	Programs []string
	Cases    []benchCase
	Baseline string
	Trials   []*trial
}

// runAll measures every program in every case, round by round, and reports.
func (s *settings) runAll() error {
	begun := time.Now()
	res := s.newResults(begun)
	sigs := make(chan os.Signal, 1)
	signal.Notify(sigs, os.Interrupt, syscall.SIGTERM)
	stopped := false
	fmt.Fprintf(os.Stderr, "bench: %d runs\n", s.Rounds*len(s.Cases)*len(s.Peers))
	for round := range s.Rounds {
		for _, c := range s.Cases {
			for i := range s.Peers {
				select {
				case <-sigs: // what is done is still reported; a second signal kills
					stopped = true
					signal.Reset()
				default:
				}
				if stopped || time.Since(begun) > s.MaxTime {
					continue
				}
				p := s.Peers[(i+round)%len(s.Peers)]
				if c.RTSPIn && p.SourceURL == "" {
					continue
				}
				s.waitQuiet()
				t := s.runTrial(p, c, round)
				res.Trials = append(res.Trials, t)
				fmt.Fprintf(os.Stderr, "round %d  %-12s %-12s %s\n", round+1, c.Name, p.Label, t.summary())
				time.Sleep(s.Settle)
			}
		}
	}
	writeReport(os.Stdout, res)
	if s.Out != "" {
		return res.save(s.Out)
	}
	return nil
}

func (s *settings) newResults(begun time.Time) *results {
	res := &results{
		Started: begun.UTC().Format(time.RFC3339), Machine: machine(),
		Settings: map[string]string{
			"rounds": fmt.Sprint(s.Rounds), "warmup": s.Warmup.String(), "sample": s.Sample.String(),
			"tick": s.Tick.String(), "read-interval": s.ReadInterval.String(), "client-rcvbuf": fmt.Sprint(s.ClientRcvBuf),
			"server-cpus": s.ServerCPUs, "load-cpus": s.LoadCPUs,
		},
		Notes: map[string]string{}, Cases: s.Cases, Baseline: s.Baseline,
	}
	for _, p := range s.Peers {
		res.Programs = append(res.Programs, p.Label)
		n := p.Note
		if p.Unpin {
			n = strings.TrimSpace(n + " (not pinned)")
		}
		res.Notes[p.Label] = n
	}
	return res
}

// save writes results.json and table.md into a folder.
func (res *results) save(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	js, err := json.MarshalIndent(res, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "results.json"), append(js, '\n'), 0o644); err != nil {
		return err
	}
	var md strings.Builder
	writeReport(&md, res)
	return os.WriteFile(filepath.Join(folder, "table.md"), []byte(md.String()), 0o644)
}

// waitQuiet waits for a second in which other programs do little.
func (s *settings) waitQuiet() {
	for end := time.Now().Add(s.Quiet); time.Now().Before(end); {
		before := othersCPU()
		time.Sleep(time.Second)
		if othersCPU()-before < 0.05 {
			return
		}
	}
}

// machine says what the numbers depend on.
func machine() map[string]string {
	m := map[string]string{"arch": runtime.GOARCH}
	read := func(f string) string { b, _ := os.ReadFile(f); return strings.Join(strings.Fields(string(b)), " ") }
	m["kernel"] = read("/proc/sys/kernel/osrelease")
	for _, s := range []string{
		"net/core/rmem_max", "net/core/rmem_default", "net/core/wmem_max",
		"net/ipv4/tcp_wmem", "net/ipv4/tcp_rmem", "net/ipv4/tcp_congestion_control",
	} {
		m[strings.ReplaceAll(s, "/", ".")] = read("/proc/sys/" + s)
	}
	n := 0
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(k) {
		case "processor":
			n++
		case "model name":
			m["cpu"] = strings.TrimSpace(v)
		}
	}
	m["cpus"] = fmt.Sprint(n)
	return m
}
