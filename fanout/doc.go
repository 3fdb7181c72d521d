// Package fanout carries each channel from its source to all its viewers.
//
// A channel is one ordered chain of batches; everything else is a view of it:
//
//	source ─► Append: scan, store ─► chain of batches ─► cursor of each viewer ─► socket
//	               │                      └ history: from the last random-access point on
//	               └ one viewer who is up to date: straight from the receive buffer
//
// The data plane is a few loops. A channel lives in one loop with all its
// viewers, so nothing on the packet path is locked. Everything in this package
// whose comment does not say otherwise belongs to its loop's goroutine. The
// control plane (Engine, Lease) is ordinary Go that posts functions to a loop.
//
// Stream positions are bytes of TS since the channel was opened, so a TS packet
// always begins at a multiple of 188. A batch is a piece of the stream, either
// in memory (one viewer or none: kept for history, or for a viewer who lags) or
// in a memfd (two viewers and more: written once, sent to each with sendfile).
// What has been handed to sendfile is never written again.
//
// The package knows no protocol: sources come from package ingest, the response
// header from whoever calls Attach.
package fanout
