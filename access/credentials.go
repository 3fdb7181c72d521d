package access

import (
	"net/http"
	"net/url"
	"strings"
)

const (
	// Parameter is the name of the query parameter and of the cookie that
	// carry a token.
	Parameter = "r2h-token"

	// LinkParameter is the name of the query parameter of a signed link.
	LinkParameter = "zapcast-link"

	// agentPrefix begins the token in a User-Agent: players let one set that
	// who let one set nothing else.
	agentPrefix = "R2HTOKEN/"

	// maxCredentials bounds how many strings of one request are compared.
	maxCredentials = 16
)

// Credentials are what a request brings.
type Credentials struct {
	Secrets []string // every reading of what may be a token, the likeliest first
	InQuery int      // how many of them are from the query
	Link    string   // of a signed link
}

// Read takes the credentials of a request out of its target and header. clean
// is the target without them: whatever answers the request never sees them.
func Read(target string, h http.Header) (c Credentials, clean string) {
	clean = c.query(target)
	c.InQuery = len(c.Secrets)
	for _, line := range h["Cookie"] {
		for part := range strings.SplitSeq(line, ";") {
			if value, ok := strings.CutPrefix(strings.TrimSpace(part), Parameter+"="); ok {
				c.add(strings.Trim(value, `"`))
			}
		}
	}
	if kind, value, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(kind, "Bearer") {
		c.add(strings.TrimSpace(value))
	}
	if agent := h.Get("User-Agent"); agent != "" {
		if _, value, ok := strings.Cut(agent, agentPrefix); ok {
			c.add(value)
			if first, _, more := strings.Cut(value, " "); more {
				c.add(first)
			}
		}
	}
	return c, clean
}

// add takes a string that may be a token, percent-encoded or as it is.
func (c *Credentials) add(s string) {
	if s == "" {
		return
	}
	readings := []string{s}
	if u, err := url.PathUnescape(s); err == nil && u != s {
		readings = []string{u, s}
	}
	if u, err := url.QueryUnescape(s); err == nil && strings.Contains(s, "+") {
		readings = append(readings, u)
	}
	for _, r := range readings {
		if len(c.Secrets) < maxCredentials {
			c.Secrets = append(c.Secrets, r)
		}
	}
}

// query takes the parameters that are ours out of a request target. A label may
// stand behind them ("?r2h-token=x$HD"), which stays.
func (c *Credentials) query(target string) (clean string) {
	path, query, ok := strings.Cut(target, "?")
	if !ok || !strings.Contains(query, Parameter) && !strings.Contains(query, LinkParameter) {
		return target
	}
	var kept []string
	label := ""
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key != Parameter && key != LinkParameter {
			kept = append(kept, pair)
			continue
		}
		bare := value
		if i := strings.LastIndexByte(value, '$'); i >= 0 {
			bare, label = value[:i], value[i:]
		}
		if key == LinkParameter {
			c.Link = bare
			continue
		}
		c.add(bare)
		if bare != value {
			c.add(value)
		}
	}
	clean = path
	if len(kept) > 0 {
		clean += "?" + strings.Join(kept, "&")
	}
	return clean + label
}
