package rtsp

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// A challenge is what a server asks for with a 401: Basic (RFC 7617) or Digest
// (RFC 7616, and RFC 2069 without qop), of which the strongest is answered.
type challenge struct {
	scheme string // "basic" or "digest"
	realm  string
	nonce  string
	opaque string
	sha256 bool
	qop    bool // the server takes qop=auth
	stale  bool
	count  int // requests made with nonce
}

// strength orders challenges; 0: one that cannot be answered.
func (c *challenge) strength() int {
	switch {
	case c.scheme == "digest" && c.sha256:
		return 3
	case c.scheme == "digest":
		return 2
	case c.scheme == "basic":
		return 1
	}
	return 0
}

// parseChallenges returns the strongest challenge of WWW-Authenticate fields, of
// which each may hold several; nil where none can be answered.
func parseChallenges(values []string) (best *challenge) {
	for _, value := range values {
		for value != "" {
			var c *challenge
			c, value = parseChallenge(value)
			if c.strength() > 0 && (best == nil || c.strength() > best.strength()) {
				best = c
			}
		}
	}
	return best
}

// parseChallenge reads one challenge from the front of s: a scheme, a blank and
// name=value pairs, up to where the next scheme stands.
func parseChallenge(s string) (c *challenge, rest string) {
	s = strings.TrimLeft(s, " \t,")
	scheme, s, _ := strings.Cut(s, " ")
	c = &challenge{scheme: strings.ToLower(scheme)}
	for {
		s = strings.TrimLeft(s, " \t,")
		i := strings.IndexAny(s, "=, ")
		if i < 0 || s[i] != '=' { // a word without a value: the next scheme
			return c, s
		}
		name := strings.ToLower(s[:i])
		var value string
		value, s = cutValue(s[i+1:])
		switch name {
		case "realm":
			c.realm = value
		case "nonce":
			c.nonce = value
		case "opaque":
			c.opaque = value
		case "stale":
			c.stale = strings.EqualFold(value, "true")
		case "algorithm":
			switch strings.ToLower(value) {
			case "md5":
			case "sha-256":
				c.sha256 = true
			default:
				c.scheme = "digest " + value // which strength does not know
			}
		case "qop":
			for word := range strings.SplitSeq(value, ",") {
				c.qop = c.qop || strings.EqualFold(strings.TrimSpace(word), "auth")
			}
		}
	}
}

// cutValue reads a token or a quoted string.
func cutValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		if i := strings.IndexAny(s, ", "); i >= 0 {
			return s[:i], s[i:]
		}
		return s, ""
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:]
		case '\\':
			if i++; i == len(s) {
				return b.String(), ""
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// authorize returns the Authorization field for a request with the URL of its
// request line.
func (c *challenge) authorize(user, password, method, url string) string {
	if c.scheme == "basic" {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	hash, algorithm := md5Hex, ""
	if c.sha256 {
		hash, algorithm = sha256Hex, ", algorithm=SHA-256"
	}
	ha1 := hash(user + ":" + c.realm + ":" + password)
	ha2 := hash(method + ":" + url)
	text := fmt.Sprintf(`Digest username=%s, realm=%s, nonce=%s, uri=%s`, quoted(user), quoted(c.realm), quoted(c.nonce), quoted(url))
	if c.qop {
		c.count++
		nc, cnonce := fmt.Sprintf("%08x", c.count), rand.Text()[:16]
		text += fmt.Sprintf(`, response="%s", qop=auth, nc=%s, cnonce="%s"`,
			hash(ha1+":"+c.nonce+":"+nc+":"+cnonce+":auth:"+ha2), nc, cnonce)
	} else {
		text += fmt.Sprintf(`, response="%s"`, hash(ha1+":"+c.nonce+":"+ha2))
	}
	if c.opaque != "" {
		text += ", opaque=" + quoted(c.opaque)
	}
	return text + algorithm
}

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func md5Hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
