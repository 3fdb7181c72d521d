package server

import (
	"log/slog"
	"net/netip"
	"time"
)

// Config holds the settings of a Server. The zero value works.
type Config struct {
	// User and Password are asked of every client, by digest (RFC 2617).
	// Default: empty, nobody is asked.
	User, Password string

	// Seat takes a viewer's place for a client, which leave gives back; false
	// when all are taken. Default: nil, no limit.
	Seat func(client netip.Addr, agent string) (leave func(), ok bool)

	// UDPPort is the first of the two UDP ports, an even one, from which packets
	// and reports are sent. It is asked for when the first client needs it.
	// Default 0: any.
	UDPPort int

	// Groups are where channels go for clients who ask for multicast. Default:
	// the zero Groups, none.
	Groups Groups

	// MaxPending limits the connections on which nothing is played. Default 1024.
	MaxPending int

	// MaxPendingPerAddress is the same for one client address. Default 64.
	MaxPendingPerAddress int

	// HeaderTimeout is the time that a client has to send a request once he has
	// begun, to send his first one, and to take an answer. Default 5 s.
	HeaderTimeout time.Duration

	// Logger takes the log. Default: none.
	Logger *slog.Logger

	sessionTimeout time.Duration // sessionTimeout, but in tests
}

func (c Config) withDefaults() Config {
	if c.MaxPending <= 0 {
		c.MaxPending = 1024
	}
	if c.MaxPendingPerAddress <= 0 {
		c.MaxPendingPerAddress = 64
	}
	if c.HeaderTimeout <= 0 {
		c.HeaderTimeout = 5 * time.Second
	}
	if c.sessionTimeout <= 0 {
		c.sessionTimeout = sessionTimeout
	}
	if c.Seat == nil {
		c.Seat = func(netip.Addr, string) (func(), bool) { return func() {}, true }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
