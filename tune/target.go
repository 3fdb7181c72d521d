package tune

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"zapcast/ingest"
)

// A Target is a stream URL, taken apart. Everything that is not in Spec, Group,
// Source and InterfaceIndex leaves the channel as it is: two targets that
// differ in nothing else name the same one.
type Target struct {
	// Spec is the flow. Its Group always has a port; the address is the zero
	// Addr while Group below holds a name for it. Interface is the one that the
	// request asked for, if any.
	Spec ingest.FlowSpec

	// Group and Source are host names in the place of the addresses of Spec,
	// empty where the URL has a literal address. Resolve looks them up.
	Group, Source string

	// InterfaceIndex is the interface asked for by number; 0: none. It is only
	// set where Spec.Interface is empty.
	InterfaceIndex int

	Label string // what follows the "$", for display only

	FCC        string        // fast-channel-change server as "host:port"; empty: none
	FCCType    string        // its dialect, one of fcc.Dialects; empty: to be found out
	RejoinTime time.Duration // membership refresh asked for; 0: not asked for

	// FEC is where parity comes: up to ingest.MaxParity ports, of the group
	// itself where the address is not valid.
	FEC []netip.AddrPort

	// Ignored says in plain words which parameters were left aside, and why.
	Ignored []string
}

// String returns the target as the shortest URL path that parses to the same
// target, but for Ignored.
func (t Target) String() string {
	var b strings.Builder
	b.WriteString("/rtp/")
	if s := hostText(t.Spec.Source, t.Source); s != "" {
		b.WriteString(s + "@")
	}
	b.WriteString(hostText(t.Spec.Group.Addr(), t.Group))
	b.WriteString(":" + strconv.Itoa(int(t.Spec.Group.Port())))

	sep := byte('?')
	param := func(key, value string) {
		b.WriteByte(sep)
		b.WriteString(key + "=" + escape(value))
		sep = '&'
	}
	if t.Spec.Interface != "" {
		param("r2h-ifname", t.Spec.Interface)
	}
	if t.InterfaceIndex != 0 {
		param("ifindex", strconv.Itoa(t.InterfaceIndex))
	}
	if t.FCC != "" {
		param("fcc", t.FCC)
	}
	if t.FCC != "" && t.FCCType != "" {
		param("fcc-type", t.FCCType)
	}
	if value, ok := strings.CutPrefix(ingest.RepairConfig{Parity: t.FEC}.String(), "fec="); ok {
		param("fec", value)
	}
	if t.RejoinTime != 0 {
		param("rejoin_time", strconv.FormatInt(int64(t.RejoinTime/time.Second), 10))
	}
	if t.Label != "" {
		b.WriteString("$" + escape(t.Label))
	}
	return b.String()
}

// hostText spells an address the way a URL does, or the name that stands for it.
func hostText(addr netip.Addr, name string) string {
	switch {
	case name != "":
		return name
	case !addr.IsValid():
		return ""
	case addr.Is6():
		return "[" + addr.String() + "]"
	}
	return addr.String()
}

// escape percent-encodes every byte that could mean something in a URL.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; isNameByte(c) || c == ':' {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
