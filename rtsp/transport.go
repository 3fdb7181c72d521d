package rtsp

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The ways in which media can come, as a configuration names them.
const (
	OverTCP       = "tcp"
	OverUDP       = "udp"
	OverMulticast = "multicast"
)

// offers are the alternatives for one SETUP, by way, in the order of ways. The
// spellings are those that operators' set-top boxes send; docs/rtsp.md lists
// them. ports are the client's RTP and RTCP port, 0: there are none. client is
// its address where the server wants to be told, as servers of ZTE do. With
// standard, only what RFC 2326 knows is offered.
func offers(ways []string, ports [2]uint16, client string, standard bool) (list []string) {
	for _, way := range ways {
		switch {
		case way == OverTCP:
			list = append(list,
				"MP2T/RTP/TCP;unicast;interleaved=0-1",
				"MP2T/TCP;unicast;interleaved=0-1",
				"RTP/AVP/TCP;unicast;interleaved=0-1")
		case way == OverUDP && ports[0] != 0:
			tail := fmt.Sprintf(";unicast;client_port=%d-%d", ports[0], ports[1])
			if client != "" {
				tail = fmt.Sprintf(";unicast;client_address=%s;client_port=%d-%d;mode=PLAY", client, ports[0], ports[1])
			}
			list = append(list, "MP2T/RTP/UDP"+tail, "MP2T/UDP"+tail, "RTP/AVP"+tail)
		case way == OverMulticast:
			list = append(list, "MP2T/RTP/UDP;multicast", "MP2T/UDP;multicast", "RTP/AVP;multicast")
		}
	}
	if standard {
		list = slices.DeleteFunc(list, func(offer string) bool { return !strings.HasPrefix(offer, "RTP/") })
	}
	return list
}

// A transport is what the server chose.
type transport struct {
	way      string
	raw      bool      // bare TS is announced; what comes decides
	channels [2]uint8  // interleaved, media and control
	source   string    // address that media comes from; empty: the server's
	server   [2]uint16 // the server's ports; 0: not told
	group    string    // multicast: destination
	port     uint16    // multicast: its port
}

// parseTransport reads the Transport field of a response. Of several
// alternatives the first counts.
func parseTransport(value string) (t transport, err error) {
	first, _, _ := strings.Cut(value, ",")
	t.channels = [2]uint8{0, 1}
	t.way = OverUDP
	rtp, bare := false, false
	for i, part := range strings.Split(first, ";") {
		name, arg, _ := strings.Cut(strings.TrimSpace(part), "=")
		arg = strings.Trim(strings.TrimSpace(arg), `"`)
		name = strings.ToLower(strings.TrimSpace(name))
		if i == 0 {
			if strings.Contains(name, "tcp") {
				t.way = OverTCP
			}
			rtp = strings.Contains(name, "mp2t/rtp") || strings.Contains(name, "rtp/")
			bare = strings.Contains(name, "mp2t")
			continue
		}
		ok := true
		switch name {
		case "interleaved":
			t.way = OverTCP
			t.channels, ok = parsePair[uint8](arg, 8)
		case "multicast":
			t.way = OverMulticast
		case "source":
			t.source = arg
		case "destination":
			t.group = arg
		case "server_port":
			t.server, ok = parsePair[uint16](arg, 16)
		case "port":
			var pair [2]uint16
			pair, ok = parsePair[uint16](arg, 16)
			t.port = pair[0]
		}
		if !ok {
			return t, fmt.Errorf("expected numbers in the server's choice of transport, found %s", quote(part))
		}
	}
	t.raw = bare && !rtp
	return t, nil
}

// parsePair reads "a-b", or "a" alone, which stands for a and the next.
func parsePair[T uint8 | uint16](text string, bits int) (pair [2]T, ok bool) {
	low, high, both := strings.Cut(text, "-")
	a, err := strconv.ParseUint(strings.TrimSpace(low), 10, bits)
	if err != nil {
		return pair, false
	}
	b := a + 1
	if both {
		if b, err = strconv.ParseUint(strings.TrimSpace(high), 10, bits); err != nil {
			return pair, false
		}
	}
	return [2]T{T(a), T(b)}, true
}

// mediaSource is the address that media comes from, and punches go to.
func (t transport) mediaSource(server netip.Addr) netip.Addr {
	if addr, err := netip.ParseAddr(strings.Trim(t.source, "[]")); err == nil && !addr.IsUnspecified() {
		return addr.Unmap()
	}
	return server
}
