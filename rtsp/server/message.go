package server

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"zapcast/tune"
)

// Limits on what a client may send.
const (
	maxHeader = 8192 // bytes of request line and header
	maxURL    = 4096
	maxFields = 64
	maxBody   = 4096 // no request has a body that is read
	maxBuffer = maxHeader + maxBody
)

// A request is one RTSP request (RFC 2326 §6).
type request struct {
	method string
	url    string // as it was sent
	fields []field
	cseq   string
}

type field struct{ name, value string }

// get returns the value of the first field of that name, in any case.
func (r *request) get(name string) string {
	for _, f := range r.fields {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// errPartial says that a request is not whole yet.
var errPartial = errors.New("rtsp: request not whole yet")

// parseRequest takes one request off the beginning of b: n is its length, with
// its body. The error is errPartial, or a *tune.StatusError after which nothing
// that follows can be trusted. Line ends may lack their CR.
func parseRequest(b []byte) (r *request, n int, err error) {
	for n < len(b) && (b[n] == '\r' || b[n] == '\n') { // RFC 2616 §4.1
		n++
	}
	head, after, ok := cutHeader(b[n:])
	if len(head) > maxHeader {
		return nil, 0, tune.Refuse(statusHeaderTooLarge, "expected a header of at most %d bytes", maxHeader)
	}
	if !ok {
		if err := plausible(b[n:]); err != nil {
			return nil, 0, err
		}
		return nil, 0, errPartial
	}
	n += after
	if r, err = parseHeader(string(head)); err != nil {
		return nil, 0, err
	}
	body, err := r.bodyLength()
	if err != nil {
		return r, 0, err
	}
	if len(b)-n < body {
		return nil, 0, errPartial
	}
	return r, n + body, nil
}

// cutHeader finds the empty line; after is where the body begins. Where it is
// missing, head is all there is.
func cutHeader(b []byte) (head []byte, after int, ok bool) {
	for i := 0; ; {
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			return b, 0, false
		}
		i += j + 1
		switch rest := b[i:]; {
		case bytes.HasPrefix(rest, []byte("\n")):
			return b[:i], i + 1, true
		case bytes.HasPrefix(rest, []byte("\r\n")):
			return b[:i], i + 2, true
		}
	}
}

// plausible refuses the beginning of what can be no request, rather than wait
// for a line end that may never come.
func plausible(b []byte) error {
	for i, c := range b {
		switch {
		case c == ' ' && i > 0:
			return nil
		case c >= 'A' && c <= 'Z' || c == '_' && i > 0:
		default:
			return tune.Refuse(400, "expected an RTSP request, found %s", tune.Quote(string(b[:min(len(b), 16)])))
		}
		if i >= 32 {
			return tune.Refuse(400, "expected an RTSP request, found %s", tune.Quote(string(b[:16])))
		}
	}
	return nil
}

// parseHeader parses request line and header.
func parseHeader(head string) (*request, error) {
	lines := strings.Split(strings.TrimRight(head, "\r\n"), "\n")
	first := strings.Fields(lines[0])
	if len(first) != 3 {
		return nil, tune.Refuse(400, "expected METHOD URL RTSP/1.0, found %s", tune.Quote(lines[0]))
	}
	r := &request{method: first[0], url: first[1]}
	switch {
	case !strings.HasPrefix(first[2], "RTSP/"):
		return nil, tune.Refuse(400, "expected METHOD URL RTSP/1.0, found %s", tune.Quote(lines[0]))
	case first[2] != "RTSP/1.0":
		return nil, tune.Refuse(505, "expected RTSP/1.0, found %s", tune.Quote(first[2]))
	case len(r.url) > maxURL:
		return nil, tune.Refuse(414, "expected a URL of at most %d bytes, found %d", maxURL, len(r.url))
	case len(lines)-1 > maxFields:
		return nil, tune.Refuse(400, "expected at most %d header fields, found %d", maxFields, len(lines)-1)
	}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, tune.Refuse(400, "expected a header field NAME: VALUE, found %s", tune.Quote(line))
		}
		r.fields = append(r.fields, field{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	cseq, err := strconv.ParseUint(r.get("CSeq"), 10, 32)
	if err != nil {
		return nil, tune.Refuse(400, "expected a CSeq, a number, found %s", tune.Quote(r.get("CSeq")))
	}
	r.cseq = strconv.FormatUint(cseq, 10)
	return r, nil
}

// bodyLength is what Content-Length says.
func (r *request) bodyLength() (int, error) {
	said := ""
	for _, f := range r.fields {
		if !strings.EqualFold(f.name, "Content-Length") {
			continue
		}
		if said != "" && said != f.value {
			return 0, tune.Refuse(400, "expected one Content-Length, found %s and %s", tune.Quote(said), tune.Quote(f.value))
		}
		said = f.value
	}
	if said == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(said, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && n > maxBody:
		return 0, tune.Refuse(413, "expected a body of at most %d bytes, found %s", maxBody, tune.Quote(said))
	case err != nil:
		return 0, tune.Refuse(400, "expected a Content-Length, a number of bytes, found %s", tune.Quote(said))
	}
	return int(n), nil
}

const statusHeaderTooLarge = 431 // of HTTP (RFC 6585 §5); RTSP 1.0 has no word for it

// reasons are the words of RFC 2326 §7.1.1 for the codes in use.
var reasons = map[int]string{
	200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
	413: "Request Entity Too Large", 414: "Request-URI Too Large", 431: "Request Header Fields Too Large",
	451: "Parameter Not Understood", 453: "Not Enough Bandwidth", 454: "Session Not Found", 455: "Method Not Valid in This State",
	461: "Unsupported Transport", 500: "Internal Server Error", 501: "Not Implemented", 503: "Service Unavailable",
	505: "RTSP Version Not Supported", 551: "Option Not Supported",
}

// A response is built line by line.
type response struct{ strings.Builder }

// respond begins the response to r, which may be nil where none was understood.
func respond(r *request, code int) *response {
	w := &response{}
	reason := reasons[code]
	if reason == "" {
		reason = "Refused"
	}
	w.WriteString("RTSP/1.0 " + strconv.Itoa(code) + " " + reason + "\r\n")
	if r != nil {
		w.field("CSeq", r.cseq)
	}
	w.field("Server", serverName)
	return w
}

// field adds a header field.
func (w *response) field(name, value string) {
	w.WriteString(name + ": " + value + "\r\n")
}

// end returns the response, whole, with a body if there is one.
func (w *response) end(contentType, body string) []byte {
	if body != "" {
		w.field("Content-Type", contentType)
		w.field("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteString("\r\n" + body)
	return []byte(w.String())
}
