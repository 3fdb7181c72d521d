package tune

import (
	"errors"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"zapcast/ingest"
)

var comparer = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
}

func group(s string) ingest.FlowSpec { return ingest.FlowSpec{Group: netip.MustParseAddrPort(s)} }

func groupSource(s, source string) ingest.FlowSpec {
	return ingest.FlowSpec{Group: netip.MustParseAddrPort(s), Source: netip.MustParseAddr(source)}
}

func onInterface(s, name string) ingest.FlowSpec {
	return ingest.FlowSpec{Group: netip.MustParseAddrPort(s), Interface: name}
}

func TestParse_accepts(t *testing.T) {
	plain := Target{Spec: group("239.1.1.1:5000")}
	port := func(p uint16) Target {
		return Target{Spec: ingest.FlowSpec{Group: netip.AddrPortFrom(netip.MustParseAddr("239.1.1.1"), p)}}
	}
	f := func(in string, want Target) {
		t.Helper()
		got, err := Parse(in)
		if err != nil {
			t.Errorf("Parse(%q): %v", in, err)
			return
		}
		if diff := cmp.Diff(want, got, comparer, cmpopts.IgnoreFields(Target{}, "Ignored")); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", in, diff)
		}
		again, err := Parse(got.String())
		if diff := cmp.Diff(got, again, comparer, cmpopts.IgnoreFields(Target{}, "Ignored")); diff != "" || err != nil {
			t.Errorf("Parse(%q.String() = %q): %v (-want +got):\n%s", in, got, err, diff)
		}
	}

	// Every separator, as it stands and percent-encoded.
	for _, sep := range separators {
		f("/rtp/239.1.1.1"+string(sep)+"5000", plain)
		f("/udp/239.1.1.1"+string(sep)+"5000/", plain)
		f("/udp/239.1.1.1"+string(sep)+"5000?a=1", plain)
		f("/udp/239.1.1.1%"+strconv.FormatInt(int64(sep), 16)+"5000", plain)
		f("/udp/239.1.1.1%"+strings.ToUpper(strconv.FormatInt(int64(sep), 16))+"5000", plain)
		f("/rtp/198.51.100.7@239.1.1.1"+string(sep)+"5000", Target{Spec: groupSource("239.1.1.1:5000", "198.51.100.7")})
	}
	// A raw percent whose digits are an escape too.
	f("/rtp/239.1.1.1%1234", port(1234))
	f("/rtp/239.1.1.1%2500", port(2500))
	f("/rtp/239.1.1.1%3000?fec=1", Target{Spec: group("239.1.1.1:3000"), FEC: fecPorts(1)})
	f("/rtp/239.1.1.1%8080$x", Target{Spec: group("239.1.1.1:8080"), Label: "x"})
	f("/rtp/239.1.1.1%40", port(40))
	f("/rtp/198.51.100.7%40239.1.1.1:5000", Target{Spec: groupSource("239.1.1.1:5000", "198.51.100.7")})
	f("/rtp/239.1.1.1%251234", port(1234))

	// What follows the port.
	f("/rtp/239.1.1.1:5000abc", plain)
	f("/rtp/239.1.1.1:5000/x/y@z", plain)
	f("/rtp/239.1.1.1:5000//", plain)
	f("/rtp/239.1.1.1:5000$", plain)
	f("/rtp/239.1.1.1", port(1234))
	f("/rtp/239.1.1.1/", port(1234))
	f("/rtp/239.1.1.1//?", port(1234))
	f("/rtp/239.1.1.1:00080", port(80))

	// Sources, IPv6, names.
	f("/rtp/198.51.100.7:4000@239.1.1.1", Target{Spec: groupSource("239.1.1.1:1234", "198.51.100.7")})
	f("/rtp/[ff15::1]", Target{Spec: group("[ff15::1]:1234")})
	f("/rtp/[ff15::1]:5000/", Target{Spec: group("[ff15::1]:5000")})
	f("/rtp/[FF15:0::1]:5000", Target{Spec: group("[ff15::1]:5000")})
	f("/rtp/%5Bff15%3A%3A1%5D%3A5000", Target{Spec: group("[ff15::1]:5000")})
	f("/rtp/[::ffff:239.1.1.1]:5000", plain)
	f("/rtp/[2001:db8::7]@[ff3e::1]:5000", Target{Spec: groupSource("[ff3e::1]:5000", "2001:db8::7")})
	f("/rtp/[2001:db8::7]:99@[ff3e::1]:5000", Target{Spec: groupSource("[ff3e::1]:5000", "2001:db8::7")})
	f("/rtp/[ff02::1%25eth0]:5000", Target{Spec: onInterface("[ff02::1]:5000", "eth0")})
	f("/rtp/[ff02::1%25eth0]:5000?ifname=eth1", Target{Spec: onInterface("[ff02::1]:5000", "eth1")})
	f("/rtp/News.example:5000", Target{Group: "News.example", Spec: ingest.FlowSpec{Group: netip.AddrPortFrom(netip.Addr{}, 5000)}})
	f("/rtp/3-news.example", Target{Group: "3-news.example", Spec: ingest.FlowSpec{Group: netip.AddrPortFrom(netip.Addr{}, 1234)}})
	f("/rtp/sender.example:1@239.1.1.1:5000", Target{Source: "sender.example", Spec: group("239.1.1.1:5000")})

	// Absolute form.
	f("http://192.0.2.1:5140/rtp/239.1.1.1:5000", plain)
	f("HTTP://[::1]:5140/udp/239.1.1.1:5000", plain)

	// Labels.
	f("/rtp/239.1.1.1:5000$News", Target{Spec: group("239.1.1.1:5000"), Label: "News"})
	f("/rtp/239.1.1.1:5000$a$b%20c", Target{Spec: group("239.1.1.1:5000"), Label: "b c"})
	f("/rtp/239.1.1.1$News", Target{Spec: group("239.1.1.1:1234"), Label: "News"})
	f("/rtp/239.1.1.1:5000%24News", Target{Spec: group("239.1.1.1:5000"), Label: "News"})
	f("/rtp/239.1.1.1:5000?fec=7$Ne/w?s&1", Target{Spec: group("239.1.1.1:5000"), FEC: fecPorts(7), Label: "Ne/w?s&1"})
	f("/rtp/239.1.1.1:5000?fec=7$50%", Target{Spec: group("239.1.1.1:5000"), FEC: fecPorts(7), Label: "50%"})
	f("/rtp/239.1.1.1:5000?playseek=${(b)yyyy}", plain)

	// Parameters.
	fcc := func(server, dialect string) Target {
		return Target{Spec: group("239.1.1.1:5000"), FCC: server, FCCType: dialect}
	}
	const at = "/rtp/239.1.1.1:5000?"
	f(at+"fcc=192.0.2.9:8027", fcc("192.0.2.9:8027", ""))
	f(at+"fcc=192.0.2.9:8027&fcc-type=telecom", fcc("192.0.2.9:8027", "telecom"))
	f(at+"fcc=192.0.2.9:8027&fcc-type=rams", fcc("192.0.2.9:8027", "rams"))
	f(at+"fcc=192.0.2.9:8027&fcc-type=huawei", fcc("192.0.2.9:8027", "huawei"))
	f(at+"fcc=192.0.2.9:8027&fcc-type=other", fcc("192.0.2.9:8027", ""))
	f(at+"fcc=fcc.example:8027", fcc("fcc.example:8027", ""))
	f(at+"fcc%3D192.0.2.9%3A8027", plain) // an escaped "=" is no "="
	f("/rtp/239.1.1.1%3A5000%3Ffcc%3D192.0.2.9%3A8027%26fec%3D2", Target{Spec: group("239.1.1.1:5000"), FCC: "192.0.2.9:8027", FEC: fecPorts(2)})
	f(at+"fcc=", plain)
	f(at+"fcc=0", plain)
	f(at+"fcc=:8027", plain)
	f(at+"fcc=[2001:db8::1]:8027", plain)
	f(at+"fcc=2001:db8::1", plain)
	f(at+"fcc-type=huawei", plain)
	f(at+"fec=0", plain)
	f(at+"fec=5001,5003", Target{Spec: group("239.1.1.1:5000"), FEC: fecPorts(5001, 5003)})
	f(at+"fec=2022-1", Target{Spec: group("239.1.1.1:5000"), FEC: fecPorts(5002, 5004)})
	f(at+"fec=5002,2022-1,5004,5006", Target{Spec: group("239.1.1.1:5000"), FEC: fecPorts(5002, 5004, 5006)})
	f(at+"fec=239.1.1.2:5003", Target{Spec: group("239.1.1.1:5000"), FEC: []netip.AddrPort{netip.MustParseAddrPort("239.1.1.2:5003")}})
	f(at+"fec=192.0.2.1:5003", plain)
	f(at+"fec=1,2,3,4,5", plain)
	f(at+"fec=x", plain)
	f(at+"fec=70000", plain)
	f(at+"rejoin_time=30", Target{Spec: group("239.1.1.1:5000"), RejoinTime: 30 * time.Second})
	f(at+"rejoin_time=-1", plain)
	f(at+"fec=1&fec=2", Target{Spec: group("239.1.1.1:5000"), FEC: fecPorts(1)})
	f(at+"ifname=a&r2h-ifname=b&ifindex=3", Target{Spec: onInterface("239.1.1.1:5000", "b")})
	f(at+"ifname=a&ifindex=3", Target{Spec: onInterface("239.1.1.1:5000", "a")})
	f(at+"r2h-ifname=&ifindex=3", Target{Spec: group("239.1.1.1:5000"), InterfaceIndex: 3})
	f(at+"ifname=eth0%2e12", Target{Spec: onInterface("239.1.1.1:5000", "eth0.12")})
	f(at+"x=%zz&%zz=1&fec=3", Target{Spec: group("239.1.1.1:5000"), FEC: fecPorts(3)})
	f(at+"ifname='%3Breboot", Target{Spec: onInterface("239.1.1.1:5000", "';reboot")})
}

