//go:build linux

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

//go:embed programs.json
var builtinPrograms []byte

// defaultURL is how a program is asked for a channel unless it is told.
const defaultURL = "http://127.0.0.1:{http}/rtp/{group}:{port}"

// program says how one server is started and asked for a channel.
// These placeholders are replaced in argv, url, env and config:
//
//	{bin} {http} {rtsp} {iface} {config} {dir} {group} {port}
type program struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	URL  string   `json:"url,omitempty"` // defaultURL if empty
	// RTSPURL is how it is asked over RTSP, and RTSPArgv what it is told besides
	// then; empty if it has none.
	RTSPURL  string   `json:"rtsp_url,omitempty"`
	RTSPArgv []string `json:"rtsp_argv,omitempty"`
	// SourceURL is how it is asked for source {group} of the RTSP server at {port},
	// and SourceArgv what it is told besides then; empty if it takes none.
	SourceURL  string   `json:"source_url,omitempty"`
	SourceArgv []string `json:"source_argv,omitempty"`
	Env        []string `json:"env,omitempty"`
	ConfigName string   `json:"config_name,omitempty"` // file written to {dir}
	Config     []string `json:"config,omitempty"`      // its lines
	// BindsAll marks a server which cannot be told to listen on loopback only;
	// it is refused outside a network namespace of its own.
	BindsAll bool `json:"binds_all_addresses,omitempty"`
}

// peer is a program to measure.
type peer struct {
	program
	Label string // name as shown: "zapcast" or "zapcast@branch"
	Bin   string // absolute path; empty until it is built
	Unpin bool   // let the server use every CPU
	Note  string
}

// programTable holds the known programs by name.
type programTable map[string]program

// loadPrograms returns the built-in table, with the entries of file added to it
// or replacing those of the same name.
func loadPrograms(file string) (programTable, error) {
	table := programTable{}
	add := func(b []byte) error {
		var list []program
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		for _, p := range list {
			table[p.Name] = p
		}
		return nil
	}
	if err := add(builtinPrograms); err != nil {
		return nil, err
	}
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := add(b); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return table, nil
}

// change adds the --program entries and applies --argv and --url. It returns
// what the former make of --peer: NAME=PATH, in the order given.
func (table programTable) change(programs, argvs, urls list) (specs []string, err error) {
	for _, s := range programs {
		name, line, _ := strings.Cut(s, "=")
		words := strings.Fields(line)
		if name == "" || len(words) == 0 {
			return nil, fmt.Errorf("--program %q: it is 'NAME=BIN ARGS'", s)
		}
		bin, err := exec.LookPath(words[0])
		if err != nil {
			return nil, fmt.Errorf("--program %s: %w", name, err)
		}
		p := table[name]
		p.Name, p.Argv = name, append([]string{"{bin}"}, words[1:]...)
		table[name] = p
		specs = append(specs, name+"="+bin)
	}
	for _, o := range []struct {
		flag  string
		list  list
		apply func(*program, string)
	}{
		{"argv", argvs, func(p *program, s string) { p.Argv = strings.Fields(s) }},
		{"url", urls, func(p *program, s string) { p.URL = s }},
	} {
		for _, s := range o.list {
			name, text, _ := strings.Cut(s, "=")
			p, ok := table[name]
			if !ok || text == "" {
				return nil, fmt.Errorf("--%s %q: it is 'NAME=TEMPLATE', and NAME a program of the table or of --program", o.flag, s)
			}
			o.apply(&p, text)
			table[name] = p
		}
	}
	return specs, nil
}

// peers are all programs to measure: zapcast first, those given by path in their
// order, then the other own ones. A program given by path replaces an own one.
func (table programTable) peers(own string, given ...[]string) ([]*peer, error) {
	var peers []*peer
	add := func(spec string) error {
		label, bin, _ := strings.Cut(spec, "=")
		name, _, _ := strings.Cut(label, "@")
		p, ok := table[name]
		if !ok {
			return fmt.Errorf("no program named %q in the table: give it with --program", name)
		}
		if slices.ContainsFunc(peers, func(q *peer) bool { return q.Label == label }) {
			return fmt.Errorf("%s is given twice: tell builds apart as %s@TAG", label, name)
		}
		if bin != "" {
			var err error
			if bin, err = filepath.Abs(bin); err != nil {
				return err
			}
			if st, err := os.Stat(bin); err != nil || st.IsDir() {
				return fmt.Errorf("%s: no binary at %q", label, bin)
			}
		} else if !slices.Contains(ownPrograms, label) {
			return fmt.Errorf("%s: the path is missing", label)
		}
		if p.URL == "" {
			p.URL = defaultURL
		}
		peers = append(peers, &peer{program: p, Label: label, Bin: bin})
		return nil
	}

	specs := slices.Concat(given...)
	replaced := func(name string) bool {
		return slices.ContainsFunc(specs, func(s string) bool {
			label, _, _ := strings.Cut(s, "=")
			n, _, _ := strings.Cut(label, "@")
			return n == name
		})
	}
	var first, last []string
	for name := range strings.SplitSeq(own, ",") {
		switch {
		case name == "" || replaced(name):
		case !slices.Contains(ownPrograms, name):
			return nil, fmt.Errorf("--own %s: it can be any of %s", name, strings.Join(ownPrograms, ", "))
		case name == "zapcast":
			first = append(first, name)
		default:
			last = append(last, name)
		}
	}
	for _, s := range slices.Concat(first, specs, last) {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return peers, nil
}

// launch holds what one start of a peer needs.
type launch struct {
	argv, env []string
	dir       string
	url       string // of a channel, with {group} and {port} in it
}

// prepare renders the peer's configuration into dir and its command line.
func (p *peer) prepare(dir, iface string, httpPort int, c benchCase) (*launch, error) {
	config := filepath.Join(dir, p.ConfigName)
	r := strings.NewReplacer("{bin}", p.Bin, "{iface}", iface,
		"{http}", strconv.Itoa(httpPort), "{rtsp}", strconv.Itoa(httpPort+rtspAbove), "{config}", config, "{dir}", dir)
	if p.ConfigName != "" {
		text := r.Replace(strings.Join(p.Config, "\n") + "\n")
		if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	l := &launch{dir: dir}
	argv, url := p.Argv, p.URL
	if c.RTSP && p.RTSPURL != "" {
		argv, url = slices.Concat(argv, p.RTSPArgv), p.RTSPURL
	}
	if c.RTSPIn {
		argv, url = slices.Concat(argv, p.SourceArgv), p.SourceURL
	}
	l.url = r.Replace(url)
	for _, a := range argv {
		l.argv = append(l.argv, r.Replace(a))
	}
	for _, e := range p.Env {
		l.env = append(l.env, r.Replace(e))
	}
	return l, nil
}

// rtspAbove is how far the RTSP port is above the HTTP port: more than a run has
// trials.
const rtspAbove = 10_000

// channel is the address of one channel.
func (l *launch) channel(group string, port int) string {
	return strings.NewReplacer("{group}", group, "{port}", strconv.Itoa(port)).Replace(l.url)
}
