package diagnose

import (
	"context"
	"net/netip"
	"strings"
	"time"
)

// A view is what Look wants to know of a machine. Its methods may block.
type view interface {
	link(name string) Link
	member(name string, group netip.Addr) Answer
	pathDrops() (dropped int64, known bool)
	wire(ctx context.Context, name string, group netip.AddrPort, d time.Duration) Wire
}

// Around fills in what the machine knows of the group on an interface, in the
// time that it is given: the state of things, and what comes in meanwhile.
func Around(ctx context.Context, f *Facts, name string, q *Queries, d time.Duration) {
	around(ctx, f, name, q, d, system{})
}

func around(ctx context.Context, f *Facts, name string, q *Queries, d time.Duration, v view) {
	f.Link = v.link(name)
	if !f.Group.IsValid() {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return
	}
	before, known := v.pathDrops()
	f.Wire = v.wire(ctx, name, f.Group, d)
	if after, _ := v.pathDrops(); known {
		f.Path = after - before
	}
	f.Member = v.member(name, f.Group.Addr())
	f.Queries = q.last(name, f.Group.Addr())
}

// GroupOf reads the group, and the sender where there is one, out of a
// multicast source as ingest.Status has it: "rtp://192.0.2.9@239.1.1.1:5000".
func GroupOf(source string) (group netip.AddrPort, sender netip.Addr) {
	_, rest, ok := strings.Cut(source, "://")
	if !ok {
		return group, sender
	}
	rest, _, _ = strings.Cut(rest, "?")
	if before, after, found := strings.Cut(rest, "@"); found {
		sender, _ = netip.ParseAddr(strings.Trim(before, "[]"))
		rest = after
	}
	group, err := netip.ParseAddrPort(rest)
	if err != nil || !group.Addr().IsMulticast() {
		return netip.AddrPort{}, netip.Addr{}
	}
	return group, sender
}
