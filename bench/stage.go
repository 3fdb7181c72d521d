//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// checkMachine says what this machine lacks for a measurement, before anything
// is built, and chooses the CPUs where the command line did not.
func (s *settings) checkMachine() error {
	allowed, err := allowedCPUs()
	if err != nil {
		return err
	}
	if len(allowed) < 2 && (s.ServerCPUs == "" || s.LoadCPUs == "") {
		return errors.New("needs two CPUs, one for the server and one for the load: this machine has one to give")
	}
	s.AllCPUs = strings.Trim(strings.ReplaceAll(fmt.Sprint(allowed), " ", ","), "[]")
	for i, list := range []*string{&s.ServerCPUs, &s.LoadCPUs} {
		if *list == "" {
			*list = fmt.Sprint(allowed[i])
		}
		cpus, err := parseCPUs(*list)
		if err != nil {
			return err
		}
		for _, c := range cpus {
			if !slices.Contains(allowed, c) {
				return fmt.Errorf("CPU %d cannot be used here, only %s: see --server-cpus and --load-cpus", c, s.AllCPUs)
			}
		}
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return errors.New("needs the ip command (Debian package iproute2) to set up the loopback interface")
	}
	if s.NetNS && !mayUnshare() {
		return errors.New("needs root for a network namespace of its own: run it with sudo, or as root of a container with CAP_SYS_ADMIN and CAP_NET_ADMIN")
	}
	return nil
}

// mayUnshare tries on a thread that ends with the goroutine.
func mayUnshare() bool {
	ok := make(chan bool)
	go func() {
		runtime.LockOSThread()
		ok <- unix.Unshare(unix.CLONE_NEWNET) == nil
	}()
	return <-ok
}

// enter moves to the network namespace and the load's CPUs and starts over as
// the measure role: only a fresh process is wholly there, all threads included.
// It returns on an error only.
func (s *settings) enter() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	loads, err := parseCPUs(s.LoadCPUs)
	if err != nil {
		return err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.Dir, settingsFile), b, 0o600); err != nil {
		return err
	}
	if s.NetNS {
		allowCongestionControl(s.CC)
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("own network namespace: %w", err)
		}
	}
	if err := setAffinity(loads); err != nil {
		return fmt.Errorf("load CPUs %s: %w", s.LoadCPUs, err)
	}
	return unix.Exec(self, []string{self, "measure", s.Dir}, os.Environ())
}

const settingsFile = "settings.json"

// runMeasure is the second stage, "bench measure DIR".
func runMeasure(args []string) error {
	if len(args) != 1 {
		return errors.New("measure: is started by bench itself")
	}
	defer os.RemoveAll(args[0])
	b, err := os.ReadFile(filepath.Join(args[0], settingsFile))
	if err != nil {
		return err
	}
	s := &settings{}
	if err := json.Unmarshal(b, s); err != nil {
		return err
	}
	if err := setupLoopback(s.NetNS, s.CC); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	raiseFileLimit()
	unlock, err := waitTurn()
	if err != nil {
		return err
	}
	defer unlock()
	return s.runAll()
}

// setupLoopback makes multicast work on lo.
func setupLoopback(netns bool, cc string) error {
	for _, line := range []string{
		"ip link set lo up",
		"ip link set lo multicast on",
		"ip route replace 239.0.0.0/8 dev lo",
	} {
		c := strings.Fields(line)
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
		}
	}
	if netns && cc != "" {
		if err := os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte(cc), 0o644); err != nil {
			fmt.Fprintf(os.Stderr, "bench: congestion control %s not set: %v\n", cc, err)
		}
	}
	return nil
}

// allowCongestionControl lets other namespaces choose cc. It only adds a name to
// the host's list of those that unprivileged programs may use.
func allowCongestionControl(cc string) {
	const f = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
	b, _ := os.ReadFile(f)
	if now := strings.Fields(string(b)); cc != "" && !slices.Contains(now, cc) {
		_ = os.WriteFile(f, []byte(strings.Join(append(now, cc), " ")), 0o644)
	}
}

// waitTurn makes sure that only one bench measures on this machine at a time.
func waitTurn() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "bench.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		fmt.Fprintln(os.Stderr, "bench: waiting for another bench to end")
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			return nil, err
		}
	}
	return func() { f.Close() }, nil
}

// raiseFileLimit makes room for the clients' sockets; the server inherits it.
func raiseFileLimit() {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil {
		l.Cur = l.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &l)
	}
}

// runPinned is "bench pin CPUS COMMAND...": it sets its own affinity and becomes
// the command.
func runPinned(args []string) error {
	if len(args) < 2 {
		return errors.New("pin: is started by bench itself")
	}
	cpus, err := parseCPUs(args[0])
	if err != nil {
		return err
	}
	if err := setAffinity(cpus); err != nil {
		return err
	}
	return unix.Exec(args[1], args[1:], os.Environ())
}

func setAffinity(cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinity(0, &set)
}

// allowedCPUs are those that this process may use, in rising order.
func allowedCPUs() (cpus []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	for c := range maxCPUs {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}
