package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"
)

// A Right is something that a request may need.
type Right int

const (
	Stream Right = iota // play, and the playlist
	View                // page, status, metrics, log
	Admin               // disconnect, reload, log level, choice of a source
)

// Rights names the rights as configurations do, in their order.
var Rights = []string{"stream", "view", "admin"}

func (r Right) String() string { return Rights[r] }

// A Token is a secret that grants rights. Admin grants the others too.
type Token struct {
	Name    string // for logs
	Secret  string
	Rights  []Right
	Expires time.Time // zero: never
}

// grants reports whether t grants a right.
func (t *Token) grants(right Right) bool {
	for _, r := range t.Rights {
		if r == right || r == Admin {
			return true
		}
	}
	return false
}

type digest = [sha256.Size]byte

// A keyring finds tokens by their secret, in a time that does not depend on how
// much of it is right.
type keyring struct {
	tokens  []Token
	digests []digest
}

func newKeyring(tokens []Token) keyring {
	k := keyring{tokens: tokens}
	for _, t := range tokens {
		k.digests = append(k.digests, sha256.Sum256([]byte(t.Secret)))
	}
	return k
}

// find returns the token with a secret; nil: there is none.
func (k *keyring) find(secret string) (found *Token) {
	d := sha256.Sum256([]byte(secret))
	for i := range k.digests {
		if subtle.ConstantTimeCompare(d[:], k.digests[i][:]) == 1 {
			found = &k.tokens[i]
		}
	}
	return found
}

// granted reports whether any token grants a right, valid or not: a token that
// has expired does not open what it has guarded.
func (k *keyring) granted(right Right) bool {
	for i := range k.tokens {
		if k.tokens[i].grants(right) {
			return true
		}
	}
	return false
}
