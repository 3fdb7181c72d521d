package httpout

import (
	"net/http"
	"sync/atomic"
)

// counters counts what the server turned away, by reason.
type counters struct {
	badRequest, notFound, method, tooLarge atomic.Int64 // by status code
	limit, noStream, gone, pending, denied atomic.Int64 // counted where they happen
}

// refuse counts a refusal with a status code that says the reason by itself.
func (c *counters) refuse(code int) {
	switch code {
	case http.StatusBadRequest:
		c.badRequest.Add(1)
	case http.StatusNotFound:
		c.notFound.Add(1)
	case http.StatusMethodNotAllowed:
		c.method.Add(1)
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong:
		c.tooLarge.Add(1)
	}
}
