package ingest

import (
	"errors"
	"fmt"
	"net/netip"
)

// FlowSpec names a multicast flow and how to join it.
type FlowSpec struct {
	Group     netip.AddrPort // multicast group and UDP port
	Source    netip.Addr     // sender of a source-specific join; zero value: any source
	Interface string         // name of the interface to join on; empty: the routing table's choice
}

// String returns the one spelling of the flow, fit to be the key under which
// its viewers share a membership: group and port, the sender before an @ where
// the join is source-specific, the interface after a % where one is asked for:
//
//	239.1.1.1:5000
//	198.51.100.1@239.1.1.1:5000
//	[2001:db8::1]@[ff3e::1]:5000
//	239.1.1.1:5000%eth0
//
// Two specs that Validate accepts have the same string only if they are equal.
func (s FlowSpec) String() string {
	text := s.Group.String()
	if s.Source.IsValid() {
		if s.Source.Is6() {
			text = "[" + s.Source.String() + "]@" + text
		} else {
			text = s.Source.String() + "@" + text
		}
	}
	if s.Interface != "" {
		text += "%" + s.Interface
	}
	return text
}

// Validate reports what keeps the spec from being joined at all. It asks for
// plain addresses: no IPv4 inside IPv6, no zone (the interface has a field of
// its own), so that a flow has one spelling. Whether the interface exists is
// for Receiver.Open to find out.
func (s FlowSpec) Validate() error {
	if err := s.validate(); err != nil {
		return fmt.Errorf("ingest: flow %s: %w", s, err)
	}
	return nil
}

func (s FlowSpec) validate() error {
	group := s.Group.Addr()
	switch {
	case !group.IsValid():
		return errors.New("no group address")
	case group.Is4In6():
		return fmt.Errorf("group %s: IPv4 address written as IPv6", group)
	case !group.IsMulticast():
		return fmt.Errorf("group %s is not multicast (224.0.0.0/4 or ff00::/8)", group)
	case group.Zone() != "":
		return fmt.Errorf("group %s carries a zone: name the interface instead", group)
	case s.Group.Port() == 0:
		return errors.New("port 0 is not within 1-65535")
	}

	source := s.Source
	switch {
	case !source.IsValid():
		return nil
	case source.Is4In6():
		return fmt.Errorf("source %s: IPv4 address written as IPv6", source)
	case source.Is4() != group.Is4():
		return fmt.Errorf("source %s and group %s are of different families", source, group)
	case source.IsMulticast() || source.IsUnspecified() || source == broadcast:
		return fmt.Errorf("source %s is not a unicast address", source)
	case source.Zone() != "":
		return fmt.Errorf("source %s carries a zone: name the interface instead", source)
	}
	return nil
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})
