package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"zapcast/ingest"
)

// Names of the dialects.
const (
	Telecom = "telecom"
	Huawei  = "huawei" // in both encodings
	RAMS    = "rams"   // RFC 6285, and retransmission (RFC 4585, RFC 4588)
)

// Dialects are the names that Config.Dialects may have.
var Dialects = []string{Telecom, Huawei, RAMS}

// Config says what a server offers, and to whom. Only Channels or Groups, or
// Redirect, have no useful zero value.
type Config struct {
	// Listen is the IPv4 address and port that requests come to. Default:
	// every address, port 8027. Port 0 takes any free one.
	Listen netip.AddrPort

	// MediaPort is the port that telecom's and Huawei's bursts come from.
	// Default: the one above that of Listen; 0 of Listen: any.
	MediaPort uint16

	Channels  []ingest.FlowSpec // joined as long as the server runs
	Groups    []netip.Prefix    // groups that are joined when they are asked for
	Interface string            // to join those on; empty: the routing table's choice
	Linger    time.Duration     // how long they stay joined after the last request; default 1 min

	// Networks are the clients that are answered. Default: the private ranges
	// (RFC 1918, RFC 6598) and loopback. Nobody else hears anything.
	Networks []netip.Prefix

	// Redirect makes the server a front: it answers every request with one of
	// these, the same for the same group, to be kept for RedirectTime (default
	// 30 s). RAMS has no such answer: there the front refuses.
	Redirect     []netip.AddrPort
	RedirectTime time.Duration

	Dialects []string // those that are answered; none: all

	// Factor is how many times faster than the channel a burst is sent, 1.2 to
	// 20; default 3. The limits below may make it less.
	Factor float64

	// Unconfirmed sends bursts to addresses that have not shown that they exist,
	// for boxes that do not say what telecom and Huawei offer for that.
	Unconfirmed bool

	Rate           int64 // of all bursts together, bit/s; default 500 Mbit/s
	ClientRate     int64 // of the bursts to one address, bit/s; default 100 Mbit/s
	Sessions       int   // bursts at a time; default 256
	ClientSessions int   // bursts at a time to one address; default 4
	MaxChannels    int   // groups at a time, configured ones not counted; default 64

	History        int64 // bytes of all histories; default 256 MiB
	ChannelHistory int64 // bytes of one; default 16 MiB

	ReadBuffer int          // as in ingest.ReceiverConfig
	Plain      bool         // portable sockets
	Logger     *slog.Logger // nil: nobody
}

const (
	defaultPort = 8027

	// leastFactor is the slowest burst that is worth its while: 2 s are caught
	// up with in 10 s.
	leastFactor, mostFactor = 1.2, 20
)

// privateRanges are the addresses that do not come from the internet.
var privateRanges = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("127.0.0.0/8"),
}

func (c Config) withDefaults() Config {
	if !c.Listen.IsValid() {
		c.Listen = netip.AddrPortFrom(netip.IPv4Unspecified(), defaultPort)
	}
	if c.MediaPort == 0 && c.Listen.Port() != 0 {
		c.MediaPort = c.Listen.Port() + 1
	}
	if c.Networks == nil {
		c.Networks = privateRanges
	}
	if len(c.Dialects) == 0 {
		c.Dialects = Dialects
	}
	orElse(&c.Linger, time.Minute)
	orElse(&c.RedirectTime, 30*time.Second)
	orElse(&c.Factor, 3)
	orElse(&c.Rate, 500_000_000)
	orElse(&c.ClientRate, 100_000_000)
	orElse(&c.Sessions, 256)
	orElse(&c.ClientSessions, 4)
	orElse(&c.MaxChannels, 64)
	orElse(&c.History, 256<<20)
	orElse(&c.ChannelHistory, 16<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func orElse[T int | int64 | float64 | time.Duration](v *T, initial T) {
	if *v <= 0 {
		*v = initial
	}
}

func (c Config) validate() error {
	switch {
	case !c.Listen.Addr().Is4():
		return fmt.Errorf("fccd: listen %s: fast channel change has no IPv6 form", c.Listen)
	case len(c.Channels) == 0 && len(c.Groups) == 0 && len(c.Redirect) == 0:
		return errors.New("fccd: expected a channel, groups that may be asked for, or servers to redirect to; found none")
	case c.Factor < leastFactor || c.Factor > mostFactor:
		return fmt.Errorf("fccd: factor %g: expected %g to %d", c.Factor, leastFactor, mostFactor)
	}
	for _, spec := range c.Channels {
		if err := spec.Validate(); err != nil {
			return err
		}
		if !spec.Group.Addr().Is4() {
			return fmt.Errorf("fccd: channel %s: fast channel change has no IPv6 form", spec)
		}
	}
	return nil
}

const (
	// confirmTime is how long a client has to confirm its address.
	confirmTime = time.Second

	// trustTime is how long an address that has confirmed itself is sent bursts
	// at once.
	trustTime = 10 * time.Minute

	// catchUpTime bounds a burst that does not catch up; overlapTime is how long
	// it goes on when it has, for clients that say no more.
	catchUpTime = 30 * time.Second
	overlapTime = 3 * time.Second

	// copies of a message that nobody answers.
	copies = 2

	// mostIdle is how long a tick may be late without the pace making up for it.
	mostIdle = 50 * time.Millisecond
)
