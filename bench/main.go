//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

// roles are what this program does when its first argument names one; without
// one it measures. All but report are for its own child processes.
var roles = map[string]func(args []string) error{
	"report":    runReport,
	"measure":   runMeasure,
	"pin":       runPinned,
	"gen":       runGen,
	"read":      runReader,
	"yardstick": runYardstick,
}

// init keeps the main goroutine on the main thread. Children die with the thread
// that starts them (Pdeathsig), so that must be one that lives as long as the
// process; and a thread's network namespace and CPUs are its own.
func init() { runtime.LockOSThread() }

func main() {
	run, args := runBench, os.Args[1:]
	if len(args) > 0 && roles[args[0]] != nil {
		run, args = roles[args[0]], args[1:]
	}
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
