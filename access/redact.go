package access

import (
	"regexp"
	"strings"
	"sync"
)

// hidden stands for what is not shown.
const hidden = "xxxxx"

// The patterns are made when they are first needed: most runs need none.
var (
	passwords  = pattern(`(?i)(\b(?:https?|rtsps?|rtmps?|ftps?|mms)://[^/?#\s:@]*):[^/?#\s]*@`)
	parameters = pattern(`(?i)([?&;](?:r2h-token|zapcast-link|[a-z0-9_.-]*(?:token|passw(?:or)?d|secret|signature)|pwd|pass|auth|key|sign|sig)=)[^&\s$"'<>|]+`)
	agents     = pattern(`(R2HTOKEN/)\S+`)
)

func pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}

// stems are what every name holds that parameters is looking for: a search for
// them takes a fiftieth of the pattern's time.
var stems = [...]string{"token", "link", "pass", "secret", "sig", "pwd", "auth", "key"}

func named(s string) bool {
	s = strings.ToLower(s)
	for _, stem := range stems {
		if strings.Contains(s, stem) {
			return true
		}
	}
	return false
}

// Redact takes tokens and passwords out of a text that may hold URLs, request
// targets or a User-Agent.
func Redact(s string) string {
	if strings.Contains(s, "://") && strings.Contains(s, "@") {
		s = passwords().ReplaceAllString(s, "$1:"+hidden+"@")
	}
	if strings.Contains(s, "=") && named(s) {
		s = parameters().ReplaceAllString(s, "${1}"+hidden)
	}
	if strings.Contains(s, agentPrefix) {
		s = agents().ReplaceAllString(s, "${1}"+hidden)
	}
	return s
}
