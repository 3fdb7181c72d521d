//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// trial is one measurement of one program in one case.
type trial struct {
	Program string
	Case    string
	Round   int

	CPU            float64   // % of one CPU, server process tree
	CPUStat        float64   // the same from /proc/PID/stat alone
	Mode           userShare // samples of it, by mode
	ServerCPUBusy  float64   `json:",omitempty"` // % busy of the CPUs the server is pinned to, all told
	PSS, USS       float64   // MiB, mean over the window
	PSSMax, USSMax float64
	SockMem        float64 // MiB of TCP and UDP buffers, whole machine
	Procs, Threads int

	LoadCPUBusy     float64 // % busy of the generator's and readers' CPUs
	GenCPU, ReadCPU float64
	Others          float64 // % of one CPU used by processes that are not part of the bench
	Gen             genStats
	Read            *readResult `json:",omitempty"`
	Join            *joinResult `json:",omitempty"`
	Seconds         float64     // length of the window
	MinRate         float64     // slowest client, as a share of the source's rate

	// TS packets, whole session, all clients.
	Lost, Dup, Reordered, Corrupt int64

	Marks []string `json:",omitempty"` // what a reader of the table must know
	Error string   `json:",omitempty"`
}

// firstHTTPPort is where the first server of a run listens; each trial takes the
// next port, so that no connection of the one before is in its way.
const firstHTTPPort = 18081

// runTrial starts everything, measures, and stops everything.
func (s *settings) runTrial(p *peer, c benchCase, round int) *trial {
	t := &trial{Program: p.Label, Case: c.Name, Round: round}
	if err := s.measure(t, p, c); err != nil {
		t.Error = err.Error()
	}
	return t
}

