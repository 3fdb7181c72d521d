package diagnose

import (
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// system is this machine. proc(5) and the kernel's ip-sysctl.rst describe what
// it reads.
type system struct{}

func (system) link(name string) Link {
	l := linkOf(name)
	if l.Exists != Yes {
		return l
	}
	// The stricter of the two applies (ip-sysctl: rp_filter).
	for _, scope := range []string{"all", name} {
		l.Filter = max(l.Filter, number0("/proc/sys/net/ipv4/conf/"+scope+"/rp_filter"))
	}
	return l
}

func (system) member(name string, group netip.Addr) Answer {
	if group.Is4() {
		b, err := os.ReadFile("/proc/net/igmp")
		if err != nil {
			return Unknown
		}
		return answer(listed4(string(b), name, group))
	}
	b, err := os.ReadFile("/proc/net/igmp6")
	if err != nil {
		return Unknown
	}
	return answer(listed6(string(b), name, group))
}

// listed4 looks a group up in /proc/net/igmp: a line for each interface ("2
// eth0 : 1 V3"), and below it, indented, one for each group, in hexadecimal as a
// number of the machine's byte order.
func listed4(text, name string, group netip.Addr) bool {
	b := group.As4()
	forms := []string{
		strings.ToUpper(hex.EncodeToString(b[:])),
		strings.ToUpper(hex.EncodeToString([]byte{b[3], b[2], b[1], b[0]})),
	}
	here := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 2:
		case !strings.HasPrefix(line, "\t"):
			here = strings.TrimSuffix(fields[1], ":") == name
		case here && slices.Contains(forms, fields[0]):
			return true
		}
	}
	return false
}

// listed6 looks a group up in /proc/net/igmp6: "2 eth0 ff15...01 1 00000004 0".
func listed6(text, name string, group netip.Addr) bool {
	b := group.As16()
	want := hex.EncodeToString(b[:])
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == name && f[2] == want {
			return true
		}
	}
	return false
}

func (system) pathDrops() (dropped int64, known bool) {
	b, err := os.ReadFile("/proc/net/netstat")
	if err != nil {
		return 0, false
	}
	return counter(string(b), "TcpExt", "IPReversePathFilter")
}

// counter reads /proc/net/netstat, which has a line of names and then one of
// values for each prefix.
func counter(text, prefix, name string) (value int64, known bool) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != prefix+":" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		at := slices.Index(names, name)
		if at < 0 || at >= len(fields) {
			return 0, false
		}
		value, err := strconv.ParseInt(fields[at], 10, 64)
		return value, err == nil
	}
	return 0, false
}

// number0 reads a file with one number, 0 where there is none.
func number0(file string) int {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}
