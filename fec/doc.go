// Package fec is forward error correction of RTP streams: what parity looks
// like on the wire, how lost datagrams come back from it, and how it is made.
//
//	media ──► store ──┐
//	                  ├─► group: numbers protected, how many are missing ─► solve ─► Repaired
//	parity ─► parse ──┘
//
// Two schemes are known. Both protect whole datagrams, RTP header included:
//
//   - operator Reed-Solomon (rswire.go, solve.go): k media and m parity datagrams,
//     any k of which bring back the others;
//   - SMPTE ST 2022-1, also known as Pro-MPEG CoP #3 (xorwire.go): each parity
//     datagram is the XOR of a row or of a column of a matrix of media.
//
// A Decoder holds the media that parity could still need and the parity of
// groups that are not whole. It is a machine without clock and sockets, and it
// does nothing but copy while nothing is missing. RSEncoder and XOREncoder are
// the other side.
//
// docs/repair.md describes both formats.
package fec
