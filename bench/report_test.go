//go:build linux

package main

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestQuantile_nearestRank(t *testing.T) {
	var v []float64
	for i := range 100 {
		v = append(v, float64(100-i))
	}
	for _, c := range []struct {
		v       []float64
		q, want float64
	}{
		{v, 0.95, 95},
		{v, 0.5, 50},
		{v, 0, 1},
		{v, 1, 100},
		{[]float64{3}, 0.95, 3},
		{nil, 0.5, 0},
		{[]float64{2, 1, 3}, 0.5, 2},
	} {
		if got := quantile(c.v, c.q); got != c.want {
			t.Errorf("quantile %v of %d values: got %v, want %v", c.q, len(c.v), got, c.want)
		}
	}
}

func TestUserShare_margin(t *testing.T) {
	if _, _, ok := (userShare{User: 10, Sys: 80}).percent(); ok {
		t.Error("ninety samples tell a share")
	}
	p, margin, ok := userShare{User: 100, Sys: 900}.percent()
	if !ok || math.Abs(p-10) > 1e-9 || margin < 0.9 || margin > 1 {
		t.Errorf("got %v ±%v %v, want 10 and just under 1", p, margin, ok)
	}
}

// What is known to run in one mode is found in it.
func TestSampleShare_ofKnownLoads(t *testing.T) {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	var sink int
	var cpus []int
	for cpu := range runtime.NumCPU() {
		cpus = append(cpus, cpu)
	}
	buf := make([]byte, 1<<20)
	for _, c := range []struct {
		name string
		work func()
		user bool
	}{
		{"counting", func() {
			for n := range 1 << 20 {
				sink += n
			}
		}, true},
		{"zeros", func() {
			// The race detector marks what a Read of package os has filled, byte by byte.
			unix.RawSyscall(unix.SYS_READ, zero.Fd(), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
		}, false},
	} {
		var stop atomic.Bool
		var working sync.WaitGroup
		working.Go(func() {
			for !stop.Load() {
				c.work()
			}
		})
		u, err := sampleShare([]int{os.Getpid()}, cpus, 300*time.Millisecond)
		stop.Store(true)
		working.Wait()
		if err != nil {
			t.Skipf("this kernel lets nobody sample: %v", err)
		}
		if p, _, ok := u.percent(); !ok || (p > 50) != c.user {
			t.Errorf("%s: got %.0f %% of %+v in user mode", c.name, p, u)
		}
	}
}

// TestWriteReport_golden holds the tables of every kind of outcome.
func TestWriteReport_golden(t *testing.T) {
	read := func() *readResult { return &readResult{Window: counts{Packets: 9000}, Warmup: counts{Packets: 1000}} }
	load := func(program string, cpu float64) *trial {
		return &trial{
			Program: program, Case: "shared8", CPU: cpu, Mode: userShare{User: 100, Sys: 900}, Seconds: 100,
			ServerCPUBusy: cpu + 1, PSS: cpu / 2, USS: cpu / 4, LoadCPUBusy: 40, GenCPU: 20, Read: read(), MinRate: 0.999,
		}
	}
	lossy := load("udpxy", 9)
	lossy.Lost, lossy.Dup, lossy.Reordered, lossy.Corrupt, lossy.MinRate = 10, 2, 3, 4, 0.9
	lossy.judge()
	again := load("udpxy", 11)
	again.MinRate = 0.91
	again.judge()
	res := &results{
		Started: "2024-01-02T03:04:05Z", Machine: map[string]string{"kernel": "6.1"}, Settings: map[string]string{"rounds": "2"},
		Notes: map[string]string{"udpxy": "1.0"}, Baseline: "floor",
		Programs: []string{"zapcast", "udpxy", "msd_lite", "floor"},
		Trials: []*trial{
			load("zapcast", 4), load("floor", 3), load("zapcast", 4.5), lossy, again,
			{Program: "msd_lite", Case: "shared8", Error: "server ended: exit status 1; it said: a\nb | c"},
			{
				Program: "zapcast", Case: "zap", Lost: 1, Join: &joinResult{
					Cold: joinTimes{Byte: []float64{5, 7}, RAP: []float64{900, 1100}, Decodable: []float64{900, 1101}, AfterRAP: []float64{0.5, 1.5}},
					Warm: joinTimes{Byte: []float64{1}, RAP: []float64{2}, Decodable: []float64{3}},
				},
			},
			{Program: "floor", Case: "zap", Error: "cold request 0: i/o timeout"},
		},
	}
	for _, name := range []string{"shared8", "zap"} {
		c, err := findCase(name)
		if err != nil {
			t.Fatal(err)
		}
		res.Cases = append(res.Cases, c)
	}
	var got strings.Builder
	writeReport(&got, res)
	golden := filepath.Join("testdata", "report.md")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("-want +got (-update writes it anew):\n%s", diff)
	}
}

func TestRunReport_mistakes(t *testing.T) {
	folder := t.TempDir()
	res := &results{Programs: []string{"zapcast"}}
	if err := res.save(folder); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "results.json")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"usage", nil},
		{"no such file", []string{filepath.Join(folder, "none.json")}},
		{"invalid", []string{filepath.Join(folder, "table.md")}},
		{"no program \"floor\", only zapcast", []string{file, "floor"}},
	} {
		if err := runReport(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want an error with %q", c.args, err, c.want)
		}
	}
}
