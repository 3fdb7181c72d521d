package httpout

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processUsage reads getrusage(2) and /proc/self (proc(5)).
func processUsage() (u usage) {
	var times unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &times) == nil {
		u.cpu = time.Duration(times.Utime.Nano() + times.Stime.Nano())
	}
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		if names, err := dir.Readdirnames(-1); err == nil {
			u.openFiles = len(names) - 1 // but for the directory's own
		}
		dir.Close()
	}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		// Total size, then resident size, in pages.
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			u.residentBytes = pages * int64(os.Getpagesize())
		}
	}
	return u
}
