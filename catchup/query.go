package catchup

import (
	"net/url"
	"strings"
)

// A query is what follows the first "?" of a URL, parameter by parameter. Put
// together again it is what it was, byte for byte: operators sign their queries,
// and write a second "?" into them.
type query struct {
	path   string
	params []param
}

type param struct {
	sep byte // "?" or "&", before it
	raw string
}

// split takes a target apart. A "?" separates as "&" does: players that put a
// parameter behind a URL do not look whether it has a query already.
func split(target string) (q query) {
	i := strings.IndexByte(target, '?')
	if i < 0 {
		return query{path: target}
	}
	q.path = target[:i]
	for rest := target[i:]; rest != ""; {
		end := 1 + strings.IndexAny(rest[1:], "?&")
		if end == 0 {
			end = len(rest)
		}
		q.params = append(q.params, param{rest[0], rest[1:end]})
		rest = rest[end:]
	}
	return q
}

func (q query) String() string {
	var b strings.Builder
	b.WriteString(q.path)
	for _, p := range q.params {
		b.WriteByte(p.sep)
		b.WriteString(p.raw)
	}
	return b.String()
}

// name is the parameter's name, decoded.
func (p param) name() string {
	name, _, _ := strings.Cut(p.raw, "=")
	return unescape(name)
}

// value is the parameter's value, decoded. A "+" is a plus: it stands in zones.
func (p param) value() string {
	_, value, _ := strings.Cut(p.raw, "=")
	return unescape(value)
}

// remove takes out the parameters that drop picks. Where the first goes, the next
// takes its "?".
func (q *query) remove(drop func(p param) bool) {
	kept := q.params[:0]
	for _, p := range q.params {
		if drop(p) {
			continue
		}
		if len(kept) == 0 {
			p.sep = '?'
		}
		kept = append(kept, p)
	}
	q.params = kept
}

func unescape(s string) string {
	if d, err := url.PathUnescape(s); err == nil {
		return d
	}
	return s
}

// escaped writes a value as it was: with escapes if it had some.
func escaped(value, before string) string {
	if strings.Contains(before, "%") {
		return strings.NewReplacer(":", "%3A", "+", "%2B").Replace(value)
	}
	return value
}
