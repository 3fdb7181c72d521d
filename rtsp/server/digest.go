package server

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"strings"
)

// realm is what clients show to who is asked for a password.
const realm = "zapcast"

// A digest asks one client for a user's password (RFC 2617 §3, in the form
// without qop that every player knows).
type digest struct {
	user, password string
	nonce          string
	failures       int
}

// newDigest returns nil where no user is set: nobody is asked.
func newDigest(user, password string) *digest {
	if user == "" {
		return nil
	}
	var nonce [16]byte
	rand.Read(nonce[:])
	return &digest{user: user, password: password, nonce: hex.EncodeToString(nonce[:])}
}

// challenge returns the value of WWW-Authenticate. SHA-256 is not offered beside
// MD5: ffmpeg takes the last offer for its own, and answers it with MD5.
func (d *digest) challenge() string {
	return `Digest realm="` + realm + `", nonce="` + d.nonce + `"`
}

// allows reports whether r proves that its sender knows the password.
func (d *digest) allows(r *request) bool {
	p := parseAuthorization(r.get("Authorization"))
	if p == nil || p["username"] != d.user || p["realm"] != realm || p["nonce"] != d.nonce || !sameChannel(p["uri"], r.url) {
		return false
	}
	hash := func(s string) string {
		sum := md5.Sum([]byte(s))
		return hex.EncodeToString(sum[:])
	}
	want := hash(hash(d.user+":"+realm+":"+d.password) + ":" + d.nonce + ":" + hash(r.method+":"+p["uri"]))
	return subtle.ConstantTimeCompare([]byte(want), []byte(strings.ToLower(p["response"]))) == 1
}

// sameChannel reports whether two URLs name the same channel, the first of which
// may leave out scheme and host. Players sign the channel's URL where they ask for
// its track, or leave out a final slash.
func sameChannel(a, b string) bool {
	if a == b {
		return true
	}
	if strings.HasPrefix(a, "/") {
		a = "rtsp://h" + a
	}
	p, err := parsePlace(a)
	q, err2 := parsePlace(b)
	return err == nil && err2 == nil && p.path == q.path
}

// parseAuthorization returns the parameters of a Digest authorization, by lower
// case name; nil if it is none.
func parseAuthorization(s string) map[string]string {
	scheme, rest, _ := strings.Cut(s, " ")
	if !strings.EqualFold(scheme, "Digest") {
		return nil
	}
	p := map[string]string{}
	for rest = strings.TrimLeft(rest, " ,"); rest != "" && len(p) < 16; rest = strings.TrimLeft(rest, " ,") {
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			return nil
		}
		if quoted, ok := strings.CutPrefix(value, `"`); ok {
			if value, rest, ok = strings.Cut(quoted, `"`); !ok {
				return nil
			}
		} else {
			value, rest, _ = strings.Cut(value, ",")
		}
		p[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	return p
}
