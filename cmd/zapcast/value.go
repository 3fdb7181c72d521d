package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A value is one setting of one configuration: a field, and the rules for what
// may be in it.
type value interface {
	// set takes what a TOML document may hold (string, int64, float64, bool,
	// []any, …). The error is always a *mismatch, and the field is as before.
	set(v any) error
	// text is the field's present value as TOML.
	text() string
	// takes describes the permitted values for the reference page.
	takes() string
}

// A mismatch says what a setting expects and what was found in its place.
type mismatch struct {
	expected string
	found    any
}

func (m *mismatch) Error() string {
	return fmt.Sprintf("expected %s, found %s", m.expected, tomlText(m.found))
}

// Text that a fault quotes is cut to maxQuoted bytes, so that it stays one
// readable line whatever the file holds.
const maxQuoted = 60

// tomlText shows a decoded TOML value on one line.
func tomlText(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(cut(v))
	case []any:
		items := make([]string, 0, len(v))
		for _, item := range v {
			items = append(items, tomlText(item))
		}
		return cut("[" + strings.Join(items, ", ") + "]")
	case map[string]any:
		return "a table"
	case fmt.Stringer: // dates and times
		return cut(v.String())
	default:
		return cut(fmt.Sprint(v))
	}
}

func cut(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "…"
}

// duration is a span of time between min and max, or zero where off says what
// zero means.
type duration struct {
	p        *time.Duration
	min, max time.Duration
	off      string
}

func (d duration) set(v any) error {
	s, ok := v.(string)
	if !ok {
		return &mismatch{`a duration such as "15s"`, v}
	}
	span, err := time.ParseDuration(s)
	if err != nil {
		return &mismatch{`a duration such as "15s"`, v}
	}
	if (span < d.min || span > d.max) && (span != 0 || d.off == "") {
		return &mismatch{d.takes(), v}
	}
	*d.p = span
	return nil
}

func (d duration) text() string { return strconv.Quote(shortDuration(*d.p)) }

func (d duration) takes() string {
	s := fmt.Sprintf("a duration from %q to %q", shortDuration(d.min), shortDuration(d.max))
	if d.off != "" {
		s += fmt.Sprintf(`, or "0s" (%s)`, d.off)
	}
	return s
}

// shortDuration writes 1h rather than 1h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// size is a number of bytes between min and max.
type size struct {
	p        *int64
	min, max int64
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func (z size) set(v any) error {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case string:
		var ok bool
		if n, ok = parseSize(v); !ok {
			return &mismatch{`a size such as "8MiB"`, v}
		}
	default:
		return &mismatch{`a size such as "8MiB"`, v}
	}
	if n < z.min || n > z.max {
		return &mismatch{z.takes(), v}
	}
	*z.p = n
	return nil
}

func (z size) text() string { return strconv.Quote(formatSize(*z.p)) }

func (z size) takes() string {
	return fmt.Sprintf("a size from %q to %q", formatSize(z.min), formatSize(z.max))
}

func parseSize(s string) (int64, bool) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(digits, " "), 10, 63)
		return int64(n) * u.bytes, err == nil && int64(n) <= math.MaxInt64/u.bytes
	}
	return 0, false
}

func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if n%u.bytes == 0 && n >= u.bytes {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

// count is a whole number between min and max.
type count struct {
	p        *int
	min, max int64
}

func (c count) set(v any) error {
	n, ok := v.(int64)
	if !ok || n < c.min || n > c.max {
		return &mismatch{c.takes(), v}
	}
	*c.p = int(n)
	return nil
}

func (c count) text() string { return strconv.Itoa(*c.p) }

func (c count) takes() string { return fmt.Sprintf("a whole number from %d to %d", c.min, c.max) }

// truth is true or false.
type truth struct{ p *bool }

func (t truth) set(v any) error {
	b, ok := v.(bool)
	if !ok {
		return &mismatch{t.takes(), v}
	}
	*t.p = b
	return nil
}

func (t truth) text() string { return strconv.FormatBool(*t.p) }

func (t truth) takes() string { return "true or false" }

// choice is one word of a few.
type choice struct {
	p     *string
	words []string
}

func (c choice) set(v any) error {
	s, ok := v.(string)
	if !ok || !slices.Contains(c.words, s) {
		return &mismatch{c.takes(), v}
	}
	*c.p = s
	return nil
}

func (c choice) text() string { return strconv.Quote(*c.p) }

func (c choice) takes() string {
	quoted := make([]string, len(c.words))
	for i, w := range c.words {
		quoted[i] = strconv.Quote(w)
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// text is a string that valid accepts.
type text struct {
	p        *string
	expected string
	valid    func(string) bool
}

func (t text) set(v any) error {
	s, ok := v.(string)
	if !ok || !t.valid(s) {
		return &mismatch{t.expected, v}
	}
	*t.p = s
	return nil
}

func (t text) text() string { return strconv.Quote(*t.p) }

func (t text) takes() string { return t.expected }

// texts is a list of different strings, each of which normal turns into the
// one way to write it, or refuses. A bare string is a list of one.
type texts struct {
	p        *[]string
	min      int
	expected string // of one string
	normal   func(string) (string, bool)
}

func (t texts) set(v any) error {
	if s, ok := v.(string); ok {
		v = []any{s}
	}
	list, ok := v.([]any)
	if !ok || len(list) < t.min {
		return &mismatch{t.takes(), v}
	}
	out := make([]string, 0, len(list))
	for _, item := range list {
		s, ok := item.(string)
		if ok {
			s, ok = t.normal(s)
		}
		if !ok {
			return &mismatch{t.expected, item}
		}
		if slices.Contains(out, s) {
			return &mismatch{"each entry once", item}
		}
		out = append(out, s)
	}
	*t.p = out
	return nil
}

func (t texts) text() string {
	quoted := make([]string, len(*t.p))
	for i, s := range *t.p {
		quoted[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func (t texts) takes() string { return "a list of strings, each " + t.expected }

// secret is a string of at least min bytes that no message shows; empty if that
// is permitted.
type secret struct {
	p     *string
	min   int
	empty bool
}

func (s secret) set(v any) error {
	given, ok := v.(string)
	switch {
	case !ok:
		return &mismatch{s.takes(), kindOf(v)}
	case len(given) < s.min && (given != "" || !s.empty):
		return &mismatch{s.takes(), bytesFound(len(given))}
	}
	*s.p = given
	return nil
}

func (s secret) text() string { return strconv.Quote(*s.p) }

func (s secret) takes() string { return fmt.Sprintf("a string of at least %d bytes", s.min) }

// bytesFound stands for a value that is not shown.
type bytesFound int

func (n bytesFound) String() string { return fmt.Sprintf("one of %d", int(n)) }

// kindOf stands for a value that is not shown, and is no string.
func kindOf(v any) fmt.Stringer {
	return kind(fmt.Sprintf("%T", v))
}

type kind string

func (k kind) String() string { return "a value of the type " + string(k) }

// moment is a time, or "" for none: a TOML date and time with its offset, or
// the same in a string.
type moment struct{ p *time.Time }

func (m moment) set(v any) error {
	switch v := v.(type) {
	case time.Time:
		*m.p = v.UTC()
		return nil
	case string:
		if v == "" {
			*m.p = time.Time{}
			return nil
		}
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			*m.p = at.UTC()
			return nil
		}
	}
	return &mismatch{m.takes(), v}
}

func (m moment) text() string {
	if m.p.IsZero() {
		return `""`
	}
	return m.p.Format(time.RFC3339)
}

func (m moment) takes() string {
	return "a date and time such as 2027-01-01T00:00:00Z, or \"\" (never)"
}
