package main

import (
	"log/slog"
	"time"

	"zapcast/fanout"
	"zapcast/httpout"
	"zapcast/ingest"
	rtspserver "zapcast/rtsp/server"
	"zapcast/tune"
)

// engineConfig is what the engine is told.
func (c *serveConfig) engineConfig(log *slog.Logger) fanout.Config {
	receiver := ingest.ReceiverConfig{
		ReadBuffer: int(c.receiveBuffer),
		Refresh:    c.refresh,
		Plain:      c.plain,
		Receive:    c.receive,
		RingBytes:  int(c.ring),
		Logger:     log,
	}
	slow := fanout.Skip
	if c.slow == "close" {
		slow = fanout.Disconnect
	}
	return fanout.Config{
		Loops:          c.loops,
		Plain:          c.plain,
		Receiver:       func() (ingest.Receiver, error) { return ingest.NewReceiver(receiver) },
		Logger:         log,
		History:        c.history,
		ChannelHistory: c.channelHistory,
		Linger:         orNever(c.linger),
		Silence:        c.silence,
		StartWait:      c.startWait,
		Flush:          c.flush,
		Lag:            c.lag,
		LagBytes:       c.lagBytes,
		Slow:           slow,
	}
}

// orNever turns a zero, which packages take for "the default", into a negative
// duration, which they take for "not at all".
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// tuneConfig is what the tuner is told.
func (c *serveConfig) tuneConfig() tune.Config {
	return tune.Config{Interface: c.iface}
}

// httpConfig is what the HTTP front is told.
func (c *serveConfig) httpConfig(log *slog.Logger) httpout.Config {
	number, _ := buildVersion()
	return httpout.Config{
		MaxClients: c.maxClients,
		Hosts:      c.hosts,
		CORS:       c.cors,
		Version:    number,
		Logger:     log,
	}
}

// groups is where channels go for RTSP clients who ask for multicast.
func (c *serveConfig) groups() rtspserver.Groups {
	prefix, port, _ := parseGroups(c.rtspGroups)
	return rtspserver.Groups{Prefix: prefix, Port: port, Interface: c.rtspGroupsInterface, TTL: c.rtspGroupsTTL}
}

// rtspConfig is what the RTSP front is told. Viewers of both fronts share the
// places that there are.
func (s *server) rtspConfig() rtspserver.Config {
	return rtspserver.Config{
		User:     s.cfg.rtspUser,
		Password: s.cfg.rtspPassword,
		UDPPort:  s.cfg.rtspUDPPort,
		Groups:   s.cfg.groups(),
		Seat:     s.http.Seat,
		Logger:   s.log,
	}
}
