package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	fccserver "zapcast/fcc/server"
	"zapcast/ingest"
)

const fccdUsage = `usage: zapcast fccd --channel GROUP:PORT [flags]

Keeps the newest part of each channel and serves it to boxes that zap there, in
the dialects of telecom, Huawei and RFC 6285, with retransmission beside it.

    zapcast fccd --channel 239.1.1.1:5000 --interface eth1
    zapcast serve   then open http://THIS-MACHINE:5140/rtp/239.1.1.1:5000?fcc=SERVER:8027

  --config FILE
        Settings in TOML: the names below without dashes. Flags win over it.
`

// fccdConfig is what fccd can be told, as text: package server's Config is made
// of it.
type fccdConfig struct {
	listen, iface                string
	channels, groups             []string
	networks, redirect, dialects []string
	percent                      int
	rate, clientRate             int
	sessions, clientSessions     int
	history, channelHistory      int64
	linger                       time.Duration
	unconfirmed                  bool
	logLevel                     string
}

// fccdSettings are the flags, and the keys of the file.
var fccdSettings = []struct {
	name, param string
	initial     any
	doc         string
	value       func(*fccdConfig) value
}{
	{"channel", "[SOURCE@]GROUP:PORT", []any{}, "Channel that is always joined.", func(c *fccdConfig) value {
		return texts{&c.channels, 0, `a channel such as "239.1.1.1:5000"`, normalChannel}
	}},
	{"groups", "PREFIX", []any{}, "Groups that are joined when a client asks for them.", func(c *fccdConfig) value {
		return texts{&c.groups, 0, `a range of groups such as "239.0.0.0/8"`, normalPrefix}
	}},
	{"listen", "ADDR:PORT", "0.0.0.0:8027", "Where requests come to; telecom's and Huawei's bursts come from the port above.", func(c *fccdConfig) value {
		return text{&c.listen, `ADDR:PORT with an IPv4 address`, validServer}
	}},
	{"interface", "IF", "", "Network interface to join on. Default: the routing table's choice.", func(c *fccdConfig) value {
		return text{&c.iface, `the name of an interface such as "eth0"`, validInterface}
	}},
	{"network", "PREFIX", []any{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8"}, "Clients that are answered. Nobody else hears anything.", func(c *fccdConfig) value {
		return texts{&c.networks, 1, `a network such as "10.0.0.0/8"`, normalPrefix}
	}},
	{"dialect", "NAME", []any{"telecom", "huawei", "rams"}, "Dialects that are answered.", func(c *fccdConfig) value {
		return texts{&c.dialects, 1, `"telecom", "huawei" or "rams"`, func(s string) (string, bool) { return s, slices.Contains(fccserver.Dialects, s) }}
	}},
	{"redirect", "ADDR:PORT", []any{}, "Be a front: send every client to one of these servers, the same for the same group.", func(c *fccdConfig) value {
		return texts{&c.redirect, 0, `ADDR:PORT with an IPv4 address`, func(s string) (string, bool) { return s, validServer(s) }}
	}},
	{"burst-percent", "N", int64(300), "Rate of a burst in percent of the channel's; the caps may make it less.", func(c *fccdConfig) value {
		return count{&c.percent, 120, 2000}
	}},
	{"rate", "MBIT", int64(500), "Mbit/s of all bursts together.", func(c *fccdConfig) value { return count{&c.rate, 1, 100_000} }},
	{"client-rate", "MBIT", int64(100), "Mbit/s of the bursts to one address.", func(c *fccdConfig) value { return count{&c.clientRate, 1, 10_000} }},
	{"sessions", "N", int64(256), "Bursts at a time.", func(c *fccdConfig) value { return count{&c.sessions, 1, 100_000} }},
	{"client-sessions", "N", int64(4), "Bursts at a time to one address.", func(c *fccdConfig) value { return count{&c.clientSessions, 1, 1000} }},
	{"history", "SIZE", "256MiB", "Memory for all channels.", func(c *fccdConfig) value { return size{&c.history, 1 * mib, 1 << 40} }},
	{"channel-history", "SIZE", "16MiB", "Memory for one channel: its last two random-access intervals are to fit.", func(c *fccdConfig) value {
		return size{&c.channelHistory, 256 * kib, 1 << 40}
	}},
	{"linger", "DURATION", "1m", "How long a group that was asked for stays joined after the last request.", func(c *fccdConfig) value {
		return duration{&c.linger, time.Second, 24 * time.Hour, ""}
	}},
	{"unconfirmed", "true|false", false, "Send bursts to addresses that have not shown that they exist.", func(c *fccdConfig) value { return truth{&c.unconfirmed} }},
	{"log-level", "LEVEL", "info", "Least weight of the lines that are logged.", func(c *fccdConfig) value {
		return choice{&c.logLevel, []string{"debug", "info", "warn", "error"}}
	}},
}

// runFCCD serves fast channel change until ctx ends.
func runFCCD(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, err := parseFCCD(args, stdout)
	if err != nil {
		return err
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.logLevel)) // one of a few that it knows
	_, log := newLogger(stderr, level)
	s, err := fccserver.Open(cfg.server(log))
	if err != nil {
		return err
	}
	log.Info("fast channel change", "listen", s.Address())
	return s.Run(ctx)
}

