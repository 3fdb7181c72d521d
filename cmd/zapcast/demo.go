package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"

	fccserver "zapcast/fcc/server"
	"zapcast/playout"
)

// clips are what the demo's channels show. clips/make.sh makes them.
//
//go:embed clips/*.ts
var clips embed.FS

type demoChannel struct {
	name, clip string
	rtp        bool
	group      netip.Addr
}

func (c demoChannel) protocol() string {
	if c.rtp {
		return "rtp"
	}
	return "udp"
}

// burstsOf is the part of the channel's URL that names its server of fast
// channel change, which are for RTP only.
func (c demoChannel) burstsOf(server netip.AddrPort) string {
	if !c.rtp {
		return ""
	}
	return "?fcc=" + server.String()
}

// demoChannels are the demo's channels and their groups, of those that anybody
// may use within an organisation (RFC 2365).
var demoChannels = []demoChannel{
	{"zapcast 1", "clips/one.ts", true, netip.AddrFrom4([4]byte{239, 255, 77, 1})},
	{"zapcast 2", "clips/two.ts", true, netip.AddrFrom4([4]byte{239, 255, 77, 2})},
	{"zapcast 3", "clips/three.ts", false, netip.AddrFrom4([4]byte{239, 255, 77, 3})},
}

const (
	// The groups' port is as far from demoGroupPort as the server's is from
	// demoPort, so that two demos on one machine do not mix.
	demoPort      = 5140
	demoGroupPort = 5001

	// demoTries is how many ports are tried from demoPort on.
	demoTries = 20
)

const demoUsage = `usage: zapcast demo [--listen [ADDR:]PORT]

Plays three small channels as multicast on the loopback interface, serves them
over HTTP and prints the addresses to open. Ctrl-C ends all of it.

  --listen [ADDR:]PORT
        Where requests are taken: --listen 8080. Default: :5140, or the next
        port that is free
`

// runDemo shows the program to somebody who has nothing else yet.
func runDemo(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	candidates, err := parseDemo(args, stdout)
	if err != nil {
		return err
	}
	cfg := defaultConfig()
	if cfg.iface, err = loopbackInterface(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	book, log := newLogger(stderr, slog.LevelWarn)
	s := &server{log: log, journal: book}
	at, wait, err := startDemoServer(ctx, s, cfg, candidates)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		err = errors.Join(err, wait())
	}()
	bursts, burstsEnd, err := startDemoBursts(ctx, cfg.iface, at.Port(), log)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		err = errors.Join(err, burstsEnd())
	}()
	for _, c := range demoChannels {
		cfg.channels = append(cfg.channels, channelConfig{origin: "demo", name: c.name, sources: []string{
			fmt.Sprintf("%s://%s:%d%s", c.protocol(), c.group, groupPort(at.Port()), c.burstsOf(bursts)),
		}})
	}
	cfg.listen = s.cfg.listen
	if err := s.reconfigure(cfg); err != nil {
		return err
	}
	playing, err := playChannels(ctx, stop, cfg.iface, at.Port())
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, demoPage(at, bursts, len(candidates) > 1))
	return playing()
}

// parseDemo reads the flags and returns the addresses to listen on, of which
// the first free one is good.
func parseDemo(args []string, stdout io.Writer) (candidates []string, err error) {
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	listen := fs.String("listen", "", "")
	if err := parseFlags(fs, args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, demoUsage)
		}
		return nil, err
	}
	if *listen == "" {
		for port := demoPort; port < demoPort+demoTries; port++ {
			candidates = append(candidates, ":"+strconv.Itoa(port))
		}
		return candidates, nil
	}
	address, ok := normalAddress(*listen)
	if !ok || address[0] == '/' {
		return nil, usageError{fmt.Errorf("--listen: %w", &mismatch{`[ADDR:]PORT such as ":5140"`, *listen})}
	}
	return []string{address}, nil
}

// loopbackInterface returns the name of the interface that leads back to this
// machine, which is called differently on each system.
func loopbackInterface() (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("demo: list the network interfaces: %w", err)
	}
	const wanted = net.FlagLoopback | net.FlagUp
	for _, ifi := range all {
		if ifi.Flags&wanted == wanted {
			return ifi.Name, nil
		}
	}
	return "", errors.New("demo: this machine has no loopback interface that is up")
}

