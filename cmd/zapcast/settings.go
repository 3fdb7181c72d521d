package main

import (
	"path/filepath"
	"slices"
	"time"

	"zapcast/accesslog"
	"zapcast/fcc"
)

// A setting is one thing that can be set. The table of settings is the only
// place that knows a setting's name, default, range and meaning: the flags, the
// reading of files, every message about a wrong value and docs/configuration.md
// follow from it.
type setting struct {
	key     string // dotted path in the file
	flag    string // name of the flag; empty: file only
	param   string // what the flag's value is called in the usage
	initial any    // default, as a file would give it
	restart bool   // a reload leaves it as it was
	doc     string // one or more sentences
	value   func(*serveConfig) value
}

// A section is one table of the file.
type section struct {
	name string // empty: the keys before the first table
	doc  string
}

var sections = []section{
	{"", "What every installation may want to set."},
	{"multicast", "How streams are joined and received."},
	{"fcc", "How bursts of fast channel change are asked for, where a channel names a server for them."},
	{"repair", "How losses are repaired. docs/repair.md says how to find out whether a line has FEC."},
	{"memory", "How much of the streams is kept for instant starts."},
	{"rtsp-sources", "How RTSP servers are asked for streams (`/rtsp/HOST[:PORT]/PATH`)."},
	{"viewer", "How one viewer is served."},
	{"http", "Who may ask."},
	{"rtsp", "Channels over RTSP: `rtsp://HOST:PORT/rtp/GROUP:PORT`, every channel that HTTP has. Off unless `listen` is set."},
	{"engine", "For comparison and for the rare system on which acceleration misbehaves."},
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

var settings = []setting{
	{
		key: "listen", flag: "listen", param: "ADDRESS", initial: ":5140",
		doc: "Where requests are taken: `[ADDR:]PORT`, or the absolute path of a Unix socket. An IPv6 address stands in brackets (`[::1]:5140`). " +
			"A port alone listens on every address; port 0 takes any free one. " +
			"A socket (`/run/zapcast/http.sock`) is made with mode 0660 and removed at the end.",
		value: func(c *serveConfig) value {
			return texts{&c.listen, 1, `[ADDR:]PORT or the absolute path of a socket, such as ":5140"`, normalAddress}
		},
	},
	{
		key: "interface", flag: "interface", param: "IF", initial: "",
		doc: "Network interface on which groups are joined, unless a request names another. Empty: the routing table's choice.",
		value: func(c *serveConfig) value {
			return text{&c.iface, `the name of an interface such as "eth0"`, validInterface}
		},
	},
	{
		key: "max-clients", flag: "max-clients", param: "N", initial: int64(1024),
		doc:   "Viewers served at the same time. One more is answered 503.",
		value: func(c *serveConfig) value { return count{&c.maxClients, 1, 1_000_000} },
	},
	{
		key: "loops", flag: "loops", param: "N", initial: int64(1), restart: true,
		doc:   "Loops that move the streams, each on a processor of its own. One carries some Gbit/s; more than there are processors gains nothing.",
		value: func(c *serveConfig) value { return count{&c.loops, 1, 64} },
	},
	{
		key: "log-level", flag: "log-level", param: "LEVEL", initial: "info",
		doc:   "Least weight of the lines that are logged.",
		value: func(c *serveConfig) value { return choice{&c.logLevel, []string{"debug", "info", "warn", "error"}} },
	},
	{
		key: "state-dir", initial: "",
		doc: "Directory for what outlives a run: the last good copies of playlists from servers. Empty: systemd's, where the unit has a " +
			"`StateDirectory=`, else none is kept.",
		value: func(c *serveConfig) value { return text{&c.stateDir, "an absolute path", emptyOr(filepath.IsAbs)} },
	},
	{
		key: "multicast.silence", initial: "5s",
		doc: "How long a source may bring nothing: a request that waits for its first data is answered 503 with what was seen, " +
			"a running stream ends for its viewers. At half of it the group is joined again.",
		value: func(c *serveConfig) value { return duration{&c.silence, time.Second, 10 * time.Minute, ""} },
	},
	{
		key: "multicast.linger", initial: "15s",
		doc:   "How long a group stays joined after its last viewer has left, so that zapping back is instant.",
		value: func(c *serveConfig) value { return duration{&c.linger, time.Second, time.Hour, "leave at once"} },
	},
	{
		key: "multicast.refresh", initial: "0s", restart: true,
		doc: "How often memberships are reported again without leaving, for networks whose querier is missing. " +
			"It needs CAP_NET_RAW; without it a warning says so.",
		value: func(c *serveConfig) value { return duration{&c.refresh, 5 * time.Second, time.Hour, "off"} },
	},
	{
		key: "multicast.receive-buffer", initial: "4MiB", restart: true,
		doc: "Socket buffer asked of the kernel for each group. With CAP_NET_ADMIN all of it is granted, else as much as the " +
			"sysctl net.core.rmem_max allows.",
		value: func(c *serveConfig) value { return size{&c.receiveBuffer, 64 * kib, 256 * mib} },
	},
	{
		key: "multicast.receive", flag: "receive", param: "HOW", initial: "auto", restart: true,
		doc: "How packets are taken from the kernel: `ring` reads them from memory that the kernel fills, one packet ring for each " +
			"interface, without a system call; `sockets` reads a socket for each group. `auto` is `ring` where CAP_NET_RAW is there " +
			"(Linux), else `sockets`; it leaves to sockets what would make the ring hold less than 100 ms, and what overflowed it. With `ring` and without the right a warning is logged and sockets are read.",
		value: func(c *serveConfig) value { return choice{&c.receive, []string{"auto", "sockets", "ring"}} },
	},
	{
		key: "multicast.ring", initial: "2MiB", restart: true,
		doc: "Memory of each packet ring: one for each loop and interface, and another where both IPv4 and IPv6 groups are joined on it. " +
			"2 MiB are 1280 packets of up to 1500 bytes, 42 ms of eight streams of 40 Mbit/s; the status tells if a ring overflowed.",
		value: func(c *serveConfig) value { return size{&c.ring, 128 * kib, 256 * mib} },
	},
	{
		key: "fcc.join", initial: fcc.Hedged,
		doc: "When the group is joined: `hedged` together with the request for the burst, so that a slow or dead server costs no time; " +
			"`on-sync` when the server says so, for lines that cannot carry burst and multicast at once.",
		value: func(c *serveConfig) value { return choice{&c.fccJoin, []string{fcc.Hedged, fcc.OnSync}} },
	},
	{
		key: "fcc.interface", initial: "",
		doc: "Network interface on which servers are asked and bursts come in. Empty: the routing table's choice.",
		value: func(c *serveConfig) value {
			return text{&c.fccInterface, `the name of an interface such as "eth0"`, validInterface}
		},
	},
	{
		key: "fcc.first-port", initial: int64(0),
		doc:   "Lowest UDP port that bursts come to, for routers that forward a range. 0: any free one.",
		value: func(c *serveConfig) value { return count{&c.fccFirstPort, 0, 65534} },
	},
	{
		key: "fcc.last-port", initial: int64(65535),
		doc:   "Highest UDP port that bursts come to, where fcc.first-port is set. Huawei's dialects take two ports that follow each other.",
		value: func(c *serveConfig) value { return count{&c.fccLastPort, 1, 65535} },
	},
	{
		key: "fcc.client-address", initial: "",
		doc: "IPv4 address that requests name as the client's, behind a router that translates addresses. Empty: the one that leads to the server.",
		value: func(c *serveConfig) value {
			return text{&c.fccClient, `an IPv4 address such as "192.0.2.7"`, validIPv4}
		},
	},
	{
		key: "fcc.bursts", initial: int64(2),
		doc:   "Bursts that one server is asked for at a time; operators limit the rate of a line. One channel more starts with the multicast.",
		value: func(c *serveConfig) value { return count{&c.fccBursts, 1, 1000} },
	},
	{
		key: "fcc.hold", initial: "16MiB",
		doc:   "How much multicast of one channel is kept until its burst has reached it. 16 MiB are 3.8 s at 35 Mbit/s.",
		value: func(c *serveConfig) value { return size{&c.fccHold, 256 * kib, 256 * mib} },
	},
	{
		key: "repair.latency", initial: "400ms",
		doc: "How long a stream waits at most for a lost packet that forward error correction or a retransmission may still bring. " +
			"It waits only when something was lost, and only as long as there is hope.",
		value: func(c *serveConfig) value {
			return duration{&c.repairLatency, 50 * time.Millisecond, 5 * time.Second, ""}
		},
	},
	{
		key: "memory.history", initial: "32MiB",
		doc:   "Memory for the histories of all channels together. Channels that nobody watches give theirs up first.",
		value: func(c *serveConfig) value { return size{&c.history, 1 * mib, 1 << 40} },
	},
	{
		key: "memory.channel-history", initial: "8MiB",
		doc: "Memory for the history of one channel, which reaches back to its last random-access point. " +
			"2 s of a 20 Mbit/s stream are 5 MB. At most memory.history.",
		value: func(c *serveConfig) value { return size{&c.channelHistory, 256 * kib, 1 << 40} },
	},
	{
		key: "rtsp-sources.transports", initial: []any{"tcp", "udp"},
		doc: "Ways in which media may come, in the order in which they are offered: `tcp` (on the control connection), `udp`, `multicast`.",
		value: func(c *serveConfig) value {
			return texts{&c.rtspTransports, 1, `"tcp", "udp" or "multicast"`, validTransport}
		},
	},
	{
		key: "rtsp-sources.allow", flag: "rtsp-allow", param: "NETWORK", initial: []any{},
		doc: "Networks that servers may be in, such as `10.0.0.0/8`. Empty: every address but those of this host and of the link. " +
			"It is looked at again after each redirect.",
		value: func(c *serveConfig) value {
			return texts{&c.rtspAllow, 0, `a network such as "10.0.0.0/8"`, normalNetwork}
		},
	},
	{
		key: "rtsp-sources.user-agent", initial: "zapcast",
		doc:   "What servers are told that asks; some let in only the programs that they know.",
		value: func(c *serveConfig) value { return text{&c.rtspAgent, "one line of printable characters", validAgent} },
	},
	{
		key: "rtsp-sources.stun", initial: "",
		doc: "STUN server (`HOST[:PORT]`) that tells the address that UDP media is to be sent to, for a client behind NAT. Empty: none is asked.",
		value: func(c *serveConfig) value {
			return text{&c.rtspSTUN, `HOST or HOST:PORT, or ""`, validSTUN}
		},
	},
	{
		key: "rtsp-sources.vendor-nat", initial: true,
		doc:   "Send the headers and the packet by which servers of ZTE find a client behind NAT. Others do not mind them.",
		value: func(c *serveConfig) value { return truth{&c.rtspVendor} },
	},
	{
		key: "rtsp-sources.trust-redirects", initial: false,
		doc:   "Let a redirect take credentials to another host, and a session from rtsps to rtsp.",
		value: func(c *serveConfig) value { return truth{&c.rtspTrust} },
	},
	{
		key: "rtsp-sources.insecure", initial: false,
		doc:   "Accept any certificate of a rtsps server.",
		value: func(c *serveConfig) value { return truth{&c.rtspInsecure} },
	},
	{
		key: "rtsp-sources.timeout", initial: "3s",
		doc:   "How long a server may take to accept a connection, for each answer, and for the first media.",
		value: func(c *serveConfig) value { return duration{&c.rtspTimeout, 500 * time.Millisecond, time.Minute, ""} },
	},
	{
		key: "viewer.lag", initial: "10s",
		doc:   "How far a viewer may fall behind, in time.",
		value: func(c *serveConfig) value { return duration{&c.lag, time.Second, 10 * time.Minute, ""} },
	},
	{
		key: "viewer.lag-bytes", initial: "16MiB",
		doc: "How far a viewer may fall behind, in bytes of the stream. What is reached first counts. The system's send buffer " +
			"(the last figure of the sysctl net.ipv4.tcp_wmem, mostly 4 MB) comes on top.",
		value: func(c *serveConfig) value { return size{&c.lagBytes, 1 * mib, 1 * gib} },
	},
	{
		key: "viewer.slow", initial: "skip",
		doc:   "What happens to a viewer that is too far behind: `skip` moves it to the newest random-access point, `close` ends its response.",
		value: func(c *serveConfig) value { return choice{&c.slow, []string{"skip", "close"}} },
	},
	{
		key: "viewer.flush", initial: "100ms",
		doc:   "How long packets may be gathered before they are sent on. Less is dearer, more adds to the delay; the first picture never waits for it.",
		value: func(c *serveConfig) value { return duration{&c.flush, time.Millisecond, time.Second, ""} },
	},
	{
		key: "viewer.start-wait", initial: "4s",
		doc:   "How long a request waits for a point at which a decoder can start, once packets come. Then the stream starts anyway.",
		value: func(c *serveConfig) value { return duration{&c.startWait, 100 * time.Millisecond, time.Minute, ""} },
	},
	{
		key: "http.hosts", initial: []any{},
		doc: "Names under which the server may be addressed (the Host header, without its port). Empty: any. " +
			"A list keeps web pages of strangers from reaching the server through a name of theirs.",
		value: func(c *serveConfig) value {
			return texts{&c.hosts, 0, `a host name or address without a port, such as "tv.example.net"`, normalHost}
		},
	},
	{
		key: "http.cors", initial: "",
		doc: "Origin whose pages may read the streams with scripts (Access-Control-Allow-Origin): `*` for any, empty for none.",
		value: func(c *serveConfig) value {
			return text{&c.cors, `an origin such as "https://tv.example.net", "*" or ""`, validOrigin}
		},
	},
	{
		key: "http.prefix", initial: "",
		doc: "Path before every other: with `/tv`, the page is at `/tv/` and nothing answers outside of it.",
		value: func(c *serveConfig) value {
			return text{&c.prefix, `a path such as "/tv", without a slash at its end, or ""`, validPrefix}
		},
	},
	{
		key: "http.proxies", initial: []any{},
		doc: "Networks of proxies whose X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto are believed. Nobody else's are.",
		value: func(c *serveConfig) value {
			return texts{&c.proxies, 0, `an address or a network such as "192.0.2.0/24"`, normalNetwork}
		},
	},
	{
		key: "http.access-log", initial: "",
		doc:   "File to which a line is written for each request, and for each stream when it ends. SIGHUP opens it anew. Empty: none.",
		value: func(c *serveConfig) value { return text{&c.accessLog, "an absolute path", emptyOr(filepath.IsAbs)} },
	},
	{
		key: "http.access-format", initial: accesslog.Combined,
		doc: "Format of these lines, in the manner of nginx, or `json` for an object with every variable. docs/access.md lists them.",
		value: func(c *serveConfig) value {
			return text{&c.accessFormat, `a format such as "$remote_addr $status", or "json"`, func(s string) bool { return accesslog.Check(s) == nil }}
		},
	},
	{
		key: "http.link-key", initial: "",
		doc:   "Secret that signs links to streams (`zapcast link`), 16 bytes at least. Another one makes the links given out worthless. Empty: there are none.",
		value: func(c *serveConfig) value { return secret{&c.linkKey, 16, true} },
	},
	{
		key: "rtsp.listen", flag: "rtsp-listen", param: "ADDRESS", initial: []any{},
		doc: "Where RTSP requests are taken: `[ADDR:]PORT`, such as `:8554`. Empty: RTSP is off.",
		value: func(c *serveConfig) value {
			return texts{&c.rtspListen, 0, `[ADDR:]PORT, such as ":8554"`, normalTCPAddress}
		},
	},
	{
		key: "rtsp.user", initial: "",
		doc:   "User name that RTSP clients are asked for (digest, RFC 2617). Empty: nobody is asked.",
		value: func(c *serveConfig) value { return text{&c.rtspUser, `a name without quotes or colons`, validUser} },
	},
	{
		key: "rtsp.password", initial: "",
		doc:   "The password of `rtsp.user`.",
		value: func(c *serveConfig) value { return text{&c.rtspPassword, `a password in one line`, validPassword} },
	},
	{
		key: "rtsp.udp-port", initial: int64(0),
		doc: "First of the two UDP ports from which RTSP clients are sent datagrams, an even number; reports use the next one. " +
			"0 takes any free pair, once a client needs it.",
		value: func(c *serveConfig) value { return count{&c.rtspUDPPort, 0, 65534} },
	},
	{
		key: "rtsp.multicast", initial: "",
		doc: "Groups to which channels are sent for RTSP clients who ask for multicast, and their port, an even number (reports go to the next): " +
			"`GROUP/BITS:PORT`, such as `239.255.77.0/24:5004`. Each channel takes one group while it has such a client. Empty: no multicast. " +
			"They must not be groups that channels come from.",
		value: func(c *serveConfig) value {
			return text{&c.rtspGroups, `groups and an even port such as "239.255.77.0/24:5004", or ""`, validGroups}
		},
	},
	{
		key: "rtsp.multicast-interface", initial: "",
		doc: "Network interface through which these groups are sent. Empty: the routing table's choice.",
		value: func(c *serveConfig) value {
			return text{&c.rtspGroupsInterface, `the name of an interface such as "eth1"`, validInterface}
		},
	},
	{
		key: "rtsp.multicast-ttl", initial: int64(1),
		doc:   "How many networks the groups may cross (TTL, or hop limit). 1: the interface's own; 0: this machine.",
		value: func(c *serveConfig) value { return count{&c.rtspGroupsTTL, 0, 255} },
	},
	{
		key: "engine.plain", initial: false, restart: true,
		doc:   "Serve through the portable path, without the system's batched and zero-copy calls. The same bytes at a higher price.",
		value: func(c *serveConfig) value { return truth{&c.plain} },
	},
}

// A serveConfig is everything that serve can be told. defaultConfig makes a
// good one; fields may then be set at will.
type serveConfig struct {
	listen     []string
	iface      string
	maxClients int
	loops      int
	logLevel   string
	stateDir   string

	silence       time.Duration
	linger        time.Duration
	refresh       time.Duration
	receiveBuffer int64
	receive       string
	ring          int64

	fccJoin      string
	fccInterface string
	fccFirstPort int
	fccLastPort  int
	fccClient    string
	fccBursts    int
	fccHold      int64

	repairLatency time.Duration

	history        int64
	channelHistory int64

	rtspTransports []string
	rtspAllow      []string
	rtspAgent      string
	rtspSTUN       string
	rtspVendor     bool
	rtspTrust      bool
	rtspInsecure   bool
	rtspTimeout    time.Duration

	lag       time.Duration
	lagBytes  int64
	slow      string
	flush     time.Duration
	startWait time.Duration

	hosts []string
	cors  string

	prefix  string
	proxies []string
	linkKey string

	accessLog, accessFormat string

	rtspListen   []string
	rtspUser     string
	rtspPassword string
	rtspUDPPort  int

	rtspGroups          string
	rtspGroupsInterface string
	rtspGroupsTTL       int

	plain bool

	channels  []channelConfig
	playlists []playlistConfig
	tokens    []tokenConfig

	// origin says where a setting was made ("zapcast.toml:12", "--listen"),
	// by key. What is missing here has its default.
	origin map[string]string
}

// defaultConfig returns the configuration of a server that is told nothing.
func defaultConfig() serveConfig {
	cfg := serveConfig{origin: map[string]string{}}
	for _, s := range settings {
		if err := s.value(&cfg).set(s.initial); err != nil {
			panic("main: default of " + s.key + ": " + err.Error())
		}
	}
	return cfg
}

// allSettings lists those of lists too.
func allSettings() []setting {
	all := settings
	for _, l := range lists {
		all = append(slices.Clip(all), l.settings...)
	}
	return all
}

// settingOf returns the setting with a key, of a list too.
func settingOf(key string) (setting, bool) {
	for _, s := range allSettings() {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}
