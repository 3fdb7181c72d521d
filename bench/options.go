//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// settings is one run as the command line asked for it. It is handed to the
// measure role as JSON.
type settings struct {
	Peers []*peer
	Cases []benchCase

	Rounds, Joins                 int
	Warmup, Sample, Modes, Settle time.Duration
	Quiet, MaxTime                time.Duration
	FirstByte, Cold               time.Duration

	Tick, ReadInterval time.Duration
	ClientRcvBuf       int
	NoRAI              bool

	ServerCPUs, LoadCPUs, AllCPUs string
	NetNS                         bool
	CC                            string

	Baseline, Out string
	Dir           string // holds what is built and what the servers write; removed at the end

	port int // trials so far
}

const usage = `usage: bench [flags]                              measure
       bench report RESULTS.JSON [BASELINE]       print the tables of a run again

With no flags bench builds zapcast and the floor and measures both in four cases,
in about ten minutes. Any other program joins in by its command line and its URL:

    bench --program 'NAME=/path/to/bin args {http} {iface}' \
          --url 'NAME=http://127.0.0.1:{http}/udp/{group}:{port}'

A quick look: bench --rounds 1 --warmup 1s --sample 3s. It needs root, two CPUs
and the ip command. bench/README.md explains the figures.

`

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// parseOptions turns the command line into settings. Programs without a binary
// are still to be built. It returns flag.ErrHelp after it wrote the help to out.
func parseOptions(args []string, out io.Writer) (*settings, error) {
	s := &settings{}
	var peers, programs, argvs, urls, notes list
	var own, caseNames, unpin, file string
	all := make([]string, len(cases))
	for i, c := range cases {
		all[i] = c.Name
	}

	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.Var(&programs, "program", "measure a program, `'NAME=BIN ARGS'`; may be repeated")
	f.Var(&urls, "url", "its URL, `NAME=TEMPLATE` (default "+defaultURL+")")
	f.Var(&peers, "peer", "measure a build of a program of the table, `NAME[@TAG]=PATH`; may be repeated")
	f.Var(&argvs, "argv", "replace the command line of a program of the table, `NAME=TEMPLATE`")
	f.StringVar(&own, "own", "zapcast,floor", "which of "+strings.Join(ownPrograms, ", ")+" to measure without being told a path; may be empty")
	f.StringVar(&file, "programs", "", "JSON `file` that adds programs to the table")
	f.StringVar(&s.Baseline, "baseline", "", "program that ratios refer to (default: floor, else the first other than zapcast)")
	f.Var(&notes, "note", "version or remark kept with the results, `NAME=TEXT`")

	f.StringVar(&caseNames, "cases", strings.Join(all[:publishedCases], ","), "comma-separated cases, or all: "+strings.Join(all, ","))
	f.IntVar(&s.Rounds, "rounds", 3, "rounds; each starts with another program")
	f.DurationVar(&s.Warmup, "warmup", 5*time.Second, "time after every client has data, before the window")
	f.DurationVar(&s.Sample, "sample", 15*time.Second, "length of the measured window")
	f.DurationVar(&s.Modes, "modes", 4*time.Second, "length of the window behind it, in which the share of user mode is sampled")
	f.DurationVar(&s.Settle, "settle", time.Second, "pause between runs")
	f.DurationVar(&s.Quiet, "quiet", 30*time.Second, "longest wait, before each run, for other programs to be idle")
	f.DurationVar(&s.MaxTime, "max-time", 2*time.Hour, "start no run after this")
	f.IntVar(&s.Joins, "joins", 20, "join cases: cold requests, and warm ones, in each round")
	f.DurationVar(&s.Cold, "cold", 20*time.Second, "join cases: how long nobody has watched a channel that a cold request asks for")
	f.DurationVar(&s.FirstByte, "first-byte", 10*time.Second, "longest wait for a client's first byte")

	f.DurationVar(&s.Tick, "tick", 250*time.Microsecond, "generator's send interval (1ms at most)")
	f.DurationVar(&s.ReadInterval, "read-interval", time.Millisecond, "shortest time between two rounds of reading")
	f.IntVar(&s.ClientRcvBuf, "client-rcvbuf", 1<<20, "SO_RCVBUF of client sockets, 0 for the system's choice")
	f.BoolVar(&s.NoRAI, "no-rai", false, "leave the random access indicator out of the stream, as many operators do")

	f.StringVar(&s.ServerCPUs, "server-cpus", "", "CPUs of the server (default: the first one)")
	f.StringVar(&s.LoadCPUs, "load-cpus", "", "CPUs of the generator, the readers and bench itself (default: the second one)")
	f.StringVar(&unpin, "unpin", "", "comma-separated programs that may use every CPU")
	f.BoolVar(&s.NetNS, "netns", true, "measure in a network namespace of its own, with a loopback interface only")
	f.StringVar(&s.CC, "cc", "cubic", "TCP congestion control inside that namespace")
	f.StringVar(&s.Out, "out", "", "folder for results.json and table.md")

	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		f.SetOutput(out)
		f.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w (bench -h lists the flags)", err)
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q (bench -h lists the flags)", f.Arg(0))
	}

	if s.Cases, err = parseCases(caseNames); err != nil {
		return nil, err
	}
	table, err := loadPrograms(file)
	if err != nil {
		return nil, err
	}
	labels, err := table.change(programs, argvs, urls)
	if err != nil {
		return nil, err
	}
	if s.Peers, err = table.peers(own, peers, labels); err != nil {
		return nil, err
	}
	for _, p := range s.Peers {
		p.Unpin = slices.Contains(strings.Split(unpin, ","), p.Label)
		for _, n := range notes {
			if name, text, _ := strings.Cut(n, "="); name == p.Label {
				p.Note = text
			}
		}
	}
	return s, s.validate()
}

