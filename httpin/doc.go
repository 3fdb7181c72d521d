// Package httpin takes a channel from an HTTP server that sends MPEG-TS: another
// relay, a tuner, a web camera.
//
//	GET ─► body ─► goroutine: whole TS packets into blocks ─► Drain ─► sink
//	                   └ waits for a free block, and the server with it
//
// The loop never touches the connection. Redirects are followed, certificates
// are checked, user and password of the URL are sent as Basic credentials.
//
// HLS and DASH are no streams in this sense, and are refused by what the server
// says they are.
package httpin
