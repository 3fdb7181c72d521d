//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// server is a peer under test.
type server struct {
	cmd  *exec.Cmd
	l    *launch
	log  string
	exit chan struct{} // closed when it has ended
	why  error         // valid then
}

func startServer(l *launch, cpus, logFile string) (*server, error) {
	cmd, err := pinned(cpus, l.argv...)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr, cmd.Dir = f, f, l.dir
	cmd.Env = append(os.Environ(), l.env...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, l: l, log: logFile, exit: make(chan struct{})}
	go func() {
		s.why = cmd.Wait()
		close(s.exit)
	}()
	return s, nil
}

func (s *server) waitListening(port int, limit time.Duration) error {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if listening(port) {
			return nil
		}
		if err := s.ended(); err != nil {
			return err
		}
	}
	return fmt.Errorf("server does not listen on its port; it says: %s", s.tail())
}

// ended says how the server ended, if it did.
func (s *server) ended() error {
	select {
	case <-s.exit:
	default:
		return nil
	}
	how := "exit status 0"
	if s.why != nil {
		how = s.why.Error()
	}
	return fmt.Errorf("server ended: %s; it said: %s", how, s.tail())
}

// tail is the end of the server's output, without this machine's paths.
func (s *server) tail() string {
	b, _ := os.ReadFile(s.log)
	text := strings.TrimSpace(string(b[max(0, len(b)-400):]))
	if text == "" {
		return "nothing"
	}
	return strings.NewReplacer(s.l.dir, "{dir}", s.l.argv[0], "{bin}").Replace(text)
}

// stop ends the server and every process that it started, by pid. A process
// whose parent is gone becomes ours (we are a subreaper), so none is missed.
func (s *server) stop() {
	type proc struct {
		pid   int
		start string
	}
	var procs []proc
	for _, pid := range tree(s.cmd.Process.Pid) {
		procs = append(procs, proc{pid, startTime(pid)})
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exit:
	case <-time.After(2 * time.Second):
	}
	for _, p := range procs {
		if p.start != "" && startTime(p.pid) == p.start {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
	<-s.exit
	for _, p := range procs[1:] {
		for range 100 {
			pid, err := unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
			if err != nil || pid == p.pid {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