func (s *settings) validate() error {
	if len(s.Peers) == 0 {
		return errors.New("nothing to measure: give --own, --peer or --program")
	}
	for _, p := range s.Peers {
		if p.BindsAll && !s.NetNS {
			return fmt.Errorf("%s listens on every address: it needs --netns", p.Label)
		}
	}
	if s.Baseline != "" && s.peer(s.Baseline) == nil {
		return fmt.Errorf("--baseline %s: that is not one of the programs measured", s.Baseline)
	}
	for _, c := range []struct {
		bad  bool
		want string
	}{
		{s.Tick <= 0 || s.Tick > time.Millisecond, "--tick must be over 0 and at most 1ms"},
		{s.Rounds < 1, "--rounds must be at least 1"},
		{s.Joins < 1, "--joins must be at least 1"},
		{s.Sample <= 0, "--sample must be over 0"},
		{s.Warmup < 0, "--warmup must not be under 0"},
	} {
		if c.bad {
			return errors.New(c.want)
		}
	}
	return nil
}

// peer returns the program measured under label, or nil.
func (s *settings) peer(label string) *peer {
	for _, p := range s.Peers {
		if p.Label == label {
			return p
		}
	}
	return nil
}

// chooseBaseline settles what ratios refer to, once it is known what was built.
func (s *settings) chooseBaseline() {
	if s.Baseline != "" && s.peer(s.Baseline) != nil {
		return
	}
	s.Baseline = ""
	for _, p := range s.Peers {
		if p.Name == "floor" {
			s.Baseline = p.Label
			return
		}
		if s.Baseline == "" && p.Name != "zapcast" {
			s.Baseline = p.Label
		}
	}
}

// runBench is the first stage: it reads the command line, builds what is to be
// measured and becomes the measure role.
func runBench(args []string) error {
	s, err := parseOptions(args, os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.checkMachine(); err != nil {
		return err
	}
	if s.Dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	if err = s.build(); err == nil {
		s.chooseBaseline()
		err = s.enter()
	}
	_ = os.RemoveAll(s.Dir) // only reached on an error
	return err
}
