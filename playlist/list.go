package playlist

import (
	"strconv"
	"strings"
)

// A List is a playlist: a header and entries in their order.
type List struct {
	Header  string   // the line #EXTM3U with its attributes; empty: there was none
	Entries []Entry  // in the order of the list
	Trailer []string // lines after the last URL
	Faults  []Fault  // what was tolerated or left out, at most maxFaults
}

// An Entry is one channel of a list.
type Entry struct {
	Name  string // text after the comma of #EXTINF; may be empty
	Group string // group-title, else #EXTGRP; may be empty
	Logo  string // tvg-logo; may be empty

	Number int // tvg-chno, from 1; 0: none

	// Sources are the URLs of the entry, at least one. More than one follow one
	// #EXTINF line in lists that give a choice.
	Sources []Source

	info int // index of the #EXTINF line in the first source's Before; -1: none
}

// A Source is one URL line of an entry.
type Source struct {
	URL    string   // without the label
	Label  string   // what follows the last "$" of the line, as it stands; may be empty
	Line   int      // its number in the list, from 1; 0: made by New
	Before []string // the lines since the URL before it, as they were
}

// A Fault is something in a list that is not as it should be.
type Fault struct {
	Line int
	Text string // "expected …, found …"
}

func (f Fault) String() string { return "line " + strconv.Itoa(f.Line) + ": " + f.Text }

// New returns an entry that stands in no list, with the lines that players
// expect.
func New(name, group, logo string, sources ...Source) Entry {
	var b strings.Builder
	b.WriteString("#EXTINF:-1")
	attribute := func(key, value string) {
		if value != "" {
			b.WriteString(" " + key + `="` + strings.Map(plain, value) + `"`)
		}
	}
	attribute("tvg-logo", logo)
	attribute("group-title", group)
	b.WriteString("," + strings.Map(plain, name))
	e := Entry{Name: name, Group: group, Logo: logo, Sources: append([]Source(nil), sources...)}
	if len(e.Sources) > 0 {
		e.Sources[0].Before = []string{b.String()}
	}
	return e
}

// plain keeps a value within its line and its quotes.
func plain(r rune) rune {
	switch r {
	case '"':
		return '\''
	case '\n', '\r':
		return ' '
	}
	return r
}

// Info returns the #EXTINF line of an entry; empty: there was none.
func (e *Entry) Info() string {
	if e.info < 0 || len(e.Sources) == 0 || e.info >= len(e.Sources[0].Before) {
		return ""
	}
	return e.Sources[0].Before[e.info]
}

// Append appends e to dst: the lines before each source as they were, then the
// URL that url returns for the source of an index, and its label. Where url
// returns "", the source's line is left out; where it does so for all, so is
// the entry. A catchup-source that is to be appended to the URL begins with the
// joiner that fits the new one.
func (e *Entry) Append(dst []byte, url func(source int) (url, label string)) []byte {
	start, written := len(dst), false
	for i := range e.Sources {
		u, label := url(i)
		for j, line := range e.Sources[i].Before {
			if i == 0 && j == e.info && u != "" {
				line = joinCatchup(line, u)
			}
			dst = append(append(dst, line...), '\n')
		}
		if u == "" {
			continue
		}
		written = true
		dst = append(dst, u...)
		if label != "" {
			dst = append(append(dst, '$'), label...)
		}
		dst = append(dst, '\n')
	}
	if !written {
		return dst[:start]
	}
	return dst
}

// joinCatchup corrects the joiner of a catchup-source that players append to
// the live URL: "?" where that has no query yet, else "&".
func joinCatchup(line, url string) string {
	if !strings.Contains(line, "catchup") {
		return line
	}
	mode := Attribute(line, "catchup")
	if mode == "" {
		mode = Attribute(line, "catchup-type")
	}
	if !strings.EqualFold(mode, "append") {
		return line
	}
	want := byte('?')
	if strings.Contains(url, "?") {
		want = '&'
	}
	for key, v := range attributes(line) {
		if !strings.EqualFold(key, "catchup-source") || v.text == "" {
			continue
		}
		if v.text[0] == '?' || v.text[0] == '&' {
			at := v.start
			return line[:at] + string(want) + line[at+1:]
		}
	}
	return line
}
