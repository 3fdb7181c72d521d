package playlist

import (
	"iter"
	"strings"
)

// Attribute returns the value of an attribute of a line #EXTINF or #EXTM3U,
// without its quotes; keys are compared in any case. Empty: there is none.
func Attribute(line, key string) string {
	for k, v := range attributes(line) {
		if strings.EqualFold(k, key) {
			return v.text
		}
	}
	return ""
}

// Attributes lists the attributes of a line #EXTINF or #EXTM3U in their order,
// the values without quotes.
func Attributes(line string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key, v := range attributes(line) {
			if !yield(key, v.text) {
				return
			}
		}
	}
}

// A value is the text of an attribute, and where in its line that begins.
type value struct {
	text  string
	start int
}

// attributes lists what stands as key="value" between the tag of a line and
// its name. Lists are written by hand: a quote may be single, escaped, or
// missing on either side.
func attributes(line string) iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		end := nameAt(line)
		if end < 0 {
			end = len(line)
		}
		i := strings.IndexAny(line[:end], " \t")
		for i >= 0 && i < end {
			for i < end && (line[i] == ' ' || line[i] == '\t' || line[i] == ',') {
				i++
			}
			from := i
			for i < end && line[i] != '=' && line[i] != ' ' && line[i] != '\t' {
				i++
			}
			if i >= end || line[i] != '=' {
				continue // a word without a value
			}
			key := line[from:i]
			i++
			start := i
			if i < end && (line[i] == '"' || line[i] == '\'') {
				quote := line[i]
				i++
				start = i
				for i < end && line[i] != quote {
					i++
				}
			} else {
				for i < end && line[i] != ' ' && line[i] != '\t' {
					i++
				}
			}
			text := line[start:i]
			if i < end {
				i++
			}
			for text != "" && strings.IndexByte(`"'\`, text[0]) >= 0 {
				text, start = text[1:], start+1
			}
			text = strings.TrimRight(text, `"'\`)
			if !yield(key, value{text, start}) {
				return
			}
		}
	}
}

// nameAt returns the index of the comma before the name of an #EXTINF line: the
// last one outside quotes. Where the quotes are not in pairs it is the last one
// of all. -1: there is none.
func nameAt(line string) int {
	at, quoted := -1, false
	for i := range len(line) {
		switch line[i] {
		case '"':
			quoted = !quoted
		case ',':
			if !quoted {
				at = i
			}
		}
	}
	if quoted {
		at = strings.LastIndexByte(line, ',')
	}
	return at
}
