package rtsp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Requests and responses, RFC 2326 §6 and §7. Servers are read leniently: lines
// may end with LF alone, header names come in any case, a status line may lack
// its reason or have blanks too many. What is sent keeps to the letter.

const (
	// maxHeader and maxBody bound what is kept of one message, in bytes. An SDP
	// of one program has well under 2000.
	maxHeader = 16 << 10
	maxBody   = 64 << 10
)

// A message is a request or a response as it was received.
type message struct {
	method, url string // of a request; method is empty in a response
	status      int    // of a response
	reason      string
	header      header
	body        []byte // a part of what was parsed
}

type field struct{ name, value string }

// A header holds the fields in the order in which they came.
type header []field

// get returns the first value of a field, in any case; empty where there is none.
func (h header) get(name string) string {
	for _, f := range h {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// all returns every value of a field.
func (h header) all(name string) (values []string) {
	for _, f := range h {
		if strings.EqualFold(f.name, name) {
			values = append(values, f.value)
		}
	}
	return values
}

// cseq returns the sequence number, -1 where there is none.
func (h header) cseq() int {
	n, err := strconv.Atoi(h.get("CSeq"))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// parseMessage reads the message at the front of b. It returns how many bytes it
// takes up; 0: b does not hold all of it yet.
func parseMessage(b []byte) (m message, n int, err error) {
	lead := 0
	for lead < len(b) && (b[lead] == '\r' || b[lead] == '\n') {
		lead++
	}
	end := headerEnd(b[lead:])
	if end < 0 || end > maxHeader {
		if len(b)-lead > maxHeader {
			return message{}, 0, fmt.Errorf("header longer than %d bytes", maxHeader)
		}
		return message{}, 0, nil
	}
	first, rest, _ := strings.Cut(string(b[lead:lead+end]), "\n")
	if err := m.parseStart(strings.TrimRight(first, "\r")); err != nil {
		return message{}, 0, err
	}
	m.parseFields(rest)
	n = lead + end
	if text := m.header.get("Content-Length"); text != "" {
		length, err := strconv.ParseUint(text, 10, 63)
		switch {
		case err != nil:
			return message{}, 0, fmt.Errorf("expected a number of bytes in Content-Length, found %s", quote(text))
		case length > maxBody:
			return message{}, 0, fmt.Errorf("body of %d bytes, expected at most %d", length, maxBody)
		case len(b) < n+int(length):
			return message{}, 0, nil
		}
		m.body = b[n : n+int(length)]
		n += int(length)
	}
	return m, n, nil
}

// headerEnd is the offset behind the blank line that ends a header, or -1.
func headerEnd(b []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return -1
		}
		from += i + 1
		switch {
		case bytes.HasPrefix(b[from:], []byte("\n")):
			return from + 1
		case bytes.HasPrefix(b[from:], []byte("\r\n")):
			return from + 2
		}
	}
}

var errStart = errors.New("neither a request nor a response of RTSP/1.0")

func (m *message) parseStart(line string) error {
	words := strings.Fields(line)
	if len(words) >= 2 && hasPrefixFold(words[0], "RTSP/1.") {
		status, err := strconv.ParseUint(words[1], 10, 16)
		if err != nil || status < 100 || status > 999 {
			return fmt.Errorf("expected a status of three digits, found %s", quote(line))
		}
		m.status = int(status)
		m.reason = strings.Join(words[2:], " ")
		return nil
	}
	if len(words) == 3 && hasPrefixFold(words[2], "RTSP/1.") {
		m.method, m.url = words[0], words[1]
		return nil
	}
	return fmt.Errorf("%w: %s", errStart, quote(line))
}

// parseFields reads the header's lines. A line that begins with a blank goes on
// with the one before (RFC 2326 §4.2, HTTP/1.1); one without a colon is skipped.
func (m *message) parseFields(lines string) {
	for line := range strings.Lines(lines) {
		text := strings.TrimSpace(line)
		if last := len(m.header) - 1; last >= 0 && text != "" && (line[0] == ' ' || line[0] == '\t') {
			m.header[last].value += " " + text
			continue
		}
		if name, value, ok := strings.Cut(text, ":"); ok {
			m.header = append(m.header, field{strings.TrimSpace(name), strings.TrimSpace(value)})
		}
	}
}

// appendRequest appends a request.
func appendRequest(b []byte, method, url string, h header) []byte {
	b = append(b, method+" "+url+" RTSP/1.0\r\n"...)
	return appendHeader(b, h)
}

// appendResponse appends a response without a body.
func appendResponse(b []byte, status int, reason string, h header) []byte {
	b = append(b, "RTSP/1.0 "+strconv.Itoa(status)+" "+reason+"\r\n"...)
	return appendHeader(b, h)
}

func appendHeader(b []byte, h header) []byte {
	for _, f := range h {
		b = append(b, f.name+": "+f.value+"\r\n"...)
	}
	return append(b, "\r\n"...)
}
