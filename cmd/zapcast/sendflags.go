package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"zapcast/playout"
)

// parseSend reads the command line of send. Flags may stand before, behind and
// between the files.
func parseSend(args []string, stdout io.Writer) (cfg playout.Config, paths []string, err error) {
	cfg.Seed = uint64(rand.Uint32()) // short enough to be typed again

	fs := flag.NewFlagSet("send", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&cfg.Interface, "interface", "", "")
	fs.IntVar(&cfg.TTL, "ttl", 1, "")
	fs.BoolVar(&cfg.Loop, "loop", false, "")
	fs.DurationVar(&cfg.Impairments.Jitter, "jitter", 0, "")
	fs.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "")

	// The others bring their own messages.
	var fault error
	add := func(name string, read func(string) error) {
		fs.Func(name, "", func(given string) error {
			if err := read(given); err != nil && fault == nil {
				fault = usageError{fmt.Errorf("--%s: %w", name, err)}
			}
			return nil
		})
	}
	add("to", func(s string) error {
		d, err := playout.ParseDestination(s)
		cfg.Destinations = append(cfg.Destinations, d)
		return err
	})
	add("rate", func(s string) (err error) {
		cfg.Rate, err = playout.ParseRate(s)
		return err
	})
	add("fec", func(s string) (err error) {
		cfg.Parity, err = playout.ParseParity(s)
		return err
	})
	imp := &cfg.Impairments
	add("drop", func(s string) (err error) {
		imp.Drop, imp.Burst, err = readShare(s, "BURST", 1e5)
		return err
	})
	add("duplicate", func(s string) (err error) {
		imp.Duplicate, _, err = readShare(s, "", 0)
		return err
	})
	add("reorder", func(s string) error {
		share, distance, err := readShare(s, "DISTANCE", 1000)
		imp.Reorder, imp.Distance = share, int(distance)
		return err
	})

	paths, err = parseMixed(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, sendUsage)
	case err != nil:
	case fault != nil:
		err = fault
	case len(paths) == 0:
		err = usageError{errors.New("send: expected a TS file, found none; 'zapcast send --help' shows an example")}
	case len(cfg.Destinations) == 0:
		err = usageError{errors.New("send: expected --to rtp://GROUP:PORT, found no destination")}
	}
	return cfg, paths, err
}

// parseMixed parses flags and returns what stands between them. Behind "--"
// nothing is a flag.
func parseMixed(fs *flag.FlagSet, args []string) (others []string, err error) {
	for {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, err
		} else if err != nil {
			return nil, usageError{fmt.Errorf("%s: %w; 'zapcast %s --help' lists the flags", fs.Name(), err, fs.Name())}
		}
		rest := fs.Args()
		if used := len(args) - len(rest); len(rest) == 0 || used > 0 && args[used-1] == "--" {
			return append(others, rest...), nil
		}
		others, args = append(others, rest[0]), rest[1:]
	}
}

// readShare reads a share, as in 1%, 0.01 or 1/100. Where the number behind a
// comma has a name, it is read too: 1 to limit, and 0 if there is none.
func readShare(s, name string, limit float64) (share, number float64, err error) {
	text, second, found := strings.Cut(s, ",")
	wrong := &mismatch{"a share such as 1%, 0.01 or 1/100", s}
	if found && name == "" {
		return 0, 0, wrong
	}
	part, whole := text, "1"
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		part, whole = percent, "100"
	} else if a, b, ok := strings.Cut(text, "/"); ok {
		part, whole = a, b
	} else if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 1 {
		// Who types 1 means one in a hundred as likely as all of them.
		return 0, 0, &mismatch{fmt.Sprintf("a share such as %s%%, or a number below 1", cut(text)), s}
	}
	a, errA := strconv.ParseFloat(part, 64)
	b, errB := strconv.ParseFloat(whole, 64)
	if share = a / b; errA != nil || errB != nil || !(share >= 0 && share <= 1) {
		return 0, 0, wrong
	}
	if !found {
		return share, 0, nil
	}
	if number, err = strconv.ParseFloat(second, 64); err != nil || !(number >= 1 && number <= limit) {
		return 0, 0, &mismatch{fmt.Sprintf("%s from 1 to %.0f behind the comma", name, limit), s}
	}
	return share, number, nil
}