func TestParse_refuses(t *testing.T) {
	f := func(in string, code int, reason string) {
		t.Helper()
		got, err := Parse(in)
		var refused *StatusError
		if !errors.As(err, &refused) {
			t.Errorf("Parse(%q) = %v, %v, want a *StatusError", in, got, err)
			return
		}
		if refused.Code != code || !strings.Contains(refused.Reason, reason) {
			t.Errorf("Parse(%q): %d %q, want %d with %q", in, refused.Code, refused.Reason, code, reason)
		}
	}
	f("", 400, "begins with /")
	f("*", 400, "begins with /")
	f("rtp/239.1.1.1", 400, "begins with /")
	f("https://host/rtp/239.1.1.1", 400, "begins with /")
	f("http://host", 400, "expected /rtp/")
	f("/", 400, "expected /rtp/")
	f("/rtpx/239.1.1.1", 400, "expected /rtp/")
	f("/rtp/239.1.1.1:5000?"+strings.Repeat("a", MaxTarget), 414, "bytes")
	f("/rtp", 400, "found none")
	f("/rtp/", 400, "found none")
	f("/rtp//239.1.1.1:5000", 400, "found none")
	f("/rtp/?fcc=1", 400, "found none")
	f("/rtp/$label", 400, "found none")
	f("/rtp/%zz", 400, "hexadecimal")
	f("/rtp/239.1.1.1:5000/%4", 400, "hexadecimal")

	f("/rtp/@239.1.1.1:5000", 400, "source address before @, found nothing")
	f("/rtp/198.51.100.7@", 400, "multicast address, found nothing")
	f("/rtp/198.51.100.7@:5000", 400, `multicast address, found ":5000"`)
	f("/rtp/198.51.100.7@/x", 400, "multicast address")
	f("/rtp/198.51.100.7:0@239.1.1.1", 400, "source port")
	f("/rtp/198.51.100.7:1x@239.1.1.1", 400, "after the source port")
	f("/rtp/198.51.100.7~1@239.1.1.1", 400, "after the source address")
	f("/rtp/239.9.9.9@239.1.1.1:5000", 400, "unicast")
	f("/rtp/0.0.0.0@239.1.1.1:5000", 400, "unicast")
	f("/rtp/198.51.100.7@[ff3e::1]:5000", 400, "famil")
	f("/rtp/[2001:db8::7]@239.1.1.1:5000", 400, "famil")

	f("/rtp/192.0.2.1:5000", 400, "multicast")
	f("/rtp/[2001:db8::1]:5000", 400, "multicast")
	f("/rtp/239.1.1:5000", 400, `multicast address, found "239.1.1"`)
	f("/rtp/239.1.1.256:5000", 400, "multicast address")
	f("/rtp/239.1.1.1.1", 400, "multicast address")
	f("/rtp/ff15::1:5000", 400, "brackets")
	f("/rtp/[ff15::1:5000", 400, "brackets")
	f("/rtp/[239.1.1.1]:5000", 400, "brackets")
	f("/rtp/[]:5000", 400, "brackets")
	f("/rtp/"+strings.Repeat("a.", 130)+"example", 400, "multicast address")
	f("/rtp/a';reboot", 400, "expected a port")

	for _, sep := range ":~+-^" {
		f("/rtp/239.1.1.1"+string(sep), 400, "port from 1 to 65535, found nothing")
		f("/rtp/239.1.1.1"+string(sep)+"0", 400, "port from 1 to 65535")
		f("/rtp/239.1.1.1"+string(sep)+"65536", 400, `found "65536"`)
		f("/rtp/239.1.1.1"+string(sep)+"abc", 400, `found "abc"`)
	}
	f("/rtp/239.1.1.1:-1", 400, "port from 1 to 65535")
	f("/rtp/239.1.1.1:99999999999999999999", 400, "port from 1 to 65535")
	f("/rtp/239.1.1.1/5000", 400, `nothing after the multicast address, found "/5000"`)
	f("/rtp/239.1.1.1,5000", 400, "expected a port")
	f("/rtp/[ff15::1]x", 400, "expected a port")

	const at = "/rtp/239.1.1.1:5000?"
	f(at+"fcc=192.0.2.9", 400, "no port")
	f(at+"fcc=192.0.2.9:", 400, "fcc=HOST:PORT")
	f(at+"fcc=192.0.2.9:0", 400, "fcc=HOST:PORT")
	f(at+"fcc=192.0.2.9:80x", 400, "fcc=HOST:PORT")
	f(at+"fcc=192.0.2.9:65536", 400, "fcc=HOST:PORT")
	f(at+"ifindex=0", 400, "unknown interface")
	f(at+"ifindex=eth0", 400, "unknown interface")
	f(at+"ifindex=99999999999", 400, "unknown interface")
}

