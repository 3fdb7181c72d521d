//go:build linux

package main

import (
	"fmt"
	"time"
)

// window measures the server between two points in time.
type window struct {
	s             *settings
	pid           int
	gen, read     int
	start         time.Time
	cpu           cpuTime
	exact         map[string]float64
	genCPU, rdCPU cpuTime
	idle          map[int]float64
	others        float64
	mem           []memory
	sock          []float64
}

// window is open for the sample time, or in a join case until the reader has its
// result, which is returned.
func (s *settings) window(c benchCase, srv *server, gen, read *worker) (w *window, line string, err error) {
	if c.Join {
		w = s.openWindow(srv, gen, read)
		line, err = w.sampleUntilLine(read)
		return w, line, err
	}
	time.Sleep(s.Warmup)
	w = s.openWindow(srv, gen, read)
	_, _ = fmt.Fprintln(read.in, "mark")
	w.sampleFor(s.Sample)
	return w, "", nil
}

func (s *settings) openWindow(srv *server, gen, read *worker) *window {
	w := &window{s: s, pid: srv.cmd.Process.Pid, gen: gen.cmd.Process.Pid, read: read.cmd.Process.Pid}
	w.genCPU, w.rdCPU = processCPU(w.gen), processCPU(w.read)
	w.others = othersCPU()
	w.idle = cpuIdle()
	w.start = time.Now()
	pids := tree(w.pid)
	w.cpu, _ = treeCPU(pids)
	w.exact = exactCPU(pids)
	return w
}

func (w *window) sample() {
	w.mem = append(w.mem, treeMemory(tree(w.pid)))
	w.sock = append(w.sock, sockMemory())
}

// sampleFor samples memory each second for d.
func (w *window) sampleFor(d time.Duration) {
	for at := w.start.Add(min(time.Second, d) / 2); at.Before(w.start.Add(d)); at = at.Add(time.Second) {
		time.Sleep(time.Until(at))
		w.sample()
	}
	time.Sleep(time.Until(w.start.Add(d)))
}

// sampleUntilLine does the same until the reader has its result.
func (w *window) sampleUntilLine(read *worker) (line string, err error) {
	got := make(chan struct{})
	go func() {
		line, err = read.line("{")
		close(got)
	}()
	for {
		w.sample()
		select {
		case <-got:
			return line, err
		case <-time.After(time.Second):
		}
	}
}

// close ends the window and writes its figures into t.
func (w *window) close(t *trial, p *peer) {
	pids := tree(w.pid)
	cpu, threads := treeCPU(pids)
	exact := exactCPU(pids)
	secs := time.Since(w.start).Seconds()
	idle := cpuIdle()
	pct := func(s float64) float64 { return 100 * s / secs }
	d := cpu.sub(w.cpu)
	t.CPUStat = pct(d.total())
	sum := 0.0
	for thread, v := range exact {
		sum += v - w.exact[thread]
		delete(w.exact, thread)
	}
	t.CPU = pct(sum)
	if len(w.exact) > 0 { // some threads ended and are missing from the sum
		t.CPU = max(t.CPU, t.CPUStat)
	}
	t.GenCPU = pct(processCPU(w.gen).sub(w.genCPU).total())
	t.ReadCPU = pct(processCPU(w.read).sub(w.rdCPU).total())
	t.Others = pct(othersCPU() - w.others)
	t.Procs, t.Threads, t.Seconds = len(pids), threads, secs
	busy := func(list string) (sum float64) { // mean over the CPUs of the list
		cpus, _ := parseCPUs(list)
		for _, c := range cpus {
			sum += secs - (idle[c] - w.idle[c])
		}
		return pct(sum / float64(max(1, len(cpus))))
	}
	if !p.Unpin {
		t.ServerCPUBusy = busy(w.s.ServerCPUs)
	}
	t.LoadCPUBusy = busy(w.s.LoadCPUs)
	for _, m := range w.mem {
		t.PSS += m.PSS / float64(len(w.mem))
		t.USS += m.USS / float64(len(w.mem))
		t.PSSMax, t.USSMax = max(t.PSSMax, m.PSS), max(t.USSMax, m.USS)
	}
	for _, s := range w.sock {
		t.SockMem += s / float64(len(w.sock))
	}
}
