package main

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"zapcast/access"
	"zapcast/fanout"
	"zapcast/fcc"
	"zapcast/httpout"
	"zapcast/ingest"
	"zapcast/lineup"
	"zapcast/rtsp"
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
func (c *serveConfig) tuneConfig(named *lineup.Lineup, client *rtsp.Client, log *slog.Logger) tune.Config {
	return tune.Config{
		Interface: c.iface, RTSP: client, FCC: c.burstConfig(log), RepairLatency: c.repairLatency, Lineup: named, Silence: c.silence,
		UserAgent: userAgent(), Logger: log,
	}
}

// rtspSourceConfig is what the client of RTSP servers is told.
func (c *serveConfig) rtspSourceConfig(log *slog.Logger) rtsp.Config {
	cfg := rtsp.Config{
		Transports:     c.rtspTransports,
		Agent:          c.rtspAgent,
		STUN:           c.rtspSTUN,
		NoVendor:       !c.rtspVendor,
		TrustRedirects: c.rtspTrust,
		SkipVerify:     c.rtspInsecure,
		Interface:      c.iface,
		Plain:          c.plain,
		Timeout:        c.rtspTimeout,
		Logger:         log,
	}
	for _, network := range c.rtspAllow {
		cfg.Allow = append(cfg.Allow, netip.MustParsePrefix(network)) // the setting has checked it
	}
	return cfg
}

// lineupConfig is which channels have names.
func (c *serveConfig) lineupConfig(log *slog.Logger) lineup.Config {
	out := lineup.Config{Dir: c.stateDirectory(), UserAgent: userAgent(), Logger: log}
	for i := range c.channels {
		out.Channels = append(out.Channels, c.channels[i].entry())
	}
	for _, p := range c.playlists {
		out.Playlists = append(out.Playlists, lineup.Playlist{Source: beside(p.origin, p.source), Refresh: p.refresh})
	}
	return out
}

// userAgent is how the program names itself to servers.
func userAgent() string {
	number, _ := buildVersion()
	return "zapcast/" + number
}

// burstConfig is how bursts are asked for.
func (c *serveConfig) burstConfig(log *slog.Logger) fcc.Config {
	burst := fcc.Config{
		Join: c.fccJoin, Interface: c.fccInterface, Bursts: c.fccBursts, HoldBytes: int(c.fccHold),
		Plain: c.plain, Logger: log,
	}
	if c.fccFirstPort > 0 {
		burst.FirstPort, burst.LastPort = uint16(c.fccFirstPort), uint16(c.fccLastPort)
	}
	burst.Client, _ = netip.ParseAddr(c.fccClient) // checked when it was set; empty: none
	return burst
}

// httpConfig is what the HTTP front is told.
func (s *server) httpConfig(c *serveConfig) httpout.Config {
	number, _ := buildVersion()
	out := httpout.Config{
		MaxClients: c.maxClients,
		Hosts:      c.hosts,
		Prefix:     c.prefix,
		Guard:      access.NewGuard(c.accessConfig()),
		RTSPPort:   c.rtspPort(),
		Metrics:    s.metrics,
		Access:     &s.accesses,
		Journal:    s.journal,
		Reload:     s.reload,
		Lineup:     s.lineup,
		Queries:    s.queries,
		CORS:       c.cors,
		Version:    number,
		Logger:     s.log,
	}
	for _, network := range c.proxies {
		out.Proxies = append(out.Proxies, netip.MustParsePrefix(network))
	}
	return out
}

// rtspPort is the port of the first RTSP listener; 0: there is none.
func (c *serveConfig) rtspPort() uint16 {
	if len(c.rtspListen) == 0 {
		return 0
	}
	_, port, _ := net.SplitHostPort(c.rtspListen[0])
	n, _ := strconv.ParseUint(port, 10, 16)
	return uint16(n)
}

// accessConfig is who may do what.
func (c *serveConfig) accessConfig() access.Config {
	out := access.Config{LinkKey: c.linkKey}
	for _, t := range c.tokens {
		token := access.Token{Name: t.name, Secret: t.secret, Expires: t.expires}
		for _, right := range t.rights {
			token.Rights = append(token.Rights, access.Right(slices.Index(access.Rights, right)))
		}
		out.Tokens = append(out.Tokens, token)
	}
	return out
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
