package httpout

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"zapcast/access"
	"zapcast/tune"
)

// errGone is a viewer who went away before the stream began.
var errGone = errors.New("the viewer has gone")

// refuse answers a request with err: status, reason as text, end of connection.
func (s *Server) refuse(config *Config, w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errGone) {
		panic(http.ErrAbortHandler) // net/http's way to close without an answer
	}
	var refused *tune.StatusError
	if !errors.As(err, &refused) {
		refused = &tune.StatusError{Code: http.StatusInternalServerError, Reason: err.Error()}
	}
	s.counters.refuse(refused.Code)
	config.Logger.Debug("request refused", "client", r.RemoteAddr, "target", r.RequestURI, "code", refused.Code, "err", refused.Reason)

	header := w.Header()
	header.Set("Connection", "close")
	header.Set("Cache-Control", "no-cache, no-store")
	answer(config, w, r, refused.Code, "text/plain; charset=utf-8", []byte(access.Redact(oneLine(refused.Reason))+"\n"))
}

// answer sends a whole answer that is no stream; to HEAD, its header.
func answer(config *Config, w http.ResponseWriter, r *http.Request, code int, contentType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(config.HeaderTimeout))
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

// rawAnswer is a refusal as it goes over the wire, where net/http has not begun.
func rawAnswer(refused *tune.StatusError, withBody bool) []byte {
	body := oneLine(refused.Reason) + "\n"
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nServer: %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
		refused.Code, http.StatusText(refused.Code), serverName, len(body))
	if !withBody {
		body = ""
	}
	return []byte(head + body)
}

// oneLine makes a single line of an error text.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool { return c == '\n' || c == '\r' }), "; ")
}
