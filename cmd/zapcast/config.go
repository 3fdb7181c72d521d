package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Longer files are no configuration of ours.
const maxConfigBytes = 1 << 20

// options are what the command line said: a file, and settings that win over
// it.
type options struct {
	file string              // path of the configuration; empty: none
	set  map[string][]string // values of flags by the setting's key
}

// load puts a configuration together: defaults, then the file, then the flags.
// An error is one line that names the place, the key, what was expected and
// what was found.
func (o options) load() (serveConfig, error) {
	cfg := defaultConfig()
	if o.file != "" {
		doc, err := readConfig(o.file)
		if err != nil {
			return serveConfig{}, err
		}
		if err := cfg.apply(o.file, doc); err != nil {
			return serveConfig{}, err
		}
	}
	for _, s := range settings {
		given, ok := o.set[s.key]
		if !ok {
			continue
		}
		v := s.value(&cfg)
		if err := v.set(flagValue(v, given)); err != nil {
			return serveConfig{}, usageError{fmt.Errorf("--%s: %w", s.flag, err)}
		}
		cfg.origin[s.key] = "--" + s.flag
	}
	if err := cfg.validate(); err != nil {
		return serveConfig{}, err
	}
	return cfg, nil
}

// flagValue turns the text of a flag into what a file would hold.
func flagValue(v value, given []string) any {
	switch v.(type) {
	case texts:
		list := make([]any, len(given))
		for i, s := range given {
			list[i] = s
		}
		return list
	case count:
		if n, err := strconv.ParseInt(given[len(given)-1], 10, 64); err == nil {
			return n
		}
	}
	return given[len(given)-1]
}

// readConfig reads a file of a bounded length.
func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	doc, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(doc) > maxConfigBytes {
		return nil, fmt.Errorf("%s: expected at most %d bytes, found more", path, maxConfigBytes)
	}
	return doc, nil
}

func unreadable(path string, err error) error {
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		err = cause.Err
	}
	return fmt.Errorf("%s: expected a readable file: %w", path, err)
}

// validate checks what no setting can know alone. A default gives way to what
// was set.
func (c *serveConfig) validate() error {
	const key = "memory.channel-history"
	if c.origin[key] == "" {
		c.channelHistory = min(c.channelHistory, c.history)
	}
	if c.channelHistory > c.history {
		return c.fault(key, &mismatch{"at most memory.history (" + formatSize(c.history) + ")", formatSize(c.channelHistory)})
	}
	if c.rtspUDPPort%2 != 0 {
		return c.fault("rtsp.udp-port", &mismatch{"an even number", c.rtspUDPPort})
	}
	if c.fccFirstPort > 0 && c.fccLastPort <= c.fccFirstPort {
		return c.fault("fcc.last-port", &mismatch{fmt.Sprintf("more than fcc.first-port (%d)", c.fccFirstPort), c.fccLastPort})
	}
	return c.validateLists()
}

// fault names a setting and where it was made before an error about it.
func (c *serveConfig) fault(key string, err error) error {
	switch at := c.origin[key]; {
	case at == "":
		return fmt.Errorf("%s: %w", key, err)
	case strings.HasPrefix(at, "--"):
		return fmt.Errorf("%s: %w", at, err)
	default:
		return fmt.Errorf("%s: %s: %w", at, key, err)
	}
}
