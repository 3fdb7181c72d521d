// Package rtsp plays MPEG-TS from RTSP servers (RFC 2326), as the set-top boxes
// of IPTV operators do: live, time-shifted and catch-up. It is no client for
// cameras: there is one program and one stream for each URL.
//
//	url.go, message.go, sdp.go      what goes over the wire, bytes to structs and back
//	transport.go, auth.go, stun.go
//	machine.go, answers.go          the session: events and a time in, actions out
//	session.go, dial.go, ports.go   drives it with sockets, until it plays and for its end
//	frames.go, join.go, flow.go     the media: interleaved frames and UDP, as datagrams
//	client.go, source.go            Client opens a Source, an ingest.Session
//
// The handshake waits in the goroutine that opens the source. Once the session
// plays, its loop reads the connection without blocking, into memory that all
// sessions of the loop share, and takes it apart there: a frame is handed on as
// the bytes that the system wrote. Its payloads go through the same sorting and
// the same window as datagrams of a group.
//
// Servers are what they are: docs/rtsp.md lists the oddities that are borne.
package rtsp