// parseFCCD puts a configuration together: defaults, then the file, then flags.
func parseFCCD(args []string, stdout io.Writer) (cfg fccdConfig, err error) {
	given := map[string][]string{}
	var file string
	fs := flag.NewFlagSet("fccd", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&file, "config", "", "")
	for _, s := range fccdSettings {
		if err := s.value(&cfg).set(s.initial); err != nil {
			panic("main: default of " + s.name + ": " + err.Error())
		}
		fs.Func(s.name, "", func(v string) error { given[s.name] = append(given[s.name], v); return nil })
	}
	if err := parseFlags(fs, args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			printFCCDUsage(stdout)
		}
		return cfg, err
	}
	if file != "" {
		if err := cfg.read(file); err != nil {
			return cfg, err
		}
	}
	for _, s := range fccdSettings {
		if values, ok := given[s.name]; ok {
			v := s.value(&cfg)
			found := flagValue(v, values)
			if _, yes := v.(truth); yes {
				if b, err := strconv.ParseBool(values[len(values)-1]); err == nil {
					found = b
				}
			}
			if err := v.set(found); err != nil {
				return cfg, usageError{fmt.Errorf("--%s: %w", s.name, err)}
			}
		}
	}
	if len(cfg.channels)+len(cfg.groups)+len(cfg.redirect) == 0 {
		return cfg, usageError{errors.New("fccd: expected --channel, --groups or --redirect; 'zapcast fccd --help' shows an example")}
	}
	return cfg, nil
}

// read sets what a file says, strictly.
func (c *fccdConfig) read(path string) error {
	doc, err := readConfig(path)
	if err != nil {
		return err
	}
	var tree map[string]any
	if err := toml.Unmarshal(doc, &tree); err != nil {
		return syntaxFault(path, doc, err)
	}
	for key, v := range tree {
		known := false
		for _, s := range fccdSettings {
			if s.name != key {
				continue
			}
			known = true
			if err := s.value(c).set(v); err != nil {
				return fmt.Errorf("%s: %s: %w", path, key, err)
			}
		}
		if !known {
			return fmt.Errorf("%s: %s: unknown key; 'zapcast fccd --help' lists them", path, strconv.Quote(cut(key)))
		}
	}
	return nil
}

func printFCCDUsage(w io.Writer) {
	fmt.Fprint(w, fccdUsage)
	cfg := fccdConfig{}
	for _, s := range fccdSettings {
		v := s.value(&cfg)
		_ = v.set(s.initial) // as in parseFCCD
		line := s.doc
		if _, list := v.(texts); list {
			line += " May be given more than once."
		}
		if initial := strings.Trim(v.text(), `[]"`); initial != "" {
			line += " Default: " + strings.ReplaceAll(initial, `"`, "")
		}
		fmt.Fprintf(w, "  --%s %s\n        %s\n", s.name, s.param, line)
	}
}

// server is the configuration as package server takes it.
func (c *fccdConfig) server(log *slog.Logger) fccserver.Config {
	out := fccserver.Config{
		Listen: netip.MustParseAddrPort(c.listen), Interface: c.iface, Dialects: c.dialects,
		Factor: float64(c.percent) / 100, Rate: int64(c.rate) * 1e6, ClientRate: int64(c.clientRate) * 1e6,
		Sessions: c.sessions, ClientSessions: c.clientSessions, History: c.history, ChannelHistory: c.channelHistory,
		Linger: c.linger, Unconfirmed: c.unconfirmed, Logger: log,
	}
	for _, s := range c.channels {
		spec, _ := parseChannel(s)
		spec.Interface = c.iface
		out.Channels = append(out.Channels, spec)
	}
	for _, s := range c.groups {
		out.Groups = append(out.Groups, netip.MustParsePrefix(s))
	}
	for _, s := range c.networks {
		out.Networks = append(out.Networks, netip.MustParsePrefix(s))
	}
	for _, s := range c.redirect {
		out.Redirect = append(out.Redirect, netip.MustParseAddrPort(s))
	}
	return out
}

func validServer(s string) bool {
	a, err := netip.ParseAddrPort(s)
	return err == nil && a.Addr().Is4()
}

func normalPrefix(s string) (string, bool) {
	p, err := netip.ParsePrefix(s)
	return p.Masked().String(), err == nil && p.Addr().Is4()
}

func normalChannel(s string) (string, bool) {
	spec, ok := parseChannel(s)
	return spec.String(), ok
}

// parseChannel reads [SOURCE@]GROUP:PORT.
func parseChannel(s string) (spec ingest.FlowSpec, ok bool) {
	group := s
	if source, rest, found := strings.Cut(s, "@"); found {
		a, err := netip.ParseAddr(source)
		if err != nil {
			return spec, false
		}
		spec.Source, group = a, rest
	}
	a, err := netip.ParseAddrPort(group)
	spec.Group = a
	return spec, err == nil && a.Addr().Is4() && spec.Validate() == nil
}
