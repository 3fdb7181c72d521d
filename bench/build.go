//go:build linux

package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ownPrograms can be measured without a path: bench builds them, or is them.
var ownPrograms = []string{"zapcast", "zapcast-sockets", "zapcast-ring", "floor", "floor-ring", "yardstick"}

//go:embed floor/floor.c
var floorSource []byte

// errNoCompiler means that the floor cannot be had here; the rest can.
var errNoCompiler = errors.New("no C compiler (cc) on this machine")

// build makes the binaries of the own programs into s.Dir. Without a C compiler
// the floor is left out of s.Peers.
func (s *settings) build() error {
	built := map[string]string{}
	once := func(name string, compile func(out string) error) (string, error) {
		if bin := built[name]; bin != "" {
			return bin, nil
		}
		bin := filepath.Join(s.Dir, name)
		if err := compile(bin); err != nil {
			return "", err
		}
		built[name] = bin
		return bin, nil
	}
	left := false
	for _, p := range s.Peers {
		if p.Bin != "" {
			continue
		}
		var err error
		switch p.Name {
		case "zapcast", "zapcast-sockets", "zapcast-ring":
			p.Bin, err = once("zapcast", buildZapcast)
		case "floor", "floor-ring":
			p.Bin, err = once("floor", buildFloor)
		case "yardstick":
			p.Bin, err = os.Executable()
		}
		if errors.Is(err, errNoCompiler) {
			left = true
		} else if err != nil {
			return err
		}
	}
	if left {
		fmt.Fprintf(os.Stderr, "bench: %v: the floor is left out\n", errNoCompiler)
		s.Peers = slices.DeleteFunc(s.Peers, func(p *peer) bool { return p.Bin == "" })
	}
	if len(s.Peers) == 0 {
		return errors.New("nothing left to measure")
	}
	return nil
}

// buildZapcast builds the program as it is released, from the module that the
// working directory belongs to.
func buildZapcast(out string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "zapcast/cmd/zapcast")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	b, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("no go command in PATH to build zapcast with (sudo may have reset it): give --peer zapcast=PATH")
	}
	if err != nil {
		return fmt.Errorf("build zapcast (in its module, or give --peer zapcast=PATH): %w: %s", err, strings.TrimSpace(string(b)))
	}
	return nil
}

// buildFloor builds floor/floor.c, which this binary carries.
func buildFloor(out string) error {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return errNoCompiler
	}
	src := out + ".c"
	if err := os.WriteFile(src, floorSource, 0o644); err != nil {
		return err
	}
	if b, err := exec.Command(cc, "-O3", "-o", out, src).CombinedOutput(); err != nil {
		return fmt.Errorf("build the floor: %w: %s", err, strings.TrimSpace(string(b)))
	}
	return nil
}
