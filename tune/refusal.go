package tune

import (
	"fmt"
	"net/http"
	"strconv"
)

// A StatusError is a request that is refused: the HTTP status code (RTSP has
// taken over those that are used here) and a reason in one line, which says what
// was expected and what was found.
type StatusError struct {
	Code   int
	Reason string
}

// Error returns the reason.
func (e *StatusError) Error() string { return e.Reason }

// Refuse returns a *StatusError.
func Refuse(code int, format string, args ...any) error {
	return &StatusError{Code: code, Reason: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return Refuse(http.StatusBadRequest, format, args...)
}

// Quote quotes what was found, shortened, for the text of a refusal.
func Quote(s string) string {
	const most = 64
	if s == "" {
		return "nothing"
	}
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}
