//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// httpBody takes the bytes of one HTTP response and hands its body, with any
// chunk framing removed, to a verifier.
type httpBody struct {
	v       *verifier
	head    []byte // header so far; nil once it is complete
	inBody  bool
	chunked bool
	status  int
	left    int64  // chunked: bytes left in this chunk
	line    []byte // chunked: a size line that is not whole yet
	crlf    bool   // chunked: the line end after a chunk's data comes next
	ended   bool   // chunked: last chunk seen
}

// Limits on what a server may send ahead of the stream.
const (
	maxHeader    = 16 << 10
	maxChunkLine = 1 << 10
)

var (
	errHeaderTooLong = errors.New("header too long")
	errChunk         = errors.New("bad chunk framing")
)

func (h *httpBody) feed(b []byte) (out []byte, err error) {
	if !h.inBody {
		h.head = append(h.head, b...)
		i := bytes.Index(h.head, []byte("\r\n\r\n"))
		if i > maxHeader || i < 0 && len(h.head) > maxHeader+3 {
			return nil, errHeaderTooLong
		}
		if i < 0 {
			return nil, nil
		}
		if err := h.header(string(h.head[:i])); err != nil {
			return nil, err
		}
		b = append([]byte(nil), h.head[i+4:]...)
		h.head, h.inBody = nil, true
	}
	if !h.chunked {
		h.v.feed(b)
		return nil, nil
	}
	return nil, h.chunks(b)
}

func (h *httpBody) header(text string) error {
	lines := strings.Split(text, "\r\n")
	f := strings.Fields(lines[0])
	if len(f) < 2 || !strings.HasPrefix(f[0], "HTTP/") {
		return fmt.Errorf("not an HTTP response: %.60q", lines[0])
	}
	h.status, _ = strconv.Atoi(f[1])
	if h.status != 200 && h.status != 206 {
		return fmt.Errorf("HTTP status %.60q", lines[0])
	}
	for _, l := range lines[1:] {
		k, v, _ := strings.Cut(l, ":")
		if strings.EqualFold(k, "Transfer-Encoding") && strings.Contains(strings.ToLower(v), "chunked") {
			h.chunked = true
		}
	}
	return nil
}

func (h *httpBody) chunks(b []byte) error {
	for len(b) > 0 && !h.ended {
		if h.left > 0 {
			n := min(h.left, int64(len(b)))
			h.v.feed(b[:n])
			b = b[n:]
			if h.left -= n; h.left == 0 {
				h.crlf = true
			}
			continue
		}
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			h.line = append(h.line, b...)
			if len(h.line) > maxChunkLine {
				return errChunk
			}
			return nil
		}
		line := append(h.line, b[:i]...)
		if len(line) > maxChunkLine {
			return errChunk
		}
		h.line = h.line[:0]
		b = b[i+1:]
		text := strings.TrimSuffix(string(line), "\r")
		if h.crlf {
			if text != "" {
				return errChunk
			}
			h.crlf = false
			continue
		}
		size, _, _ := strings.Cut(text, ";")
		n, err := strconv.ParseInt(strings.TrimSpace(size), 16, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("bad chunk size %.20q", text)
		}
		h.left, h.ended = n, n == 0
	}
	return nil
}