func (s *settings) measure(t *trial, p *peer, c benchCase) error {
	dir, err := os.MkdirTemp(s.Dir, "run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	port := firstHTTPPort + s.port
	s.port++
	l, err := p.prepare(dir, "lo", port, c)
	if err != nil {
		return err
	}
	cpus := s.ServerCPUs
	if p.Unpin {
		cpus = s.AllCPUs
	}
	srv, err := startServer(l, cpus, filepath.Join(dir, "server.log"))
	if err != nil {
		return err
	}
	defer srv.stop()
	if err := srv.waitListening(port, 10*time.Second); err != nil {
		return err
	}

	limit := s.timeLimit(c)
	gen, err := startWorker(s.LoadCPUs, "gen", genConfig{c.Sources, c.Mbps, s.Tick, limit, s.NoRAI, c.RTSPIn})
	if err != nil {
		return err
	}
	defer gen.kill()
	if _, err := gen.line("started"); err != nil {
		return err
	}
	read, err := startWorker(s.LoadCPUs, "read", s.readConfig(p, l, c, limit))
	if err != nil {
		return err
	}
	defer read.kill()
	if err := t.waitReady(read); err != nil {
		if ended := srv.ended(); ended != nil {
			return ended
		}
		return fmt.Errorf("%w; server says: %s", err, srv.tail())
	}

	w, line, err := s.window(c, srv, gen, read)
	if err != nil {
		return err
	}
	w.close(t, p) // before the clients go away, for some servers end with them
	if !c.Join && !p.Unpin {
		if t.Mode, err = s.sampleMode(srv); err != nil {
			t.mark("no user share: %v", err)
		}
	}
	if err := srv.ended(); err != nil {
		return err
	}
	if !c.Join {
		_, _ = fmt.Fprintln(read.in, "stop")
		if line, err = read.line("{"); err != nil {
			return err
		}
	}
	_ = gen.in.Close()
	if g, err := gen.line("{"); err == nil {
		_ = json.Unmarshal([]byte(g), &t.Gen)
	}
	if err := t.take(line, c); err != nil {
		return err
	}
	t.judge()
	return nil
}

// timeLimit is when generator and readers of a run give up, in seconds.
func (s *settings) timeLimit(c benchCase) int {
	d := time.Minute + s.Warmup + s.Sample + s.Modes + 2*s.FirstByte
	if c.Join {
		d = time.Minute + time.Duration(s.Joins)*(3*rapWait+s.Cold/time.Duration(c.Sources))
	}
	return int(d.Seconds())
}

func (s *settings) readConfig(p *peer, l *launch, c benchCase, limit int) readConfig {
	cfg := readConfig{
		Interval: s.ReadInterval, RcvBuf: s.ClientRcvBuf,
		Pending: 128, Pace: 4 * time.Millisecond, FirstByte: s.FirstByte, MaxSeconds: limit,
		Join: c.Join, WaitRAP: c.WaitRAP, Joins: s.Joins, Cold: s.Cold,
	}
	for i := range max(c.Clients, c.Sources) {
		src := i % c.Sources
		url := l.channel(groupOf(src), groupPort)
		if c.RTSPIn {
			url = l.channel(strconv.Itoa(src), rtspPort)
		}
		cfg.Targets = append(cfg.Targets, target{url, uint32(src)})
	}
	return cfg
}

// waitReady waits until every client has data.
func (t *trial) waitReady(read *worker) error {
	line, err := read.line("ready")
	if errors.Is(err, errUnexpected) { // it gave up, and says why
		r := &readResult{}
		if json.Unmarshal([]byte(line), r) == nil {
			t.Read = r
			return errors.New(r.Error)
		}
	}
	return err
}

// take fills in what the readers found.
func (t *trial) take(line string, c benchCase) error {
	var all counts
	var failed string
	if c.Join {
		t.Join = &joinResult{}
		if err := json.Unmarshal([]byte(line), t.Join); err != nil {
			return err
		}
		all, failed = t.Join.Faults, t.Join.Error
	} else {
		t.Read = &readResult{}
		if err := json.Unmarshal([]byte(line), t.Read); err != nil {
			return err
		}
		all, failed = t.Read.Warmup, t.Read.Error
		all.add(t.Read.Window)
		t.MinRate = float64(t.Read.MinBytes) / (t.Read.Seconds * c.Mbps * 1e6 / 8)
	}
	t.Lost, t.Dup, t.Reordered, t.Corrupt = all.Lost, all.Dup, all.Reordered, all.Corrupt
	if failed != "" {
		return errors.New(failed)
	}
	return nil
}

func (t *trial) mark(format string, a ...any) {
	t.Marks = append(t.Marks, fmt.Sprintf(format, a...))
}

// judge marks what makes the run's figures doubtful.
func (t *trial) judge() {
	if t.Read != nil && t.Read.Closed > 0 {
		t.mark("%d connections closed", t.Read.Closed)
	}
	if t.Read != nil && t.MinRate < 0.95 {
		t.mark("slowest client at %.0f%%", 100*t.MinRate)
	}
	if t.Others > 10 {
		t.mark("other programs used %.0f%%", t.Others)
	}
	if t.LoadCPUBusy > 90 {
		t.mark("load CPU %.0f%% busy", t.LoadCPUBusy)
	}
	if t.Gen.Late5ms > 0 {
		t.mark("generator late %.0f ms", t.Gen.LateMaxMs)
	}
	if t.Gen.Errors > 0 {
		t.mark("%d generator errors", t.Gen.Errors)
	}
}

// summary is one line for the progress log.
func (t *trial) summary() string {
	if t.Error != "" {
		return "ERROR: " + t.Error
	}
	var s strings.Builder
	s.WriteString(fmt.Sprintf("CPU %6.2f%%  PSS %7.2f  USS %7.2f MiB", t.CPU, t.PSS, t.USS))
	if t.Join != nil {
		cold, warm := t.Join.Cold, t.Join.Warm
		s.WriteString(fmt.Sprintf("  first byte cold %.1f warm %.1f ms", median(cold.Byte), median(warm.Byte)))
		if len(cold.RAP) > 0 {
			s.WriteString(fmt.Sprintf("  decodable cold %.0f warm %.1f ms", median(cold.Decodable), median(warm.Decodable)))
		}
	} else {
		s.WriteString(fmt.Sprintf("  rate %.3f  load CPU %.0f%% (gen %.0f read %.0f)", t.MinRate, t.LoadCPUBusy, t.GenCPU, t.ReadCPU))
	}
	for _, f := range t.faults() {
		s.WriteString("  " + f)
	}
	if len(t.Marks) > 0 {
		s.WriteString("  [" + strings.Join(t.Marks, ", ") + "]")
	}
	return s.String()
}

// faults names what went wrong with packets, if anything.
func (t *trial) faults() (list []string) {
	for _, f := range []struct {
		n    int64
		word string
	}{{t.Lost, "LOST"}, {t.Dup, "DOUBLED"}, {t.Reordered, "REORDERED"}, {t.Corrupt, "DAMAGED"}} {
		if f.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", f.n, f.word))
		}
	}
	return list
}
