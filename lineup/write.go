package lineup

import (
	"slices"

	"zapcast/playlist"
)

// A View says how a list is to be written.
type View struct {
	// Base is what goes before each path, "http://host:port/prefix", without a
	// slash at the end.
	Base string

	// Query goes behind each path: "r2h-token=…". Empty: nothing.
	Query string

	// Group keeps the channels of one group. Empty: all.
	Group string

	// Labels keeps the sources with one of these labels. Empty: all.
	Labels []string

	// Single writes one URL for a channel, whatever labels it has.
	Single bool
}

// AppendM3U appends the line-up as a playlist.
func (t *Table) AppendM3U(dst []byte, v View) []byte {
	dst = slices.Grow(dst, 256*len(t.entries)+256)
	dst = append(append(dst, t.header()...), '\n')
	suffix := ""
	if v.Query != "" {
		suffix = "?" + v.Query
	}
	for i := range t.entries {
		e := &t.entries[i]
		if v.Group != "" && e.Group != v.Group {
			continue
		}
		dst = e.Append(dst, func(line int) (url, label string) {
			if e.channel == nil || e.firsts[line] < 0 {
				return e.Sources[line].URL, e.Sources[line].Label
			}
			label = e.Sources[line].Label
			if len(v.Labels) > 0 && !slices.Contains(v.Labels, label) {
				return "", ""
			}
			path := e.channel.Path
			switch {
			case v.Single || label == "":
				if e.again || line > 0 && slices.ContainsFunc(e.firsts[:line], func(first int) bool { return first >= 0 }) {
					return "", "" // the channel's URL stands there already
				}
				label = ""
			default:
				path = labelPath(e.channel, label)
			}
			return v.Base + "/" + Escape(path) + suffix, label
		})
	}
	return dst
}

// header joins the headers of all lists: of an attribute that several have, the
// first.
func (t *Table) header() string {
	if len(t.headers) == 0 {
		return "#EXTM3U"
	}
	out := t.headers[0]
	for _, h := range t.headers[1:] {
		for key, value := range playlist.Attributes(h) {
			if playlist.Attribute(out, key) == "" {
				out += " " + key + `="` + value + `"`
			}
		}
	}
	return out
}
