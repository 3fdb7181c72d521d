package rtsp

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Config holds a Client's settings. The zero value works.
type Config struct {
	// Transports are the ways in which media may come, in the order in which
	// they are offered: OverTCP, OverUDP, OverMulticast. Default: TCP, then UDP.
	Transports []string

	// Agent is the User-Agent; some servers let in known ones only. Default
	// "zapcast".
	Agent string

	// STUN is the server, "HOST:PORT", that is asked for the address and port
	// that media is to be sent to. Default: empty, none is asked.
	STUN string

	// NoVendor leaves out what servers of ZTE behind NAT want over IPv4, and
	// others do not mind: the x-NAT header, client_address in Transport, and a
	// punch packet of the vendor's own instead of an empty RTP packet.
	NoVendor bool

	// TrustRedirects lets a redirect lead from rtsps to rtsp, and credentials go
	// to other hosts than the one that the URL names.
	TrustRedirects bool

	// SkipVerify accepts any certificate of a rtsps server.
	SkipVerify bool

	// Allow lists the networks that servers may be in. Default: every address
	// but loopback, link-local, multicast and unspecified ones.
	Allow []netip.Prefix

	// Interface is where groups are joined that a server sends to, unless the
	// request names another. Default: empty, the routing table's choice.
	Interface string

	// Plain reads with a goroutine for each session where there is a faster way.
	Plain bool

	// Limits. Defaults: 3 s for a connection, for each answer, for the first
	// media and for the end of a session; 20 s for a whole handshake.
	Timeout   time.Duration
	Handshake time.Duration

	// Lookup resolves a host name. Default: the system's resolver.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	// Logger takes what an operator should know. Default: nobody.
	Logger *slog.Logger
}

const (
	maxRedirects = 5
	maxAuth      = 2

	// keepAliveMax is the interval where the server names no timeout, or a long
	// one; keepAliveMin keeps one that names nonsense from being flooded.
	keepAliveMax = 30 * time.Second
	keepAliveMin = 2 * time.Second
)

func (c Config) withDefaults() Config {
	if len(c.Transports) == 0 {
		c.Transports = []string{OverTCP, OverUDP}
	}
	if c.Agent == "" {
		c.Agent = "zapcast"
	}
	if c.Timeout <= 0 {
		c.Timeout = 3 * time.Second
	}
	if c.Handshake <= 0 {
		c.Handshake = 20 * time.Second
	}
	if c.Lookup == nil {
		c.Lookup = net.DefaultResolver.LookupNetIP
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// allows reports whether a server may have this address.
func (c Config) allows(addr netip.Addr) bool {
	if len(c.Allow) > 0 {
		return slices.ContainsFunc(c.Allow, func(p netip.Prefix) bool { return p.Contains(addr) })
	}
	return !addr.IsLoopback() && !addr.IsLinkLocalUnicast() && !addr.IsMulticast() && !addr.IsUnspecified()
}
