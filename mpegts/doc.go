// Package mpegts looks at MPEG transport streams (ISO/IEC 13818-1) on their
// way through, without taking them apart.
//
//	datagram ─► Whole ──yes──► Scanner.Scan ─► where can a viewer start, and
//	              │ no            (PAT, PMT,   with which tables
//	              ▼                video PID)
//	            Runs: whole packets salvaged from a damaged or framed datagram
//
// Packet is a view of one transport packet. Scanner follows one live stream and
// knows its newest random-access point. Restamper and Measure serve endless
// playout of a file; Continuity checks counters.
//
// No function keeps a slice that it was given, and the packet path neither
// allocates nor locks. Nothing here decodes pictures, follows service
// information other than PAT and PMT, or descrambles.
package mpegts
