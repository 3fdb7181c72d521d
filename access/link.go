package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// signatureBytes is how much of the HMAC a link carries: 144 bits.
const signatureBytes = 18

var (
	errLink     = errors.New("expected a link as this server signs it, found another")
	errLinkLate = errors.New("the link has expired")
)

// Sign returns the value of LinkParameter that lets whoever has it play the
// stream of target, a request target without credentials, until expires:
// "EXPIRES.SIGNATURE" of the seconds since 1970 and an HMAC-SHA256.
func Sign(key, target string, expires time.Time) string {
	stamp := strconv.FormatInt(expires.Unix(), 36)
	return stamp + "." + base64.RawURLEncoding.EncodeToString(signature([]byte(key), target, stamp))
}

func signature(key []byte, target, stamp string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(stamp + "\n" + canonical(target)))
	return mac.Sum(nil)[:signatureBytes]
}

// canonical is the one way to write a target: decoded, without its label, and
// without the slashes around it.
func canonical(target string) string {
	path, query, _ := strings.Cut(target, "?")
	path, _, _ = strings.Cut(path, "$")
	query, _, _ = strings.Cut(query, "$")
	if u, err := url.PathUnescape(path); err == nil {
		path = u
	}
	return strings.Trim(path, "/") + "?" + query
}

func (g *Guard) checkLink(target, link string, now time.Time) error {
	stamp, sum, ok := strings.Cut(link, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if !ok || err != nil || len(g.linkKey) == 0 || !hmac.Equal(given, signature(g.linkKey, target, stamp)) {
		return errLink
	}
	seconds, err := strconv.ParseInt(stamp, 36, 64)
	if err != nil {
		return errLink
	}
	if now.Unix() >= seconds {
		return errLinkLate
	}
	return nil
}
