package tune

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"zapcast/ingest"
)

// resolveTimeout bounds the look-up of the names in a URL. A viewer who zaps
// has gone on by then.
const resolveTimeout = 3 * time.Second

// A Resolver looks up what a URL names. Its fields are functions so that tests
// need neither a name server nor particular interfaces.
type Resolver struct {
	Lookup           func(ctx context.Context, network, host string) ([]netip.Addr, error)
	InterfaceByName  func(name string) (*net.Interface, error)
	InterfaceByIndex func(index int) (*net.Interface, error)
}

// System returns the resolver that asks the system.
func System() Resolver {
	return Resolver{net.DefaultResolver.LookupNetIP, net.InterfaceByName, net.InterfaceByIndex}
}

// flow returns the flow that t means: names looked up, and the interface taken
// from the request, else from the configuration. Only the request's is checked
// here; it is answered 400 because the request is at fault, where a configured
// interface that is missing is ours.
func (r Resolver) flow(ctx context.Context, t Target, configured string) (ingest.FlowSpec, error) {
	spec := t.Spec
	switch {
	case spec.Interface != "":
		if _, err := r.InterfaceByName(spec.Interface); err != nil {
			return spec, badRequest("unknown interface %s", Quote(spec.Interface))
		}
	case t.InterfaceIndex != 0:
		ifi, err := r.InterfaceByIndex(t.InterfaceIndex)
		if err != nil {
			return spec, badRequest("unknown interface: none has the number %d", t.InterfaceIndex)
		}
		spec.Interface = ifi.Name
	default:
		spec.Interface = configured
	}
	if t.Group == "" && t.Source == "" {
		return spec, nil
	}

	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	groups, err := r.addresses(ctx, spec.Group.Addr(), t.Group)
	if err != nil {
		return spec, err
	}
	sources := []netip.Addr{{}}
	if t.Source != "" || spec.Source.IsValid() {
		if sources, err = r.addresses(ctx, spec.Source, t.Source); err != nil {
			return spec, err
		}
	}
	// A name may have addresses of both families: the first pair that fits.
	var refused error
	for _, group := range groups {
		for _, source := range sources {
			spec.Group, spec.Source = netip.AddrPortFrom(group, spec.Group.Port()), source
			if err := checkFlow(spec); err == nil {
				return spec, nil
			} else if refused == nil {
				refused = err
			}
		}
	}
	return spec, refused
}

// server returns the IPv4 address and port of "host:port".
func (r Resolver) server(ctx context.Context, hostPort string) (netip.AddrPort, error) {
	if at, err := netip.ParseAddrPort(hostPort); err == nil {
		return at, nil
	}
	host, text, _ := strings.Cut(hostPort, ":")
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addrs, err := r.Lookup(ctx, "ip4", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for _, a := range addrs {
		if a.Unmap().Is4() {
			return netip.AddrPortFrom(a.Unmap(), uint16(port)), nil
		}
	}
	return netip.AddrPort{}, errors.New("it has no IPv4 address")
}

// addresses returns the addresses of name, or the literal one where there is no name.
func (r Resolver) addresses(ctx context.Context, literal netip.Addr, name string) ([]netip.Addr, error) {
	if name == "" {
		return []netip.Addr{literal}, nil
	}
	addrs, err := r.Lookup(ctx, "ip", name)
	if err != nil || len(addrs) == 0 {
		return nil, badRequest("cannot resolve %s: expected an address or a name that has one", Quote(name))
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap().WithZone("")
	}
	return addrs, nil
}

// checkFlow refuses a flow that could never be joined.
func checkFlow(spec ingest.FlowSpec) error {
	if err := spec.Validate(); err != nil {
		return badRequest("%s", strings.TrimPrefix(err.Error(), "ingest: "))
	}
	return nil
}