func TestParse_saysWhatItIgnores(t *testing.T) {
	f := func(query, want string) {
		t.Helper()
		got, err := Parse("/rtp/239.1.1.1:5000?" + query)
		if text := strings.Join(got.Ignored, "; "); err != nil || text != want {
			t.Errorf("Parse(…?%s): ignored %q, error %v, want ignored %q", query, text, err, want)
		}
	}
	f("a=1", "")
	f("fcc=0", "")
	f("fec=x", `fec="x": expected a port from 1 to 65535, GROUP:PORT or 2022-1, or several of them between commas`)
	f("fcc=[::1]:5", `fcc="[::1]:5": fast channel change has no IPv6 form`)
	f("fcc=a b:5", `fcc="a b:5": no such host`)
	f("fcc=a:5&fcc-type=b", `fcc-type="b": expected telecom, huawei, huawei-tlv, rams; it is found out`)
	f("rejoin_time=x", `rejoin_time="x": expected seconds from 0 to 65535`)
}

// Every prefix of a valid URL is parsed or refused, and what is parsed prints
// and parses to itself.
func TestParse_truncated(t *testing.T) {
	const whole = "/udp/[2001:db8::7]:99@[ff3e::1]:5000/?r2h-ifname=eth0.2&fcc=192.0.2.9:8027&fcc-type=huawei&fec=5002&rejoin_time=9$La%20bel"
	if _, err := Parse(whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		checkParse(t, whole[:n])
	}
}

