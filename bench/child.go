//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// pinned makes a command that runs on the given CPUs and does not outlive us.
func pinned(cpus string, argv ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"pin", cpus}, argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// worker is the generator or the reader: a child of this program, told what to
// do on its standard input.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startWorker(cpus, role string, config any) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd, err := pinned(cpus, self, role)
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: cmd}
	cmd.Stderr = os.Stderr
	if w.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReaderSize(out, 1<<20)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return w, json.NewEncoder(w.in).Encode(config)
}

// line reads the worker's next line, which must start with want.
func (w *worker) line(want string) (string, error) {
	s, err := w.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s ended early: %w", w.cmd.Args[len(w.cmd.Args)-1], err)
	}
	if !strings.HasPrefix(s, want) {
		return s, errUnexpected
	}
	return s, nil
}

// errUnexpected means that the worker wrote another line than was waited for.
var errUnexpected = errors.New("unexpected line")

func (w *worker) kill() {
	_ = w.in.Close()
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}
