package playlist

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

const (
	// MaxBytes is the longest list that Parse takes.
	MaxBytes = 10 << 20

	// maxLine is the longest line; a longer one is left out. Attributes of
	// 10 kB have been met.
	maxLine = 16 << 10

	// maxEntries bounds what a list costs in memory. The longest in use have
	// some ten thousand.
	maxEntries = 50_000

	// maxSources is how many URLs one entry may have.
	maxSources = 32

	// maxFaults is how many faults are kept.
	maxFaults = 20
)

// ErrNoList is in the error of Parse where the bytes are no list of channels,
// such as the page of a captive portal.
var ErrNoList = errors.New("no list of channels")

const (
	header = "#EXTM3U"
	info   = "#EXTINF:"
	group  = "#EXTGRP:"
)

// Parse reads a list, in UTF-8 with or without a byte-order mark, or with lines
// in GBK or GB 18030. Line ends may be LF or CRLF. Faults of a line cost that
// line and no other; Parse fails where nothing in data looks like a list, or a
// limit is exceeded.
func Parse(data []byte) (*List, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("playlist: expected at most %d bytes, found %d", MaxBytes, len(data))
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, fmt.Errorf("playlist: %w: expected text in UTF-8 or GBK, found a zero byte", ErrNoList)
	}
	p := parser{rest: string(bytes.TrimPrefix(data, []byte("\ufeff")))}
	for p.next() {
		if err := p.line(); err != nil {
			return nil, err
		}
	}
	if p.list.Header == "" && len(p.list.Entries) == 0 {
		return nil, fmt.Errorf("playlist: %w: expected a line %s or URLs, found %s", ErrNoList, header, quote(strings.TrimSpace(string(data[:min(len(data), 200)]))))
	}
	p.list.Trailer = p.before
	return &p.list, nil
}

// A parser goes through the lines of a list.
type parser struct {
	list   List
	rest   string
	text   string // the line in hand, without blanks around it
	number int

	before []string // lines since the last URL
	info   int      // index of the last #EXTINF in before; -1: none
	group  string   // of the last #EXTGRP in before
	fresh  bool     // the next URL begins an entry
}

// next takes the next line in hand, decoded.
func (p *parser) next() bool {
	if p.number == 0 {
		p.info, p.fresh = -1, true
	}
	if p.rest == "" {
		return false
	}
	line, rest, _ := strings.Cut(p.rest, "\n")
	p.rest = rest
	p.number++
	p.text = strings.TrimSpace(line)
	if !utf8.ValidString(p.text) {
		p.text = decodeGBK(p.text)
	}
	return true
}

