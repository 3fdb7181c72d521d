// Package wire turns the messages of fast channel change (FCC) into structs and
// back. It is pure: no socket, no clock. Both sides use it: what a client
// appends a server parses, and the other way round.
//
//	dialect       what it follows                             messages
//	telecom       telecom, ZTE, FiberHome; docs/fcc.md        Telecom…
//	huawei        Huawei, as values and as TLVs; docs/fcc.md  Huawei…
//	rams          RFC 6285, RFC 4588, RFC 4585                RAMS…, SplitRTX, NACK
//
// All of them are RTCP transport-layer feedback (RFC 4585 §6.1), but for
// Huawei's punch in the encoding as values:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|V=2|P|   FMT   |     PT=205    |   length in words, less one   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                          sender SSRC                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|            media SSRC (operators: IPv4 of the group)          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// FMT 4, 5, 6 and 8 mean different things in different dialects: a Parse
// function is only to be asked in a conversation of its dialect. What clients
// say can be told apart without one: ParseClient.
//
// Next takes a datagram apart, the Parse functions copy what they return, and
// the Append methods extend a slice. Offsets count from the packet's first
// byte. Every length, count and depth of foreign input is bounded.
package wire
