package httpout

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"zapcast/tune"
)

// A conn is a pending connection. It counts as long as it is not closed and
// not detached, and it refuses what is no HTTP before net/http sees it.
type conn struct {
	net.Conn
	server *Server
	addr   netip.Addr
	busy   bool // guarded by pending.mu
	begun  bool // the first bytes were looked at; belongs to the reader
}

// Read reads from the connection. Bytes that can be no request are answered
// with a reason, where net/http would wait for a line end or say only "400".
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 || c.begun {
		return n, err
	}
	c.begun = true
	if refused := checkRequestLine(p[:n]); refused != nil {
		c.server.counters.refuse(refused.Code)
		c.Write(rawAnswer(refused, !bytes.HasPrefix(p[:n], []byte("HEAD "))))
		return 0, io.EOF
	}
	return n, err
}

// Close closes the connection, which is pending no longer.
func (c *conn) Close() error {
	c.server.pending.remove(c)
	return c.Conn.Close()
}

// CloseWrite lets net/http send an answer in peace while the client still sends.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// detach returns the connection below, which is pending no longer.
func (c *conn) detach() net.Conn {
	c.server.pending.remove(c)
	return c.Conn
}

// checkRequestLine looks at the first bytes of a connection: a method in upper
// case, and if the first line is there, a target that is well escaped. What it
// lets pass, net/http judges.
func checkRequestLine(b []byte) *tune.StatusError {
	const tlsHandshake = 0x16 // content type of a TLS record (RFC 8446 §5.1)
	if b[0] == tlsHandshake {
		return &tune.StatusError{Code: http.StatusBadRequest, Reason: "expected an HTTP request, found a TLS handshake: this port speaks plain http"}
	}
	method, rest, ok := bytes.Cut(b, []byte(" "))
	if len(method) > len("UNSUBSCRIBE") || !ok && bytes.ContainsAny(b, "\r\n") {
		return &tune.StatusError{Code: http.StatusBadRequest, Reason: "expected an HTTP request, found " + tune.Quote(string(b[:min(len(b), 16)]))}
	}
	for _, c := range method {
		if (c < 'A' || 'Z' < c) && c != '-' {
			return &tune.StatusError{Code: http.StatusBadRequest, Reason: "expected an HTTP request, found " + tune.Quote(string(b[:min(len(b), 16)]))}
		}
	}
	target, _, ok := bytes.Cut(rest, []byte(" "))
	if !ok || len(target) > tune.MaxTarget {
		return nil
	}
	path, _, _ := bytes.Cut(target, []byte("?"))
	if _, err := url.PathUnescape(string(path)); err != nil {
		return &tune.StatusError{Code: http.StatusBadRequest, Reason: "expected two hexadecimal digits after each % of the path: " + err.Error()}
	}
	return nil
}
