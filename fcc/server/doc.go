// Package server is the operator's half of fast channel change: it keeps the
// newest part of each channel and sends it by unicast to whoever has just
// zapped there, from a random-access point and faster than the channel runs,
// until the multicast has taken over.
//
//	group ─► history                     packets with their RTP headers      history.go
//	request ─► answer, burst ─► sync notice ─► termination                   machine.go, session.go
//	NACK ─► packets again                the same history                    retransmit.go
//
// One machine holds all of it: datagrams and times in, datagrams and joins out;
// no socket, no clock, no goroutine. What the dialects differ in is in
// dialect.go, who may have how much in client.go. Server drives the machine.
//
// Bursts have the sequence numbers of the group, so that a client can join the
// two; in RAMS they are retransmissions (RFC 4588), which carry them.
//
// The messages are in package fcc/wire; docs/fccd.md says what is exposed to
// whom.
package server
