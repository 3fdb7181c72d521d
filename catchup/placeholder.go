package catchup

import "strings"

// maxPlaceholder bounds what stands between the braces, in bytes.
const maxPlaceholder = 127

// placeholders are the names that players fill in, without a format behind them:
// those of Kodi and its family, of a date's parts, and of lists of channels.
var placeholders = map[string]bool{
	"utc": true, "start": true, "utcend": true, "end": true, "lutc": true, "now": true, "timestamp": true,
	"duration": true, "offset": true, "catchup-id": true,
	"Y": true, "m": true, "d": true, "H": true, "M": true, "S": true,
	"yyyy": true, "MM": true, "dd": true, "HH": true, "mm": true, "ss": true,
}

// placeholder returns the first placeholder in s that nobody has filled in, as it
// stands there: "{utc}", "{start:Ymd}", "${(b)yyyyMMdd|UTC}". Other braces are
// the server's affair.
func placeholder(s string) string {
	for at := 0; ; {
		open := strings.IndexByte(s[at:], '{')
		if open < 0 {
			return ""
		}
		open += at
		at = open + 1
		body, _, closed := strings.Cut(s[at:], "}")
		if !closed || len(body) > maxPlaceholder {
			continue
		}
		name, _, _ := strings.Cut(body, ":")
		if placeholders[name] || strings.HasPrefix(body, "(b)") || strings.HasPrefix(body, "(e)") {
			whole := s[open : at+len(body)+1]
			if open > 0 && s[open-1] == '$' {
				whole = "$" + whole
			}
			return whole
		}
	}
}
