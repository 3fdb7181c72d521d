//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What the kernel says of processes and CPUs, from /proc.

const userHz = 100 // USER_HZ is 100 on every architecture Go runs Linux on

// tree is pid and all its descendants.
func tree(pid int) []int {
	pids := []int{pid}
	for i := 0; i < len(pids); i++ {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[i]))
		for _, f := range files {
			b, _ := os.ReadFile(f)
			for s := range strings.FieldsSeq(string(b)) {
				if n, err := strconv.Atoi(s); err == nil {
					pids = append(pids, n)
				}
			}
		}
	}
	return pids
}

// statFields are the fields of /proc/PID/stat from the third one on.
func statFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return nil
	}
	return f
}

// startTime tells a process from a later one with the same pid.
func startTime(pid int) string {
	if f := statFields(pid); f != nil {
		return f[19]
	}
	return ""
}

type cpuTime struct{ User, Sys float64 } // seconds

func (c cpuTime) total() float64 { return c.User + c.Sys }

func (c cpuTime) sub(o cpuTime) cpuTime { return cpuTime{c.User - o.User, c.Sys - o.Sys} }

// treeCPU sums utime+stime over the tree, and the time of children that ended
// and were waited for, so that it never goes back.
func treeCPU(pids []int) (c cpuTime, threads int) {
	for _, pid := range pids {
		f := statFields(pid)
		if f == nil {
			continue
		}
		n := func(i int) float64 { v, _ := strconv.ParseFloat(f[i], 64); return v / userHz }
		c.User += n(11) + n(13)
		c.Sys += n(12) + n(14)
		t, _ := strconv.Atoi(f[17])
		threads += t
	}
	return c, threads
}

// processCPU is treeCPU of one process.
func processCPU(pid int) cpuTime {
	c, _ := treeCPU([]int{pid})
	return c
}

type memory struct{ PSS, USS float64 } // MiB

// treeMemory sums smaps_rollup over the tree.
func treeMemory(pids []int) (m memory) {
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 2 {
				continue
			}
			kb, _ := strconv.ParseFloat(f[1], 64)
			switch f[0] {
			case "Pss:":
				m.PSS += kb / 1024
			case "Private_Clean:", "Private_Dirty:":
				m.USS += kb / 1024
			}
		}
	}
	return m
}

// cpuIdle is the time, in seconds, that each CPU was idle. Unlike the other
// columns of /proc/stat it is not sampled at ticks, so what is left of the clock
// is exact, and includes interrupts that no process is charged for.
func cpuIdle() map[int]float64 {
	idle := map[int]float64{}
	b, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		n, _ := strconv.Atoi(f[0][3:])
		for _, s := range f[4:6] { // idle, iowait
			v, _ := strconv.ParseFloat(s, 64)
			idle[n] += v / userHz
		}
	}
	return idle
}

// sockMemory is the kernel's TCP and UDP buffer memory in MiB, of the whole
// machine and both ends: PSS and USS leave it out.
func sockMemory() (mib float64) {
	b, _ := os.ReadFile("/proc/net/sockstat")
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 || (f[0] != "TCP:" && f[0] != "UDP:") {
			continue
		}
		for i := 1; i+1 < len(f); i += 2 {
			if f[i] == "mem" {
				pages, _ := strconv.ParseFloat(f[i+1], 64)
				mib += pages * float64(os.Getpagesize()) / (1 << 20)
			}
		}
	}
	return mib
}

// listening says whether something listens on a TCP port, without connecting.
func listening(port int) bool {
	for _, f := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		b, _ := os.ReadFile(f)
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 3 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				return true
			}
		}
	}
	return false
}

// maxCPUs is how many CPUs the kernel's plain affinity call knows.
const maxCPUs = 1024

// parseCPUs reads a list such as 0,2-3.
func parseCPUs(s string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		a, err1 := strconv.Atoi(lo)
		b, err2 := strconv.Atoi(hi)
		if err1 != nil || err2 != nil || a < 0 || b < a || b >= maxCPUs {
			return nil, fmt.Errorf("bad CPU list %q", s)
		}
		for ; a <= b; a++ {
			out = append(out, a)
		}
	}
	return out, nil
}

// othersCPU is the CPU time, in seconds, of all processes that are not ours.
// Its growth tells how quiet the machine is.
func othersCPU() (secs float64) {
	ours := map[int]bool{}
	for _, pid := range tree(os.Getpid()) {
		ours[pid] = true
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		f := statFields(pid)
		if f == nil || ours[pid] || f[1] == "2" { // children of 2 are the kernel's
			continue
		}
		c, _ := treeCPU([]int{pid})
		secs += c.total()
	}
	return secs
}

// exactCPU is the run time in seconds, to the nanosecond, of each live thread of
// the tree. /proc/PID/stat has the same clock cut down to 10 ms for each process,
// which adds up where a server has a process for each client.
func exactCPU(pids []int) map[string]float64 {
	times := map[string]float64{}
	for _, pid := range pids {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil {
				ns, _, _ := strings.Cut(string(b), " ")
				v, _ := strconv.ParseFloat(ns, 64)
				times[f] = v / 1e9
			}
		}
	}
	return times
}
