package tune

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"zapcast/fcc"
	"zapcast/ingest"
)

// parseQuery reads the parameters that concern a stream. Where one is given
// twice, the first counts. Parameters that it does not know are not looked at.
func (t *Target) parseQuery(query string) error {
	values := make(map[string]string)
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key = unescape(key); knownParameters[key] {
			if _, given := values[key]; !given {
				values[key] = unescape(value)
			}
		}
	}
	if err := t.parseInterface(values); err != nil {
		return err
	}
	if err := t.parseFCC(values["fcc"], values["fcc-type"]); err != nil {
		return err
	}
	t.parseFEC(values["fec"])
	if v := values["rejoin_time"]; v != "" {
		if seconds, err := strconv.ParseUint(v, 10, 16); err == nil {
			t.RejoinTime = time.Duration(seconds) * time.Second
		} else {
			t.ignore("rejoin_time", v, "expected seconds from 0 to 65535")
		}
	}
	return nil
}

var knownParameters = map[string]bool{
	"r2h-ifname": true, "ifname": true, "ifindex": true,
	"fcc": true, "fcc-type": true, "fec": true, "rejoin_time": true,
}

// parseInterface takes the interface from r2h-ifname, else its alias ifname,
// else ifindex. Whether there is such an interface is Resolve's business.
func (t *Target) parseInterface(values map[string]string) error {
	for _, key := range []string{"r2h-ifname", "ifname"} {
		if name := values[key]; name != "" {
			t.Spec.Interface = name
			return nil
		}
	}
	if v := values["ifindex"]; v != "" {
		index, err := strconv.ParseInt(v, 10, 32)
		if err != nil || index <= 0 {
			return badRequest("unknown interface: expected the number of one in ifindex, found %s", Quote(v))
		}
		t.Spec.Interface, t.InterfaceIndex = "", int(index)
	}
	return nil
}

// parseFCC reads the fast-channel-change server. What only fast channel change
// would miss is left aside, so that the plain stream still plays; a missing
// port is a mistake worth telling, since nothing could ever answer.
func (t *Target) parseFCC(server, dialect string) error {
	if server == "" || server == "0" {
		return nil
	}
	if addr, err := netip.ParseAddr(server); err == nil && addr.Is6() || strings.HasPrefix(server, "[") {
		t.ignore("fcc", server, "fast channel change has no IPv6 form")
		return nil
	}
	host, port, ok := strings.Cut(server, ":")
	if !ok {
		return badRequest("expected fcc=HOST:PORT, found no port in %s", Quote(server))
	}
	if _, rest, err := parsePort(port, "port"); err != nil || rest != "" {
		return badRequest("expected fcc=HOST:PORT with a port from 1 to 65535, found %s", Quote(server))
	}
	addr, name, rest, err := parseHost(host, "host")
	if err != nil || rest != "" {
		t.ignore("fcc", server, "no such host")
		return nil
	}
	t.FCC = hostText(addr, name) + ":" + port
	switch {
	case slices.Contains(fcc.Dialects, dialect):
		t.FCCType = dialect
	case dialect != "" && dialect != "auto":
		t.ignore("fcc-type", dialect, "expected "+strings.Join(fcc.Dialects, ", ")+"; it is found out")
	}
	return nil
}

// FEC2022 in the place of a port stands for the two ports that SMPTE ST 2022-1
// recommends: the media's plus 2 for columns, plus 4 for rows.
const FEC2022 = "2022-1"

// parseFEC reads where parity comes: a port of the group, ADDR:PORT for another
// group, several of them between commas, or FEC2022. Without it the stream still
// plays, so that what is wrong is left aside; 0 and nothing mean none.
func (t *Target) parseFEC(v string) {
	if v == "" || v == "0" {
		return
	}
	var list []netip.AddrPort
	for item := range strings.SplitSeq(v, ",") {
		if item == FEC2022 {
			for _, offset := range []uint16{2, 4} {
				if port := t.Spec.Group.Port(); port <= 65535-offset {
					list = append(list, netip.AddrPortFrom(netip.Addr{}, port+offset))
				}
			}
			continue
		}
		port, err := strconv.ParseUint(item, 10, 16)
		at := netip.AddrPortFrom(netip.Addr{}, uint16(port))
		if err != nil {
			at, err = netip.ParseAddrPort(item)
		}
		if err != nil || at.Port() == 0 || at.Addr().IsValid() && !at.Addr().IsMulticast() {
			t.ignore("fec", v, "expected a port from 1 to 65535, GROUP:PORT or 2022-1, or several of them between commas")
			return
		}
		list = append(list, at)
	}
	list = distinct(list)
	if len(list) > ingest.MaxParity {
		t.ignore("fec", v, "expected at most "+strconv.Itoa(ingest.MaxParity)+" ports")
		return
	}
	t.FEC = list
}

// distinct leaves out what stands in a list already: a port that is named twice
// is listened to once.
func distinct(list []netip.AddrPort) []netip.AddrPort {
	var kept []netip.AddrPort
	for _, at := range list {
		if !slices.Contains(kept, at) {
			kept = append(kept, at)
		}
	}
	return kept
}

// ignore notes that a parameter plays no part.
func (t *Target) ignore(key, value, why string) {
	t.Ignored = append(t.Ignored, key+"="+Quote(value)+": "+why)
}
