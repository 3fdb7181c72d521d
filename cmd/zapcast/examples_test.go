package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const exampleUnit = "../../examples/zapcast.service"

// readLines returns the lines of a file that are neither blank nor comments.
func readLines(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestExampleUnit_startsTheProgram(t *testing.T) {
	unit := map[string]string{}
	for _, line := range readLines(t, exampleUnit) {
		if key, v, ok := strings.Cut(line, "="); ok {
			unit[key] = v
		}
	}
	for key, want := range map[string]string{
		"Type":                "notify", // notify.go
		"ExecReload":          "/bin/kill -HUP $MAINPID",
		"AmbientCapabilities": unit["CapabilityBoundingSet"],
		// AF_PACKET: what ingest's rings and diagnose open.
		"RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX AF_NETLINK AF_PACKET",
	} {
		if got := unit[key]; got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	words := strings.Fields(unit["ExecStart"])
	if len(words) < 2 || words[0] != "/usr/local/bin/zapcast" || words[1] != "serve" {
		t.Fatalf("ExecStart: got %q, want zapcast serve", words)
	}
	opts, err := parseOptions(words[2:], io.Discard)
	if err != nil {
		t.Fatalf("ExecStart: %v", err)
	}
	// The comment at the top puts the example there.
	if got, want := opts.file, "/etc/zapcast/zapcast.toml"; got != want {
		t.Errorf("ExecStart: configuration: got %s, want %s", got, want)
	}
	opts.file = "../../examples/zapcast.toml"
	if _, err := opts.load(); err != nil {
		t.Errorf("configuration of the unit: %v", err)
	}
}

func TestExampleUnit_verifies(t *testing.T) {
	installed(t, "systemd-analyze")
	text, err := os.ReadFile(exampleUnit)
	if err != nil {
		t.Fatal(err)
	}
	// The program need not be installed: any that exists will do.
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "zapcast.service")
	here := strings.ReplaceAll(string(text), "/usr/local/bin/zapcast", program)
	if err := os.WriteFile(path, []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: got %v and %q, want nothing", err, out)
	}
}

func TestExampleContainerfile_fitsTheProject(t *testing.T) {
	text := strings.Join(readLines(t, "../../examples/Containerfile"), "\n")
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	one := func(pattern, in string) []string {
		t.Helper()
		all := regexp.MustCompile("(?m)"+pattern).FindAllStringSubmatch(in, -1)
		if len(all) != 1 {
			t.Fatalf("%s: got %d matches, want one", pattern, len(all))
		}
		return all[0][1:]
	}

	release := one(`^go (\d+\.\d+)`, string(module))[0]
	if got := one(`^FROM docker\.io/library/golang:(\S+) AS build$`, text)[0]; got != release {
		t.Errorf("compiler: got %s, want %s as in go.mod", got, release)
	}
	for file := range strings.FieldsSeq(one(`^COPY (.+) \./$`, text)[0]) {
		if _, err := os.Stat("../../" + file); err != nil {
			t.Errorf("COPY: %v", err)
		}
	}
	target := one(`^RUN make (\S+)$`, text)[0]
	recipe := one(`^`+target+`:.*\n\t(.+)$`, string(makefile))[0]
	folder := one(`^WORKDIR (\S+)$`, text)[0]
	binary := one(`^COPY --from=build (\S+) (\S+)$`, text)
	if built := one(` -o (\S+) `, recipe)[0]; binary[0] != folder+"/"+built {
		t.Errorf("program: copied from %s, built as %s/%s", binary[0], folder, built)
	}
	if !strings.Contains(recipe, "CGO_ENABLED=0") {
		t.Errorf("program: built by %q, want a static one for an empty image", recipe)
	}
	if got, want := one(`^ENTRYPOINT \["(\S+)"\]$`, text)[0], binary[1]; got != want {
		t.Errorf("ENTRYPOINT: got %s, want %s", got, want)
	}
	run := one(`^CMD \["(\S+)"\]$`, text)[0]
	if !slices.ContainsFunc(commands, func(c command) bool { return c.name == run }) {
		t.Errorf("CMD: got %q, want a command", run)
	}
	if got, want := ":"+one(`^EXPOSE (\d+)$`, text)[0], defaultConfig().listen[0]; got != want {
		t.Errorf("EXPOSE: got %s, want %s", got, want)
	}
}