// The examples of docs/urls.md mean what the page says.
func TestParse_examplesOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/urls.md")
	if err != nil {
		t.Fatal(err)
	}
	meaning := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\|$").FindAllStringSubmatch(string(page), -1)
	if len(meaning) < 20 {
		t.Fatalf("found %d examples, want 20 or more", len(meaning))
	}
	for _, m := range meaning {
		if got, err := Parse(m[1]); err != nil || got.String() != m[2] {
			t.Errorf("Parse(%q) = %q, %v, want %q", m[1], got, err, m[2])
		}
	}
	refused := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (4\\d\\d) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(refused) < 10 {
		t.Fatalf("found %d refused examples, want 10 or more", len(refused))
	}
	for _, m := range refused {
		if got, err := Parse(m[1]); err == nil {
			t.Errorf("Parse(%q) = %q, want an error", m[1], got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"/rtp/239.1.1.1:5000", "/udp/239.1.1.1%5000", "/rtp/239.1.1.1%3A5000%3Ffcc%3D1.2.3.4%3A5", "/rtp/[ff02::1%25eth0]:5",
		"/rtp/1.2.3.4:5@239.1.1.1~5/?r2h-ifname=e&fcc=a:1&fcc-type=huawei&fec=2&rejoin_time=3$%24%7Bx", "http://h/rtp/n.e:1",
		"/rtp/239.1.1.1?ifindex=3$a", "/rtp/[2001:db8::1]@[ff3e::1]", "*", "/rtp/239.1.1.1:5000%24x%zz", "/rtp/-", "/rtp/%00",
	} {
		f.Add(seed)
	}
	f.Fuzz(checkParse)
}

func checkParse(t *testing.T, in string) {
	got, err := Parse(in)
	if err != nil {
		var refused *StatusError
		if !errors.As(err, &refused) || refused.Code < 400 || refused.Code > 499 || refused.Reason == "" || strings.ContainsAny(refused.Reason, "\r\n") {
			t.Fatalf("Parse(%q): %#v, want a client error with one line of reason", in, err)
		}
		return
	}
	if got.Group == "" && got.Source == "" {
		if err := got.Spec.Validate(); err != nil {
			t.Fatalf("Parse(%q) = %+v: %v", in, got, err)
		}
	}
	again, err := Parse(got.String())
	if err != nil && len(got.String()) > MaxTarget {
		return // escapes have made it too long
	}
	if err != nil {
		t.Fatalf("Parse(%q) = %q, which does not parse: %v", in, got, err)
	}
	got.Ignored = nil
	if diff := cmp.Diff(got, again, comparer); diff != "" {
		t.Fatalf("Parse(%q) = %q, which parses to something else (-want +got):\n%s", in, got, diff)
	}
}

// fecPorts are ports of the media's own group.
func fecPorts(list ...uint16) (at []netip.AddrPort) {
	for _, port := range list {
		at = append(at, netip.AddrPortFrom(netip.Addr{}, port))
	}
	return at
}
