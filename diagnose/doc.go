// Package diagnose finds out why a channel is black, and says so in sentences.
//
// Look gathers what the machine knows while somebody tries to watch: the state
// of the interface, the kernel's list of memberships, the queries of the
// network's IGMP and MLD queriers (Queries), what of the group comes in by the
// interface, before a firewall or the reverse-path filter has seen it, and what
// the channel's source counts meanwhile. Explain makes findings of it, the most
// likely cause first. It is a function of its facts alone.
//
// Looking needs Linux, and CAP_NET_RAW for the queries and the wire. What cannot
// be looked at is left out, or said to be unknown.
package diagnose
