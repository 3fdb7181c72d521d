package rtsp

import (
	"errors"
	"fmt"
	"syscall"
)

// An Error is a session that did not come about, or broke off, as a sentence for
// the viewer.
type Error struct {
	// Status is the server's answer, a status code of RFC 2326 §7.1.1; 408 where
	// it did not answer in time; 401 also where credentials are missing; 0 where
	// there was no answer to speak of.
	Status int
	Reason string

	// Location is where a redirect leads out of RTSP, "http://…" or "https://…";
	// empty with every other error. That server was not asked.
	Location string
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

// Status codes that mean something to a session.
const (
	statusBadRequest           = 400
	statusUnauthorized         = 401
	statusForbidden            = 403
	statusNotFound             = 404
	statusNotAllowed           = 405
	statusTimeout              = 408
	statusNoSession            = 454
	statusUnsupportedTransport = 461
	statusNotImplemented       = 501
	statusOptionNotSupported   = 551
)

func fail(status int, format string, args ...any) *Error {
	return &Error{Status: status, Reason: fmt.Sprintf(format, args...)}
}

// isReset reports whether the other side broke a connection off: some servers
// end every session like that.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
