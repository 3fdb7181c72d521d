package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version is set by the linker for releases (-X main.version=v1.2.3); without
// it the build information says where the program comes from.
var version string

// runVersion prints the version.
func runVersion(_ context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) > 0 {
		if isHelp(args[0]) {
			fmt.Fprintln(stdout, "usage: zapcast version")
			return nil
		}
		return usageError{fmt.Errorf("version: expected no arguments, found %q", cut(args[0]))}
	}
	number, commit := buildVersion()
	fmt.Fprintf(stdout, "zapcast %s (%s, %s, %s/%s)\n", number, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// buildVersion returns the version and the commit, each with a word where it
// is not known.
func buildVersion() (number, commit string) {
	number, commit = "devel", "no commit"
	info, ok := debug.ReadBuildInfo()
	if ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			number = v
		}
		changed := ""
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value[:min(12, len(s.Value))]
			case "vcs.modified":
				if s.Value == "true" {
					changed = " with changes"
				}
			}
		}
		commit += changed
	}
	if version != "" {
		number = version
	}
	return number, commit
}
