// Package playout plays MPEG-TS files out as a live stream: as RTP (RFC 3550,
// RFC 2250) or bare TS over UDP, to multicast groups or to single hosts.
//
//	file ─► packets ─► timeline ─► packer ─► line ─► queue ─► sockets
//	                   when each   7 to a    drop,   until    the same to each
//	                   is due, by  datagram  delay   it is    destination
//	                   the PCR               …       due
//
// Everything runs in the goroutine of Player.Run: each stage calls the next,
// and the last one sleeps until it is time. File, timeline, packer, line and
// queue know neither sockets nor clocks.
//
// A file is read as a stream, once per pass, whatever its size. Passes and
// files follow each other without a seam: PCR, PTS, DTS and continuity counters
// go on as if there were one file without an end. Nothing else in the packets
// is changed, and none is added or left out.
package playout
