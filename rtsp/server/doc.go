// Package server serves channels over RTSP (RFC 2326): the same channels, by the
// same URLs, as the HTTP front.
//
//	server.go       accept, bound what is pending
//	conn.go         one connection until its stream starts: drives the machine
//	machine.go      the protocol: bytes in, actions out (message.go, url.go,
//	                transport.go, digest.go parse and write)
//	player.go       an interleaved one from then on: the engine's loop drives the machine
//	datagrams.go    one whose packets are datagrams: it goes on as before
//	rtp.go          RTP packets and RTCP reports
//
// A channel is one track of MPEG-TS in RTP (RFC 2250), seven TS packets each.
// What is interleaved in the RTSP connection is framed once for all who use the
// same channel numbers, and the engine owns such a connection from PLAY on: it
// sends, reads what the client says, and puts answers between two frames.
package server
