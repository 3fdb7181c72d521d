package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the pages that are made from the code")

// sectionSettings lists the settings of a section.
func sectionSettings(name string) (out []setting) {
	for _, s := range settings {
		table, _, nested := strings.Cut(s.key, ".")
		if !nested {
			table = ""
		}
		if table == name {
			out = append(out, s)
		}
	}
	return out
}

// referencePage is docs/configuration.md.
func referencePage() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Made from the table of settings: go test ./cmd/zapcast -update -->

` + "`zapcast serve`" + ` needs no configuration. What it can be told stands in a [TOML](https://toml.io/en/v1.0.0) file,
and the most common of it in flags. Flags win over the file, and the file over the defaults:

    zapcast serve --config zapcast.toml --interface eth1

- The file is read strictly. A key that does not exist or a value that does not fit stops the start with one line, which names
  the file, the line, the key, what was expected and what was found:

      zapcast: zapcast.toml:12: multicast.linger: expected a duration such as "15s", found 15

- ` + "`zapcast check --config FILE`" + ` says the same without starting.
- SIGHUP reads the file again (` + "`systemctl reload zapcast`" + `). A file with a fault, or with an address that cannot be had, changes
  nothing, and the log says why. A good one applies without cutting a stream: viewers stay, listeners that stay in the list stay
  open. Settings marked *restart* wait for the next start, and the log names them.
- Durations are strings such as ` + "`\"500ms\"`, `\"15s\"` or `\"1h30m\"`" + `; sizes are strings such as ` + "`\"64KiB\"`, `\"8MiB\"` or `\"1GiB\"`" + `, or
  whole numbers of bytes.

[examples/zapcast.toml](../examples/zapcast.toml) lists every key with its default.
`)
	cfg := defaultConfig()
	for _, sec := range sections {
		title := "Top level"
		if sec.name != "" {
			title = "[" + sec.name + "]"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, sec.doc)
		for _, s := range sectionSettings(sec.name) {
			v := s.value(&cfg)
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n- Takes: %s\n- Default: `%s`\n", s.key, s.doc, v.takes(), v.text())
			if s.flag != "" {
				fmt.Fprintf(&b, "- Flag: `--%s %s`\n", s.flag, s.param)
			}
			if s.restart {
				b.WriteString("- Applies at: *restart*\n")
			}
		}
	}
	for _, l := range lists {
		fmt.Fprintf(&b, "\n## [[%s]]\n\n%s\n", l.name, l.doc)
		cfg := defaultConfig()
		cfg.item(l, "")
		for _, s := range l.settings {
			v := s.value(&cfg)
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n- Takes: %s\n- Default: `%s`\n", s.key, s.doc, v.takes(), v.text())
		}
	}
	return b.String()
}

// exampleFile is examples/zapcast.toml: every key, each commented out, so that
// a copy of it follows the defaults of later versions.
func exampleFile() string {
	var b strings.Builder
	b.WriteString(`# Configuration of zapcast: every key with its default. Remove the # before a key
# to set it. docs/configuration.md says more; 'zapcast check --config FILE' finds
# mistakes; SIGHUP ('systemctl reload zapcast') applies changes.
`)
	cfg := defaultConfig()
	for _, sec := range sections {
		fmt.Fprintf(&b, "\n%s", comment(sec.doc))
		if sec.name != "" {
			fmt.Fprintf(&b, "[%s]\n", sec.name)
		}
		for _, s := range sectionSettings(sec.name) {
			_, name, nested := strings.Cut(s.key, ".")
			if !nested {
				name = s.key
			}
			fmt.Fprintf(&b, "\n%s#%s = %s\n", comment(s.doc), name, s.value(&cfg).text())
		}
	}
	for _, l := range lists {
		cfg := defaultConfig()
		cfg.item(l, "")
		fmt.Fprintf(&b, "\n%s#[[%s]]\n", comment(l.doc), l.name)
		for _, s := range l.settings {
			_, name, _ := strings.Cut(s.key, ".")
			fmt.Fprintf(&b, "\n%s#%s = %s\n", comment(s.doc), name, s.value(&cfg).text())
		}
	}
	return b.String()
}

// comment wraps text into comment lines.
func comment(text string) string {
	const width = 80
	var b strings.Builder
	line := "#"
	for word := range strings.FieldsSeq(strings.ReplaceAll(text, "`", "")) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
	return b.String()
}

// same compares a file with what the code makes of it.
func same(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s differs from the code; go test ./cmd/zapcast -update rewrites it (-want +got):\n%s", path, diff)
	}
}

func TestReferencePage_followsTheCode(t *testing.T) {
	same(t, "../../docs/configuration.md", referencePage())
}

func TestExampleFile_followsTheCode(t *testing.T) {
	same(t, "../../examples/zapcast.toml", exampleFile())
}

func TestExampleFile_holdsTheDefaults(t *testing.T) {
	doc := exampleFile()
	for _, s := range settings {
		name := s.key[strings.LastIndex(s.key, ".")+1:]
		active := strings.Replace(doc, "\n#"+name+" = ", "\n"+name+" = ", 1)
		if active == doc {
			t.Errorf("%s: not in the example", s.key)
		}
		doc = active
	}
	cfg, want := defaultConfig(), defaultConfig()
	if err := cfg.apply("example", []byte(doc)); err != nil {
		t.Fatal(err)
	}
	if got := len(cfg.origin); got != len(settings) {
		t.Errorf("settings made: got %d, want all %d", got, len(settings))
	}
	cfg.origin = want.origin
	if diff := cmp.Diff(want, cfg, cmp.AllowUnexported(serveConfig{})); diff != "" {
		t.Errorf("example against defaults (-want +got):\n%s", diff)
	}
}

// Every setting must be reachable: in a section, with a sentence of its own.
func TestSettings_areComplete(t *testing.T) {
	total, seen := 0, map[string]bool{}
	for _, sec := range sections {
		total += len(sectionSettings(sec.name))
	}
	if total != len(settings) {
		t.Errorf("settings in a section: got %d, want %d", total, len(settings))
	}
	for _, s := range settings {
		if seen[s.key] {
			t.Errorf("%s: listed twice", s.key)
		}
		seen[s.key] = true
		if !strings.HasSuffix(s.doc, ".") {
			t.Errorf("%s: text %q is no sentence", s.key, s.doc)
		}
		if (s.flag == "") != (s.param == "") {
			t.Errorf("%s: flag %q with parameter %q, want both or neither", s.key, s.flag, s.param)
		}
	}
}
