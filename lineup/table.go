package lineup

import (
	"slices"
	"strings"

	"zapcast/failover"
	"zapcast/playlist"
)

// A Table is a line-up at one moment.
type Table struct {
	Channels []*Channel // in the order of configuration and playlists

	headers []string
	entries []entry
	byPath  map[string]Found
	folded  map[string]Found // in lower case; without a channel where several are
}

// Found is what a path leads to.
type Found struct {
	Channel *Channel
	Source  int // index of the one source that the path names; -1: all of them
}

// An entry is one entry of a list, with what its lines have become.
type entry struct {
	*playlist.Entry
	channel *Channel // nil: nothing of it can be opened here
	firsts  []int    // by line: index of the channel's source; -1: left as it is
	again   bool     // the channel stood in the list before
}

// Find returns what a request target means, in which query and label may stand.
// Where no path is exactly that, case does not matter as long as it leads to one
// channel only: VLC asks RTSP servers in lower case, whatever it was told.
func (t *Table) Find(target string) (Found, bool) {
	path, ok := unescape(target)
	if !ok {
		return Found{}, false
	}
	if found, ok := t.byPath[path]; ok {
		return found, true
	}
	found := t.folded[strings.ToLower(path)]
	return found, found.Channel != nil
}

// A builder puts a Table together.
type builder struct {
	table *Table
	old   *Table // the one before; nil: none
}

func newBuilder(old *Table) *builder {
	return &builder{table: &Table{byPath: map[string]Found{}}, old: old}
}

// done returns the table. A channel that is as it was keeps its Switch; one
// whose sources have changed begins another edition.
func (b *builder) done() *Table {
	b.table.folded = make(map[string]Found, len(b.table.byPath))
	for path, found := range b.table.byPath {
		path = strings.ToLower(path)
		if _, twice := b.table.folded[path]; twice {
			found = Found{}
		}
		b.table.folded[path] = found
	}
	for _, c := range b.table.Channels {
		c.Switch = new(failover.Switch)
		if b.old == nil {
			continue
		}
		was := b.old.byPath[c.Path].Channel
		switch {
		case was == nil || was.Path != c.Path:
		case slices.Equal(was.Sources, c.Sources):
			c.Switch, c.Edition = was.Switch, was.Edition
		default:
			c.Edition = was.Edition + 1
		}
	}
	return b.table
}

// list adds the channels of a list that has a name.
func (b *builder) list(l *playlist.List, origin string) {
	if l.Header != "" {
		b.table.headers = append(b.table.headers, l.Header)
	}
	for i := range l.Entries {
		b.entry(&l.Entries[i], origin)
	}
}

func (b *builder) entry(e *playlist.Entry, origin string) {
	sources, firsts := entrySources(e)
	if len(sources) == 0 {
		b.table.entries = append(b.table.entries, entry{Entry: e, firsts: firsts})
		return
	}
	name := e.Name
	if name == "" {
		name = strings.TrimPrefix(sources[0].URL, sources[0].Scheme()+"://")
		name, _, _ = strings.Cut(name, "?")
	}
	path := pathOf(e.Group, name)
	if c := b.table.byPath[path].Channel; c != nil && c.Path == path && distinct(c.Sources, sources) {
		for i := range firsts {
			if firsts[i] >= 0 {
				firsts[i] += len(c.Sources)
			}
		}
		b.labels(c, sources)
		c.Sources = append(c.Sources, sources...)
		b.table.entries = append(b.table.entries, entry{Entry: e, channel: c, firsts: firsts, again: true})
		return
	}
	c := &Channel{Path: free(path, b.taken), Name: name, Group: e.Group, Logo: e.Logo, Number: e.Number, Origin: origin}
	b.table.byPath[c.Path] = Found{c, -1}
	b.labels(c, sources)
	c.Sources = sources
	b.table.Channels = append(b.table.Channels, c)
	b.table.entries = append(b.table.entries, entry{Entry: e, channel: c, firsts: firsts})
}

func (b *builder) taken(path string) bool {
	_, ok := b.table.byPath[path]
	return ok
}

// labels makes the paths under which single sources, to be added to those of c,
// are found.
func (b *builder) labels(c *Channel, sources []Source) {
	for i, s := range sources {
		if s.Label == "" || i > 0 && sources[i-1].Label == s.Label {
			continue
		}
		if path := labelPath(c, s.Label); !b.taken(path) {
			b.table.byPath[path] = Found{c, len(c.Sources) + i}
		}
	}
}

func labelPath(c *Channel, label string) string { return c.Path + "/" + segment(label) }

// distinct reports whether both are lists of labelled sources without a label
// in common: the choices of one channel, written as two entries.
func distinct(a, b []Source) bool {
	seen := map[string]bool{}
	for _, s := range a {
		seen[s.Label] = true
	}
	for _, s := range b {
		if s.Label == "" || seen[s.Label] {
			return false
		}
	}
	return !seen[""]
}
