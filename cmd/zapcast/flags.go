package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// parseOptions reads the flags of serve, which are those settings that have a
// flag, and the file's path.
func parseOptions(args []string, stdout io.Writer) (options, error) {
	opts := options{set: map[string][]string{}}
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&opts.file, "config", "", "")
	for _, s := range settings {
		if s.flag != "" {
			fs.Func(s.flag, "", func(given string) error {
				opts.set[s.key] = append(opts.set[s.key], given)
				return nil
			})
		}
	}
	if err := parseFlags(fs, args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			printServeUsage(stdout)
		}
		return options{}, err
	}
	return opts, nil
}

// parseFlags parses the arguments of a command that takes nothing but flags.
func parseFlags(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{fmt.Errorf("%s: %w; 'zapcast %s --help' lists the flags", fs.Name(), err, fs.Name())}
	}
	if fs.NArg() > 0 {
		return usageError{fmt.Errorf("%s: expected only flags, found %q; 'zapcast %s --help' lists them", fs.Name(), cut(fs.Arg(0)), fs.Name())}
	}
	return nil
}

func isHelp(arg string) bool {
	return arg == "-h" || arg == "-help" || arg == "--help"
}

func printServeUsage(w io.Writer) {
	fmt.Fprint(w, `usage: zapcast serve [flags]

Takes multicast and serves it over HTTP. Nothing needs to be set.

  --config FILE
        Configuration file (TOML). Flags win over it. SIGHUP reads it again.
`)
	cfg := defaultConfig()
	for _, s := range settings {
		if s.flag == "" {
			continue
		}
		line := firstSentence(s.doc)
		if _, list := s.value(&cfg).(texts); list {
			line += " May be given more than once."
		}
		if initial := strings.Trim(s.value(&cfg).text(), `[]"`); initial != "" {
			line += " Default: " + initial
		}
		fmt.Fprintf(w, "  --%s %s\n        %s\n", s.flag, s.param, line)
	}
}

// firstSentence is the part of a setting's text that suffices for a usage.
func firstSentence(doc string) string {
	if i := strings.Index(doc, ". "); i >= 0 {
		doc = doc[:i+1]
	}
	return strings.ReplaceAll(doc, "`", "")
}