// decodeGBK reads text that is no UTF-8 as GB 18030, of which GBK is a part.
func decodeGBK(s string) string {
	decoded, err := simplifiedchinese.GB18030.NewDecoder().String(s)
	if err != nil {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	return decoded
}

func (p *parser) line() error {
	switch {
	case p.text == "":
	case len(p.text) > maxLine:
		p.fault("expected a line of at most %d bytes, found %d: left out", maxLine, len(p.text))
	case strings.HasPrefix(p.text, "#EXT-X-"):
		return fmt.Errorf("playlist: line %d: %w: expected channels, found an HLS playlist (%s)", p.number, ErrNoList, quote(p.text))
	case hasTag(p.text, header) && p.list.Header == "" && len(p.list.Entries) == 0:
		p.list.Header = p.text
	case p.text[0] == '#':
		p.comment()
	case isURL(p.text):
		return p.source()
	default:
		p.fault("expected a URL or a line that begins with #, found %s: left as it is", quote(p.text))
		p.before = append(p.before, p.text)
	}
	return nil
}

// hasTag reports whether a line is a tag, alone or with what follows it.
func hasTag(line, tag string) bool {
	return len(line) >= len(tag) && strings.EqualFold(line[:len(tag)], tag)
}

// comment keeps a line that begins with "#", and what it says of the next entry.
func (p *parser) comment() {
	switch {
	case hasTag(p.text, info):
		if p.info >= 0 {
			p.fault("expected a URL for the entry before, found the next entry")
		}
		p.info, p.fresh, p.group = len(p.before), true, ""
	case hasTag(p.text, group):
		p.group = strings.TrimSpace(p.text[len(group):])
	}
	p.before = append(p.before, p.text)
}

// source adds a URL line to the list: an entry, or one more source of the last.
// A URL without an #EXTINF of its own is another source of the entry before,
// if that has one.
func (p *parser) source() error {
	s := Source{Line: p.number, Before: p.before}
	s.URL, s.Label = cutLabel(p.text)
	switch i := strings.IndexAny(s.Label, "?/"); {
	case i < 0:
	case s.Label[i] == '/' || strings.Contains(s.URL, "?"):
		s.URL, s.Label = p.text, "" // a "$" of the URL's own
	default:
		p.fault("expected the label at the end of the line, found %s after it", quote(s.Label[i:]))
		s.URL, s.Label = s.URL+s.Label[i:], s.Label[:i]
	}
	switch n := len(p.list.Entries); {
	case !p.fresh && n > 0 && p.list.Entries[n-1].info >= 0:
		last := &p.list.Entries[n-1]
		if len(last.Sources) == maxSources {
			p.fault("expected at most %d sources of one entry, found more: left out", maxSources)
			break
		}
		last.Sources = append(last.Sources, s)
	case n == maxEntries:
		return fmt.Errorf("playlist: line %d: expected at most %d entries, found more", p.number, maxEntries)
	default:
		p.list.Entries = append(p.list.Entries, p.entry(s))
	}
	p.before, p.info, p.group, p.fresh = nil, -1, "", false
	return nil
}

// entry makes an entry whose first source is s.
func (p *parser) entry(s Source) Entry {
	e := Entry{Group: p.group, Sources: []Source{s}, info: p.info}
	if line := e.Info(); line != "" {
		if at := nameAt(line); at >= 0 {
			e.Name = strings.TrimSpace(line[at+1:])
		} else {
			p.fault("expected a comma and a name at the end of %s, found none", quote(line))
		}
		for key, v := range attributes(line) {
			switch {
			case strings.EqualFold(key, "group-title") && v.text != "":
				e.Group = v.text
			case strings.EqualFold(key, "tvg-logo"):
				e.Logo = v.text
			case strings.EqualFold(key, "tvg-chno"):
				n, _ := strconv.ParseUint(v.text, 10, 31) // some write a name here
				e.Number = int(n)
			case strings.EqualFold(key, "tvg-name") && e.Name == "":
				e.Name = v.text
			}
		}
	}
	return e
}

func (p *parser) fault(format string, args ...any) {
	if len(p.list.Faults) < maxFaults {
		p.list.Faults = append(p.list.Faults, Fault{p.number, fmt.Sprintf(format, args...)})
	}
}

// cutLabel cuts the label off a URL line: what follows the last "$", unless
// that begins a template ("${…}") or nothing follows.
func cutLabel(s string) (rest, label string) {
	i := strings.LastIndexByte(s, '$')
	if i < 0 || i == len(s)-1 || s[i+1] == '{' {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// isURL reports whether a line is one, by its scheme (RFC 3986 §3.1) or because
// it is a path.
func isURL(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	if !ok || scheme == "" {
		return s[0] == '/'
	}
	for _, c := range []byte(scheme) {
		if (c < 'a' || 'z' < c) && (c < 'A' || 'Z' < c) && (c < '0' || '9' < c) && strings.IndexByte("+-.", c) < 0 {
			return false
		}
	}
	return true
}

// quote quotes what was found, shortened, for an error text.
func quote(s string) string {
	const most = 64
	if s == "" {
		return "nothing"
	}
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "…"
	}
	return strconv.Quote(s)
}
