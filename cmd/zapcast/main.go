package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// A command is what the first argument names.
type command struct {
	name    string
	summary string
	// run does it. It ends when ctx does. flag.ErrHelp means that the user
	// asked for the usage and got it.
	run func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

var commands = []command{
	{"serve", "take multicast and serve it over HTTP", runServe},
	{"check", "check a configuration without starting", runCheck},
	{"link", "sign a link that plays one channel for a while", runLink},
	{"fccd", "serve fast channel change, as an operator does", runFCCD},
	{"send", "play TS files out as multicast", runSend},
	{"demo", "try it: synthetic channels and a server on this machine", runDemo},
	{"version", "print the version", runVersion},
}

// A usageError is a fault in what was typed, not in what was found: the exit
// status tells them apart.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Exit statuses.
const (
	exitOK    = 0
	exitFault = 1
	exitUsage = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	// A reader of our output that goes away must not take the server with it.
	signal.Ignore(syscall.SIGPIPE)

	// The first signal asks for a clean stop, the next one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	err := dispatch(ctx, args, stdout, stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	fmt.Fprintln(stderr, "zapcast:", err)
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFault
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	name := "help"
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case "help", "-h", "-help", "--help":
		if len(args) == 0 {
			printUsage(stdout)
			return nil
		}
		name, args = args[0], []string{"--help"}
	case "-version", "--version":
		name = "version"
	}
	for _, c := range commands {
		if c.name == name {
			return c.run(ctx, args, stdout, stderr)
		}
	}
	return usageError{fmt.Errorf("unknown command %q; 'zapcast help' lists them", cut(name))}
}

func printUsage(w io.Writer) {
	fmt.Fprint(w, `zapcast turns an operator's IPTV network into streams for many viewers.

    zapcast demo     channels of its own and a server: prints addresses to open
    zapcast serve    then open http://THIS-MACHINE:5140/rtp/GROUP:PORT

Commands:
`)
	for _, c := range commands {
		fmt.Fprintf(w, "    %-8s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\n'zapcast COMMAND --help' says more about one of them.\n")
}