// startDemoServer starts s on the first candidate that is free.
func startDemoServer(ctx context.Context, s *server, cfg serveConfig, candidates []string) (addr netip.AddrPort, wait func() error, err error) {
	for i, address := range candidates {
		var at string
		cfg.listen = []string{address}
		at, wait, err = s.start(ctx, cfg)
		switch {
		case err == nil:
			addr = netip.MustParseAddrPort(at)
			return addr, wait, nil
		case !errors.Is(err, syscall.EADDRINUSE) || i == len(candidates)-1:
			return addr, nil, err
		}
	}
	panic("main: no address to listen on")
}

// startDemoBursts starts a server of fast channel change for the channels. The
// function that it returns waits for its end.
func startDemoBursts(ctx context.Context, loopback string, serverPort uint16, log *slog.Logger) (at netip.AddrPort, wait func() error, err error) {
	args := []string{"--listen", "127.0.0.1:0", "--interface", loopback}
	for _, c := range demoChannels {
		if c.rtp {
			args = append(args, "--channel", netip.AddrPortFrom(c.group, groupPort(serverPort)).String())
		}
	}
	cfg, err := parseFCCD(args, io.Discard)
	if err != nil {
		return at, nil, err
	}
	s, err := fccserver.Open(cfg.server(log))
	if err != nil {
		return at, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s.Address(), func() error { return <-ended }, nil
}

// playChannels sends every channel in a loop, until ctx ends or one of them
// does, which stops the others. The function that it returns waits for that.
func playChannels(ctx context.Context, stop func(), loopback string, serverPort uint16) (wait func() error, err error) {
	var players []*playout.Player
	closeAll := func() {
		for _, p := range players {
			p.Close()
		}
	}
	for i, c := range demoChannels {
		p, err := playout.Open(playout.Config{
			Destinations: []playout.Destination{{RTP: c.rtp, Addr: netip.AddrPortFrom(c.group, groupPort(serverPort))}},
			Interface:    loopback,
			TTL:          0, // nothing leaves this machine
			Loop:         true,
			Seed:         uint64(i),
		})
		if err != nil {
			closeAll()
			return nil, err
		}
		players = append(players, p)
	}
	var (
		running sync.WaitGroup
		ended   = make([]error, len(players))
	)
	for i, p := range players {
		running.Go(func() {
			defer stop()
			clip, err := clips.ReadFile(demoChannels[i].clip)
			if err == nil {
				_, err = p.Run(ctx, playout.BytesFile(demoChannels[i].name, clip))
			}
			if !errors.Is(err, context.Canceled) {
				ended[i] = err
			}
		})
	}
	return func() error {
		running.Wait()
		closeAll()
		return errors.Join(ended...)
	}, nil
}

// groupPort returns the groups' port for the server's.
func groupPort(serverPort uint16) uint16 {
	const lowest = 1024 // those below ask for privileges
	if port := serverPort + demoGroupPort - demoPort; port >= lowest {
		return port
	}
	return demoGroupPort
}

// demoPage says what to open. If the server had a choice of ports, it says so
// where it is not the usual one.
func demoPage(server, bursts netip.AddrPort, choice bool) string {
	host := server
	if server.Addr().IsUnspecified() {
		host = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), server.Port())
	}
	var page strings.Builder
	if choice && server.Port() != demoPort {
		fmt.Fprintf(&page, "Port %d is taken, so this is port %d.\n\n", demoPort, server.Port())
	}
	page.WriteString("Three channels are on the air, as multicast on this machine and over HTTP:\n\n")
	var first string
	for _, c := range demoChannels {
		url := fmt.Sprintf("http://%s/%s/%s:%d", host, c.protocol(), c.group, groupPort(server.Port()))
		fmt.Fprintf(&page, "    %s   %s\n", c.name, url)
		if c.rtp {
			fmt.Fprintf(&page, "                %s%s\n", url, c.burstsOf(bursts))
		}
		if first == "" {
			first = url
		}
	}
	page.WriteString("\nWith fcc= a channel that nobody watches starts with a burst, not at its next picture.\n")
	fmt.Fprintf(&page, `
Watch them in a browser: http://%[2]s/

Or in a player; or take ten seconds of one:

    ffplay %[1]s
    vlc %[1]s
    curl -m 10 -o ten-seconds.ts %[1]s

Who watches what: http://%[2]s/api/status
Ctrl-C ends channels and servers.
`, first, host)
	return page.String()
}
