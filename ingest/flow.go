package ingest

import "net/netip"

// FlowSpec names a multicast flow and how to join it.
type FlowSpec struct {
	Group     netip.AddrPort // multicast group and UDP port
	Source    netip.Addr     // sender of a source-specific join; zero value: any source
	Interface string         // name of the interface to join on; empty: the routing table's choice
}
