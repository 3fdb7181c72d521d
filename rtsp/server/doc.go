// Package server serves channels over RTSP (RFC 2326): the same channels, by the
// same URLs, as the HTTP front.
//
//	server.go       accept, bound what is pending
//	conn.go         one connection: a goroutine drives the machine
//	machine.go      the protocol: bytes in, actions out (message.go, url.go,
//	                transport.go, digest.go parse and write)
//	start.go        PLAY opens the channel; from then on
//	player.go       the engine's loop drives the machine, where packets are interleaved
//	datagrams.go    or the goroutine does, and packets are datagrams to the client
//	relay.go        or to a group, for all clients who ask for that
//	rtp.go          RTP packets and RTCP reports
//
// A channel is one track of MPEG-TS in RTP (RFC 2250), seven TS packets each.
// What is interleaved in the RTSP connection is framed once for all who use the
// same channel numbers, and the engine owns such a connection from PLAY on: it
// sends, reads what the client says, and puts answers between two frames.
package server
