package httpout

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"zapcast/access"
	"zapcast/accesslog"
	"zapcast/diagnose"
	"zapcast/journal"
	"zapcast/lineup"
)

// Config holds the settings of a Server. The zero value works.
type Config struct {
	// MaxClients limits the viewers at one time. Default 0: no limit.
	MaxClients int

	// Hosts are the names that the Host header may hold, without port, in any
	// case; IPv6 addresses with or without brackets. Default: empty, any.
	Hosts []string

	// Prefix goes before every path: "/tv". Nothing answers outside of it.
	// Default: empty.
	Prefix string

	// Proxies are the networks whose X-Forwarded-For, -Host and -Proto are
	// believed. 0.0.0.0/0 and ::/0 include unix sockets. Default: none.
	Proxies []netip.Prefix

	// Guard says who may do what. Default: everybody may play and view, and the
	// machine itself administer.
	Guard *access.Guard

	// Access is the access log. Default: none.
	Access *accesslog.Log

	// Metrics is what the engine counts waiting times in. Default: none are.
	Metrics *Metrics

	// Journal is the log that /api/log shows. Default: none.
	Journal *journal.Journal

	// Reload applies the configuration file again. Default: there is none.
	Reload func() error

	// RTSPPort is the port of the RTSP listener, for playlists of RTSP URLs.
	// Default 0: there is none.
	RTSPPort uint16

	// Lineup is what /playlist.m3u lists. Default: nothing.
	Lineup *lineup.Lineup

	// CORS is the value of Access-Control-Allow-Origin, such as "*". Default:
	// empty, no such headers.
	CORS string

	// Version is the program's version, for the status.
	Version string

	// HeaderTimeout is the time that a client has to send its request, or its
	// body, and to take an answer that is no stream. Default 5 s. Reconfigure
	// does not change it.
	HeaderTimeout time.Duration

	// IdleTimeout is the time that a connection may stay open between two
	// requests. Default 30 s. Reconfigure does not change it.
	IdleTimeout time.Duration

	// MaxPending limits the connections that are no viewers: those without a
	// request and those whose stream has not started. Default 1024.
	// Reconfigure does not change it.
	MaxPending int

	// MaxPendingPerAddress is the same for one client address. Default 64. It
	// does not count for unix sockets. Reconfigure does not change it.
	MaxPendingPerAddress int

	// Queries tells diagnoses which routers have asked for members. Default:
	// none, it is not known. Reconfigure does not change it.
	Queries *diagnose.Queries

	// Logger takes the log. Default: none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.HeaderTimeout <= 0 {
		c.HeaderTimeout = 5 * time.Second
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = 30 * time.Second
	}
	if c.MaxPending <= 0 {
		c.MaxPending = 1024
	}
	if c.MaxPendingPerAddress <= 0 {
		c.MaxPendingPerAddress = 64
	}
	if c.Guard == nil {
		c.Guard = access.NewGuard(access.Config{})
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// allowsHost reports whether a request with this Host header may be served: the
// name is compared, the port is not, since there may be a port forward in front.
func (c Config) allowsHost(header string) bool {
	if len(c.Hosts) == 0 {
		return true
	}
	name := hostName(header)
	for _, host := range c.Hosts {
		if name != "" && strings.EqualFold(name, hostName(host)) {
			return true
		}
	}
	return false
}

// hostName cuts port, brackets and final dot off a host, and writes an IPv6
// address as short as it can be.
func hostName(s string) string {
	if inside, ok := strings.CutPrefix(s, "["); ok {
		s, _, _ = strings.Cut(inside, "]")
	} else if strings.Count(s, ":") == 1 { // more: an IPv6 address without brackets, as in a setting
		s, _, _ = strings.Cut(s, ":")
	}
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.String()
	}
	return strings.TrimSuffix(s, ".")
}
