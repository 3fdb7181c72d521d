// Package fcc is the client of fast channel change: it asks a server of the
// operator for a burst by unicast that begins at a recent random-access point,
// and lets it lead into the multicast.
//
//	request ─► server          (and the join, at once or when the server says so)
//	burst   ─► window ─► chain                                    source.go
//	group   ─► kept until the burst has reached it ─► window       seam.go
//	termination ─► server
//
// Burst and multicast carry the same RTP sequence numbers, so the burst is the
// earlier part of one sequence: both go through the window of the channel's one
// ingest.Multicast. Whichever of the two first brings a point at which a decoder
// can start is used; a server that is slow or dead never makes a start later
// than the group alone would.
//
//	machine.go   the conversation with a server: events and times in, actions
//	             out; no socket, no clock
//	dialect.go   what the dialects differ in: telecom.go, huawei.go, rams.go
//	book.go      what was learned of each server, shared by all sources
//	source.go    sockets and times for the machine; an ingest.Source
//
// The formats are in package fcc/wire, the tables in docs/fcc.md.
package fcc
