// Package httpout serves channels over HTTP.
//
// The way of a request, and the files in that order:
//
//	listener.go, conn.go   accept, bound what is pending, refuse what is no HTTP
//	server.go, route.go    net/http, checks, the routes
//	(tune)                 the channel that a stream URL means
//	stream.go, slots.go    limit, fanout.Engine.Open, header, hand over
//	status.go              /api/status and /healthz
//
// A stream's connection leaves net/http as soon as the stream can start: it is
// hijacked and given to the engine with the response header, and nothing of the
// request is kept here but the viewer's slot under the limit. Until then the
// connection is pending, and pending connections are bounded in number, in
// total and for each client address.
//
// docs/urls.md is the grammar of URLs and docs/status.md names every field of the
// status.
package httpout
