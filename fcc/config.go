package fcc

import (
	"fmt"
	"log/slog"
	"net/netip"
	"time"
)

// When the group is joined.
const (
	Hedged = "hedged"  // together with the request
	OnSync = "on-sync" // when the server says so, or does not answer in time
)

// Names of the dialects; the empty name means: find out.
const (
	Telecom   = "telecom"
	Huawei    = "huawei"     // as values
	HuaweiTLV = "huawei-tlv" // as TLVs
	RAMS      = "rams"       // RFC 6285
)

// Dialects are the names that Request.Dialect may have, in the order in which
// they are tried where it has none.
var Dialects = []string{Telecom, Huawei, HuaweiTLV, RAMS}

// Config holds the settings of all bursts. The zero value works.
type Config struct {
	// Join is Hedged (the default) or OnSync, for lines that cannot carry
	// burst and multicast at once.
	Join string

	// Interface is the name of the interface that bursts are asked for and come
	// in on; empty: the routing table's choice.
	Interface string

	// FirstPort and LastPort bound the UDP ports that bursts come to, for
	// routers that forward a range; 0: any. Huawei needs two that follow each
	// other.
	FirstPort, LastPort uint16

	// Client is the IPv4 address that Huawei's requests name; zero value: the
	// one that leads to the server.
	Client netip.Addr

	// BoxID is what telecom's requests carry for the box; mostly zeros.
	BoxID [16]byte

	// Bursts is how many bursts one server is asked for at a time. Default 2:
	// operators limit the rate of a line.
	Bursts int

	// HoldBytes bounds what is kept of one group that is ahead of its burst.
	// Default 16 MiB: 3.8 s at 35 Mbit/s.
	HoldBytes int

	// MaxRate is what RAMS servers are told that the line takes, bit/s; 0: not said.
	MaxRate uint64

	Plain  bool         // portable sockets
	Logger *slog.Logger // nil: nobody
}

const (
	defaultBursts = 2
	defaultHold   = 16 << 20
)

func (c Config) withDefaults() Config {
	if c.Join == "" {
		c.Join = Hedged
	}
	if c.Bursts <= 0 {
		c.Bursts = defaultBursts
	}
	if c.HoldBytes <= 0 {
		c.HoldBytes = defaultHold
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Request is the part of a channel that concerns its fast change.
type Request struct {
	Server  netip.AddrPort // IPv4
	Dialect string         // one of Dialects; empty: find out
}

// Validate reports what keeps the request from being made.
func (r Request) Validate() error {
	switch {
	case !r.Server.Addr().Unmap().Is4():
		return fmt.Errorf("fcc: server %s: fast channel change has no IPv6 form", r.Server)
	case r.Server.Port() == 0:
		return fmt.Errorf("fcc: server %s: expected a port from 1 to 65535", r.Server)
	case r.Server.Addr().IsMulticast() || r.Server.Addr().IsUnspecified():
		return fmt.Errorf("fcc: server %s: expected the address of a host", r.Server)
	case r.Dialect != "" && dialectOf(r.Dialect) == nil:
		return fmt.Errorf("fcc: dialect %q: expected one of %q", r.Dialect, Dialects)
	}
	return nil
}

// The times of a conversation. Those that a reply time is known for shrink or
// grow with it.
const (
	// requestTime is how long an answer is waited for in all. Boxes wait up to
	// 600 ms; servers have been seen to take 300.
	requestTime = 600 * time.Millisecond

	// leastRetry and mostRetry bound the pause before a request is repeated,
	// or the next dialect is tried; unknownRetry is it for a new server.
	leastRetry   = 40 * time.Millisecond
	mostRetry    = 200 * time.Millisecond
	unknownRetry = 120 * time.Millisecond

	// joinAnyway is when the group is joined although on-sync was asked for and
	// no answer has come: bounds as above.
	leastJoin   = 80 * time.Millisecond
	mostJoin    = 300 * time.Millisecond
	unknownJoin = 80 * time.Millisecond

	firstMedia  = 500 * time.Millisecond // from the grant to the first packet
	mediaPause  = time.Second            // longest pause within a burst
	heldPause   = 500 * time.Millisecond // the same while the multicast goes on and waits for it
	linePause   = 50 * time.Millisecond  // a longer one of the multicast is the line's, or our own
	syncTime    = 15 * time.Second       // from the grant to the sync notice
	longestTime = 10 * time.Minute       // of a burst, whatever happens

	// After a termination the server gets as long to stop. If it goes on it is
	// told again, up to terminations times in all.
	stubborn     = 100 * time.Millisecond
	terminations = 6

	copies       = 3 // of requests, punches and terminations: UDP loses
	maxRedirects = 5
	overlap      = 2 // packets by which a burst is asked to overlap the multicast
)
