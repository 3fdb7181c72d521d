package main

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// loadText loads a document as a file named zapcast.toml.
func loadText(t *testing.T, doc string, set map[string][]string) (serveConfig, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("zapcast.toml", []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	return options{file: "zapcast.toml", set: set}.load()
}

func TestLoad_faults(t *testing.T) {
	tests := []struct{ name, doc, want string }{
		{"unknown key", "\nlisten-on = 3\n", `zapcast.toml:2:1: listen-on: unknown key, expected one of ` + knownIn(nil)[len("one of "):]},
		{"unknown key in a table", "[viewer]\n  lagg = \"1s\"\n", `zapcast.toml:2:3: viewer.lagg: unknown key, expected one of lag, lag-bytes, slow, flush, start-wait`},
		{"unknown dotted key", "viewer.lagg = 1", `zapcast.toml:1:1: viewer.lagg: unknown key, expected one of lag, lag-bytes, slow, flush, start-wait`},
		{"unknown key in an inline table", "http = { hosts = [],\n cors = \"\", ports = 1 }", `zapcast.toml:2:13: http.ports: unknown key, expected one of hosts, cors, prefix, proxies, access-log, access-format, link-key`},
		{"unknown table", "[multicats]\nlinger = \"1s\"", `zapcast.toml:1:2: multicats: unknown key, expected one of ` + knownIn(nil)[len("one of "):]},
		{"key of another table", "[viewer]\nlinger = \"1s\"", `zapcast.toml:2:1: viewer.linger: unknown key, expected one of lag, lag-bytes, slow, flush, start-wait`},
		{"quoted key with a dot", `"viewer.lag" = "1s"`, `zapcast.toml:1:1: "viewer.lag": unknown key, expected one of ` + knownIn(nil)[len("one of "):]},
		{"number for a duration", "[multicast]\n\nlinger = 15\n", `zapcast.toml:3: multicast.linger: expected a duration such as "15s", found 15`},
		{"duration without a unit", "[multicast]\nlinger = \"15\"", `zapcast.toml:2: multicast.linger: expected a duration such as "15s", found "15"`},
		{"duration out of range", "[multicast]\nsilence = \"0s\"", `zapcast.toml:2: multicast.silence: expected a duration from "1s" to "10m", found "0s"`},
		{"negative duration", "[multicast]\nrefresh = \"-1s\"", `zapcast.toml:2: multicast.refresh: expected a duration from "5s" to "1h", or "0s" (off), found "-1s"`},
		{"size with another unit", "[memory]\nhistory = \"32MB\"", `zapcast.toml:2: memory.history: expected a size such as "8MiB", found "32MB"`},
		{"size out of range", "[memory]\nhistory = 12", `zapcast.toml:2: memory.history: expected a size from "1MiB" to "1024GiB", found 12`},
		{"size that overflows", "[memory]\nhistory = \"9223372036854775807GiB\"", `zapcast.toml:2: memory.history: expected a size such as "8MiB", found "9223372036854775807GiB"`},
		{"size that is no whole number", "[memory]\nhistory = 1.5", `zapcast.toml:2: memory.history: expected a size such as "8MiB", found 1.5`},
		{"sizes that contradict each other", "[memory]\nchannel-history = \"8MiB\"\nhistory = \"4MiB\"", `zapcast.toml:2: memory.channel-history: expected at most memory.history (4MiB), found "8MiB"`},
		{"string for a number", `max-clients = "many"`, `zapcast.toml:1: max-clients: expected a whole number from 1 to 1000000, found "many"`},
		{"number in quotes", `max-clients = "5"`, `zapcast.toml:1: max-clients: expected a whole number from 1 to 1000000, found "5"`},
		{"number out of range", `max-clients = 0`, `zapcast.toml:1: max-clients: expected a whole number from 1 to 1000000, found 0`},
		{"unknown word", `log-level = "INFO"`, `zapcast.toml:1: log-level: expected "debug", "info", "warn" or "error", found "INFO"`},
		{"wrong type for a word", "[viewer]\nslow = true", `zapcast.toml:2: viewer.slow: expected "skip" or "close", found true`},
		{"string for a truth", "[engine]\nplain = \"yes\"", `zapcast.toml:2: engine.plain: expected true or false, found "yes"`},
		{"date", "interface = 2026-01-02", `zapcast.toml:1: interface: expected the name of an interface such as "eth0", found 2026-01-02`},
		{"interface that is a path", `interface = "/dev/eth0"`, `zapcast.toml:1: interface: expected the name of an interface such as "eth0", found "/dev/eth0"`},
		{"number for an address", `listen = 5140`, `zapcast.toml:1: listen: expected a list of strings, each [ADDR:]PORT or the absolute path of a socket, such as ":5140", found 5140`},
		{"empty list of addresses", `listen = []`, `zapcast.toml:1: listen: expected a list of strings, each [ADDR:]PORT or the absolute path of a socket, such as ":5140", found []`},
		{"port out of range", "listen = [\":5140\",\n\":70000\"]", `zapcast.toml:1: listen: expected [ADDR:]PORT or the absolute path of a socket, such as ":5140", found ":70000"`},
		{"IPv6 address without brackets", `listen = "::1:5140"`, `zapcast.toml:1: listen: expected [ADDR:]PORT or the absolute path of a socket, such as ":5140", found "::1:5140"`},
		{"relative path of a socket", `listen = "run/http.sock"`, `zapcast.toml:1: listen: expected [ADDR:]PORT or the absolute path of a socket, such as ":5140", found "run/http.sock"`},
		{"address twice", `listen = ["5140", ":5140"]`, `zapcast.toml:1: listen: expected each entry once, found ":5140"`},
		{"host with a port", "[http]\nhosts = [\"tv:80\"]", `zapcast.toml:2: http.hosts: expected a host name or address without a port, such as "tv.example.net", found "tv:80"`},
		{"origin with a path", "[http]\ncors = \"https://tv/x\"", `zapcast.toml:2: http.cors: expected an origin such as "https://tv.example.net", "*" or "", found "https://tv/x"`},
		{"value for a table", "viewer = 3", `zapcast.toml:1: viewer: expected a table [viewer], found 3`},
		{"table for a value", "[loops]\nx = 1", `zapcast.toml:1: loops: expected a whole number from 1 to 64, found a table`},
		{"inline table for a value", "loops = {}", `zapcast.toml:1: loops: expected a whole number from 1 to 64, found a table`},
		{"list of tables", "[[viewer]]\nlag = \"1s\"", `zapcast.toml:1: viewer: expected one table [viewer], found a list of tables`},
		{"one table for a list", "[channel]\nname = \"x\"", `zapcast.toml:1: channel: expected a list of tables [[channel]], found one table`},
		{"value for a list", "channel = 3", `zapcast.toml:1: channel: expected a list of tables [[channel]], found 3`},
		{"inline list of tables", "channel = [{name = \"x\"}]", `zapcast.toml:1: channel: expected a list of tables [[channel]], found [a table]`},
		{"unknown key in a list", "[[playlist]]\nsource = \"x\"\n[[playlist]]\nurl = \"x\"", `zapcast.toml:4:1: playlist.url: unknown key, expected one of source, refresh`},
		{"channel without a name", "\n[[channel]]\nsources = \"rtp://239.1.1.1:1\"", `zapcast.toml:2: channel.name: expected a name, found none`},
		{"channel without a source", "[[channel]]\nname = \"x\"", `zapcast.toml:1: channel.sources: expected at least one URL, found none`},
		{"no URL for a source", "[[channel]]\nname = \"x\"\nsources = [\"239.1.1.1:1\"]", `zapcast.toml:3: channel.sources: expected a URL such as "rtp://239.1.1.1:5000", of MPEG-TS and not of HLS, found "239.1.1.1:1"`},
		{"source that is no group", "[[channel]]\nname = \"x\"\nsources = [\"rtp://192.0.2.1:1\"]", `zapcast.toml:1: channel.sources: rtp://192.0.2.1:1: flow 192.0.2.1:1: group 192.0.2.1 is not multicast (224.0.0.0/4 or ff00::/8)`},
		{"wrong FCC server", "[[channel]]\nname = \"x\"\nsources = [\"rtp://239.1.1.1:1\"]\nfcc = \"192.0.2.1\"", `zapcast.toml:1: channel.sources: rtp://239.1.1.1:1?fcc=192.0.2.1: expected fcc=HOST:PORT, found no port in "192.0.2.1"`},
		{"playlist of nothing", "[[playlist]]\nrefresh = \"1h\"", `zapcast.toml:1: playlist.source: expected a path or a URL, found none`},
		{"second playlist too eager", "[[playlist]]\nsource = \"x\"\n[[playlist]]\nsource = \"y\"\nrefresh = \"1s\"", `zapcast.toml:5: playlist.refresh: expected a duration from "10s" to "720h", or "0s" (only at SIGHUP), found "1s"`},
		{"relative state directory", "state-dir = \"state\"", `zapcast.toml:1: state-dir: expected an absolute path, found "state"`},
		{"no TOML", "#EXTM3U\n#EXTINF:-1,News\nrtp://239.0.0.1:5000\n", `zapcast.toml:3:4: expected TOML, found "rtp://239.0.0.1:5000" (`},
		{"key without value", "loops", `zapcast.toml:1:5: expected TOML, found "loops" (`},
		{"key twice", "loops = 1\nloops = 2", `zapcast.toml:2:1: expected TOML, found "loops = 2" (`},
		{"open string", "interface = \"eth0\nloops = 1", `zapcast.toml:1:18: expected TOML, found "interface = \"eth0" (`},
		{"binary", "\x7fELF\x02\x01\x01\x00", `zapcast.toml:1:1: expected TOML, found "\x7fELF\x02\x01\x01\x00" (`},
		{"too long", strings.Repeat("# padding\n", maxConfigBytes/10+1), `zapcast.toml: expected at most 1048576 bytes, found more`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadText(t, tt.doc, nil)
			if err == nil {
				t.Fatalf("no error, want %q", tt.want)
			}
			got := err.Error()
			if strings.HasSuffix(tt.want, "(") { // the library's own words follow
				got = got[:min(len(got), len(tt.want))]
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestLoad_unreadableFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, want := range map[string]string{
		"missing.toml": "missing.toml: expected a readable file: no such file or directory",
		".":            ".: expected a readable file: is a directory",
	} {
		if _, err := (options{file: path}).load(); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

func TestLoad_everyKind(t *testing.T) {
	got, err := loadText(t, `
listen = "127.0.0.1:05140"
interface = "eth0.12"
multicast.refresh = "0s"
viewer = { lag = "1m30s", slow = "close" }

[memory]
history = "64 MiB"
channel-history = 1048576

[http]
hosts = ["TV.example.net", "[2001:db8::1]"]
cors = "*"

[engine]
plain = true
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	want.listen = []string{"127.0.0.1:5140"}
	want.iface = "eth0.12"
	want.lag, want.slow = 90*time.Second, "close"
	want.history, want.channelHistory = 64*mib, 1*mib
	want.hosts, want.cors = []string{"tv.example.net", "2001:db8::1"}, "*"
	want.plain = true
	want.origin = map[string]string{
		"listen": "zapcast.toml:2", "interface": "zapcast.toml:3", "multicast.refresh": "zapcast.toml:4",
		"viewer.lag": "zapcast.toml:5", "viewer.slow": "zapcast.toml:5", "memory.history": "zapcast.toml:8",
		"memory.channel-history": "zapcast.toml:9", "http.hosts": "zapcast.toml:12", "http.cors": "zapcast.toml:13",
		"engine.plain": "zapcast.toml:16",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(serveConfig{})); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestLoad_defaultGivesWay(t *testing.T) {
	cfg, err := loadText(t, "[memory]\nhistory = \"4MiB\"", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := cfg.channelHistory, int64(4*mib); got != want {
		t.Errorf("channel-history: got %d, want %d", got, want)
	}
}

func TestLoad_flagsWinOverFileOverDefaults(t *testing.T) {
	got, err := loadText(t, "listen = [\":1\", \":2\"]\nmax-clients = 7\nloops = 3\n", map[string][]string{
		"listen": {"3", "[::1]:4"},
		"loops":  {"1", "2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	want.listen, want.maxClients, want.loops = []string{":3", "[::1]:4"}, 7, 2
	want.origin = map[string]string{"listen": "--listen", "max-clients": "zapcast.toml:2", "loops": "--loops"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(serveConfig{})); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestLoad_wrongFlagIsAUsageError(t *testing.T) {
	for flag, want := range map[string]string{
		"max-clients": `--max-clients: expected a whole number from 1 to 1000000, found "x"`,
		"listen":      `--listen: expected [ADDR:]PORT or the absolute path of a socket, such as ":5140", found "x"`,
		"log-level":   `--log-level: expected "debug", "info", "warn" or "error", found "x"`,
	} {
		_, err := options{set: map[string][]string{flag: {"x"}}}.load()
		if err == nil || err.Error() != want || !errors.As(err, new(usageError)) {
			t.Errorf("--%s x: got %v, want the usage error %s", flag, err, want)
		}
	}
}

func TestNormalAddress(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, ok := normalAddress(in)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %q, %v; want %q", in, got, ok, want)
		}
	}
	f("5140", ":5140")
	f(":5140", ":5140")
	f(":0", ":0")
	f("192.0.2.1:80", "192.0.2.1:80")
	f("[::1]:5140", "[::1]:5140")
	f("[0:0::1]:5140", "[::1]:5140")
	f("[fe80::1%eth0]:80", "[fe80::1%eth0]:80")
	f("LocalHost:80", "localhost:80")
	f("/run/zapcast.sock", "/run/zapcast.sock")
	f("/"+strings.Repeat("x", maxSocketPath), "")
	f("/run/", "")
	f("", "")
	f(":", "")
	f("[::1]", "")
	f("::1", "")
	f("[192.0.2.1]:80", "")
	f("host name:80", "")
	f("192.0.2.1:http", "")
	f("192.0.2.1:-1", "")
	f("192.0.2.1:65536", "")
}

func TestOpenURL_keepsBrackets(t *testing.T) {
	for _, tt := range []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.IPv6loopback, Port: 5140}, "http://[::1]:5140/rtp/GROUP:PORT"},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, "http://192.0.2.1:80/rtp/GROUP:PORT"},
		{&net.TCPAddr{IP: net.IPv6unspecified, Port: 5140}, "http://HOST:5140/rtp/GROUP:PORT"},
		{&net.TCPAddr{IP: net.IPv4zero, Port: 5140}, "http://HOST:5140/rtp/GROUP:PORT"},
		{&net.UnixAddr{Name: "/run/z.sock", Net: "unix"}, "http://HOST/rtp/GROUP:PORT"},
	} {
		if got := openURL("http", tt.addr); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.addr, got, tt.want)
		}
	}
}

func FuzzApply(f *testing.F) {
	for _, seed := range []string{exampleFile(), "listen = [\":1\"]", "viewer = { lag = \"1s\" }", "[[viewer]]", "a.b.\"c.d\" = 1979-05-27T07:32:00Z", "\xff\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		cfg := defaultConfig()
		err := cfg.apply("f", doc)
		if err == nil {
			for _, s := range settings { // what was accepted can be written and read again
				v := s.value(&cfg)
				again := defaultConfig()
				if err := again.apply("again", []byte(s.key+" = "+v.text())); err != nil {
					t.Fatalf("%s: %v", s.key, err)
				}
				if got, want := s.value(&again).text(), v.text(); got != want {
					t.Fatalf("%s: got %s, want %s", s.key, got, want)
				}
			}
			return
		}
		if msg := err.Error(); !strings.HasPrefix(msg, "f:") || strings.ContainsAny(msg, "\n\r") {
			t.Fatalf("error %q, want one line that names the file", msg)
		}
	})
}

func TestCheck_interfaceFaults(t *testing.T) {
	cfg, err := loadText(t, "\ninterface = \"nosuchif0\"\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `zapcast.toml:2: interface: expected an interface that exists, found "nosuchif0"`
	if got := cfg.interfaceFault(); got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
	cfg = defaultConfig()
	if got := cfg.interfaceFault(); got != nil {
		t.Errorf("no interface configured: got %v, want none", got)
	}
}

func TestParseGroups(t *testing.T) {
	for s, want := range map[string]bool{
		"239.255.77.0/24:5004": true, "239.1.1.1/32:2": true, "[ff15::/112]:5004": true,
		"239.255.77.0/24:5005": false, "239.255.77.0/24": false, "239.255.77.0:5004": false, "192.0.2.0/24:5004": false,
		"239.0.0.0/2:5004": false, "ff15::/112:5004": false, "239.1.1.0/24:0": false, "239.1.1.0/24:70000": false, "x": false,
	} {
		if _, _, ok := parseGroups(s); ok != want {
			t.Errorf("%q: got %v, want %v", s, ok, want)
		}
	}
}
