//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The split of a server's CPU time into user and system in /proc/PID/stat is
// taken at the kernel's clock tick, some hundred times a second, and servers
// that wake up on a timer run just between two ticks or just at them: it says
// nothing about a load of a few per cent. So the processor itself is sampled, by
// a timer of its own (perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK), in a window
// behind the one that measures CPU, because samples cost a little.

const (
	// sampleHz is odd, so that it keeps step with no timer.
	sampleHz    = 7993
	samplePages = 64 // of the ring, a power of two: over a second of samples
)

// A sampler sees what one processor runs.
type sampler struct {
	fd   int
	ring []byte
}

// A userShare counts samples of a server.
type userShare struct{ User, Sys int64 }

func (u *userShare) add(o userShare) {
	u.User += o.User
	u.Sys += o.Sys
}

// percent returns the share of user mode and its standard error; ok is false
// where there are too few samples to tell.
func (u userShare) percent() (p, margin float64, ok bool) {
	n := float64(u.User + u.Sys)
	if n < 100 {
		return 0, 0, false
	}
	share := float64(u.User) / n
	return 100 * share, 100 * math.Hypot(math.Sqrt(share*(1-share)/n), 1/n), true
}

// sampleMode samples a running server.
func (s *settings) sampleMode(srv *server) (userShare, error) {
	cpus, err := parseCPUs(s.ServerCPUs)
	if err != nil {
		return userShare{}, err
	}
	return sampleShare(tree(srv.cmd.Process.Pid), cpus, s.Modes)
}

// sampleShare counts in which mode the processes are found on cpus for d.
func sampleShare(pids, cpus []int, d time.Duration) (u userShare, err error) {
	ours := map[uint32]bool{}
	for _, pid := range pids {
		ours[uint32(pid)] = true
	}
	var samplers []*sampler
	defer func() {
		for _, s := range samplers {
			s.close()
		}
	}()
	for _, cpu := range cpus {
		s, err := newSampler(cpu)
		if err != nil {
			return u, fmt.Errorf("sampling CPU %d: %w", cpu, err)
		}
		samplers = append(samplers, s)
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		for _, s := range samplers {
			s.drain(func(pid uint32, user bool) {
				switch {
				case !ours[pid]:
				case user:
					u.User++
				default:
					u.Sys++
				}
			})
		}
	}
	return u, nil
}

func newSampler(cpu int) (*sampler, error) {
	attr := unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Config:      unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample:      sampleHz,
		Sample_type: unix.PERF_SAMPLE_TID,
		Bits:        unix.PerfBitFreq,
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	ring, err := unix.Mmap(fd, 0, (1+samplePages)*unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &sampler{fd, ring}, nil
}

func (s *sampler) close() {
	_ = unix.Munmap(s.ring)
	_ = unix.Close(s.fd)
}

// drain hands each sample that waits to see.
func (s *sampler) drain(see func(pid uint32, user bool)) {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&s.ring[0]))
	data := s.ring[unix.Getpagesize():]
	head, tail := atomic.LoadUint64(&page.Data_head), page.Data_tail
	at := func(off uint64) []byte { return data[off%uint64(len(data)):] } // records are multiples of 8 bytes, as the ring is
	for tail < head {
		// struct perf_event_header: type u32, misc u16, size u16; then pid u32.
		header := at(tail)
		kind, misc := binary.NativeEndian.Uint32(header), binary.NativeEndian.Uint16(header[4:])
		if kind == unix.PERF_RECORD_SAMPLE {
			see(binary.NativeEndian.Uint32(at(tail+8)), misc&unix.PERF_RECORD_MISC_CPUMODE_MASK == unix.PERF_RECORD_MISC_USER)
		}
		tail += uint64(binary.NativeEndian.Uint16(header[6:]))
	}
	atomic.StoreUint64(&page.Data_tail, tail)
}
