// Package ingest brings streams in: what a network sends, it hands on as whole
// TS packets in order.
//
// The way of a datagram through a multicast source:
//
//	Receiver ─► Flow.Read ─► Classify ─┬─ RTP ─► PeekRTP ─► Window ─┬─► Sink.Append
//	(sockets)   (a batch)              ├─ bare TS ──────────────────┘   (a batch)
//	                                   └─ all else: counted, dropped
//
// A Source is one upstream, driven by one loop. Multicast is the Source of a
// group; other protocols have theirs in packages of their own and put packets
// in order with the same Window. A Receiver takes datagrams from the kernel for
// all sources of a loop; which system calls it uses for that, nothing above
// Flow can tell.
//
// Memory belongs to whoever is lower: a datagram is valid until the next Read of
// its receiver, what a Source hands to its Sink until Append returns. A packet
// in order is never copied; one that has to wait is, once.
//
// Which datagram is what shows in its own bytes, never in the address that was
// asked for: RTP (RFC 3550) with MPEG-TS in it (RFC 2250), or MPEG-TS alone.
// Elementary streams in RTP are not handled.
package ingest
