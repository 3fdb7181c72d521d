package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
)

// runCheck says what serve would say to a configuration file. It opens no
// socket: the server that runs with the file may hold its addresses.
func runCheck(_ context.Context, args []string, stdout, stderr io.Writer) error {
	var opts options
	fs := flag.NewFlagSet("check", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&opts.file, "config", "", "")
	if err := parseFlags(fs, args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, "usage: zapcast check --config FILE\n\nSays what serve would say to a configuration file, without starting.\n")
		}
		return err
	}
	if opts.file == "" {
		return usageError{errors.New("check: expected --config FILE, found no file to check")}
	}
	cfg, err := opts.load()
	if err != nil {
		return err
	}
	if err := cfg.interfaceFault(); err != nil {
		fmt.Fprintln(stderr, "zapcast: warning:", err)
	}
	fmt.Fprintf(stdout, "%s: ok\n", opts.file)
	return nil
}

// interfaceFault says why nothing can be joined on the configured interface at
// this moment. It may appear later, so that this stops nothing.
func (c *serveConfig) interfaceFault() error {
	if c.iface == "" {
		return nil
	}
	dev, err := net.InterfaceByName(c.iface)
	if err != nil {
		return c.fault("interface", &mismatch{"an interface that exists", c.iface})
	}
	if dev.Flags&net.FlagUp == 0 {
		return c.fault("interface", &mismatch{"an interface that is up", c.iface})
	}
	if addrs, err := dev.Addrs(); err != nil || len(addrs) == 0 {
		return c.fault("interface", &mismatch{"an interface with an address", c.iface})
	}
	return nil
}
