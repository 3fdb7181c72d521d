package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// apply sets what a TOML document says, strictly: the first key that is
// unknown or holds something else than it should ends it with an error that
// begins "PATH:LINE". path only names the document.
func (c *serveConfig) apply(path string, doc []byte) error {
	var tree map[string]any
	if err := toml.Unmarshal(doc, &tree); err != nil {
		return syntaxFault(path, doc, err)
	}
	for _, e := range entries(doc) {
		key := e.String()
		s, known := settingOf(key)
		l, isList := listOf(key)
		switch {
		case isList && e.array:
			c.item(l, fmt.Sprintf("%s:%d", path, e.line))
		case isList && e.table:
			return fmt.Errorf("%s:%d: %s: expected a list of tables [[%s]], found one table", path, e.line, key, key)
		case isList:
			return fmt.Errorf("%s:%d: %s: expected a list of tables [[%s]], found %s", path, e.line, key, key, tomlText(e.in(tree)))
		case known && e.table:
			return fmt.Errorf("%s:%d: %s: %w", path, e.line, key, wrongKind(s, "a table"))
		case known:
			if err := s.value(c).set(e.in(tree)); err != nil {
				return fmt.Errorf("%s:%d: %s: %w", path, e.line, key, err)
			}
			if !e.item {
				c.origin[key] = fmt.Sprintf("%s:%d", path, e.line)
			}
		case !isSection(key):
			return fmt.Errorf("%s:%d:%d: %s: unknown key, expected %s", path, e.line, e.column, key, knownIn(e.path[:len(e.path)-1]))
		case e.array:
			return fmt.Errorf("%s:%d: %s: expected one table [%s], found a list of tables", path, e.line, key, key)
		case !e.table:
			return fmt.Errorf("%s:%d: %s: expected a table [%s], found %s", path, e.line, key, key, tomlText(e.in(tree)))
		}
	}
	return nil
}

// syntaxFault says on one line where and why a document is no TOML.
func syntaxFault(path string, doc []byte, err error) error {
	decode := (*toml.DecodeError)(nil)
	if !errors.As(err, &decode) {
		return fmt.Errorf("%s: expected a TOML document: %w", path, err)
	}
	line, column := decode.Position()
	found := ""
	if lines := strings.Split(string(doc), "\n"); line >= 1 && line <= len(lines) {
		found = strings.TrimSpace(lines[line-1])
	}
	return fmt.Errorf("%s:%d:%d: expected TOML, found %s (%s)", path, line, column, strconv.Quote(cut(found)), strings.TrimPrefix(decode.Error(), "toml: "))
}

// wrongKind is the setting's own complaint, about something that is no value.
func wrongKind(s setting, found string) error {
	var spare serveConfig
	for _, l := range lists {
		l.grow(&spare)
	}
	if m := (*mismatch)(nil); errors.As(s.value(&spare).set(struct{}{}), &m) {
		return fmt.Errorf("expected %s, found %s", m.expected, found)
	}
	return fmt.Errorf("expected a value, found %s", found)
}

func isSection(key string) bool {
	return slices.ContainsFunc(sections, func(s section) bool { return s.name == key && key != "" })
}

// knownIn lists what may stand in a table.
func knownIn(table []string) string {
	prefix := ""
	if len(table) > 0 {
		prefix = joinKey(table) + "."
	}
	var names []string
	for _, s := range allSettings() {
		if name, ok := strings.CutPrefix(s.key, prefix); ok && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	if prefix == "" {
		for _, s := range sections[1:] {
			names = append(names, "["+s.name+"]")
		}
		for _, l := range lists {
			names = append(names, "[["+l.name+"]]")
		}
	}
	if len(names) == 0 {
		return "a table of " + knownIn(nil)
	}
	return "one of " + strings.Join(names, ", ")
}

// An entry is a key of a document, and its place there.
type entry struct {
	path         []string
	line, column int
	table        bool // a table's header, or an inline table
	array        bool // the header of one table in a list
	item         bool // it stands in one, the one with this index
	index        int
}

func (e entry) String() string { return joinKey(e.path) }

// in returns the entry's value in the decoded document.
func (e entry) in(tree map[string]any) any {
	var v any = tree
	for _, name := range e.path {
		if items, ok := v.([]any); ok && e.item && e.index < len(items) {
			v = items[e.index]
		}
		table, ok := v.(map[string]any)
		if !ok {
			return v
		}
		v = table[name]
	}
	return v
}

// joinKey writes a dotted key, with quotes where a part needs them: a part that
// holds a dot must not look like two.
func joinKey(path []string) string {
	parts := make([]string, len(path))
	for i, p := range path {
		parts[i] = p
		if p == "" || strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			parts[i] = strconv.Quote(cut(p))
		}
	}
	return strings.Join(parts, ".")
}

// entries lists the keys of a valid document in their order. Decoding alone
// does not tell where a value came from.
func entries(doc []byte) []entry {
	var (
		p     unstable.Parser
		out   []entry
		table []string
		items = map[string]int{} // tables of each list so far
	)
	add := func(parent []string, n *unstable.Node) entry {
		e := entry{path: slices.Clone(parent)}
		if len(parent) > 0 && items[parent[0]] > 0 {
			e.item, e.index = true, items[parent[0]]-1
		}
		first := true
		for keys := n.Key(); keys.Next(); first = false {
			part := keys.Node()
			if first {
				start := p.Shape(part.Raw).Start
				e.line, e.column = start.Line, start.Column
			}
			e.path = append(e.path, string(part.Data))
		}
		return e
	}
	var pair func(parent []string, n *unstable.Node)
	pair = func(parent []string, n *unstable.Node) {
		e := add(parent, n)
		inline := n.Value()
		e.table = inline.Kind == unstable.InlineTable
		out = append(out, e)
		if e.table {
			for items := inline.Children(); items.Next(); {
				if item := items.Node(); item.Kind == unstable.KeyValue {
					pair(e.path, item)
				}
			}
		}
	}
	p.Reset(doc)
	for p.NextExpression() {
		switch n := p.Expression(); n.Kind {
		case unstable.Table, unstable.ArrayTable:
			e := add(nil, n)
			e.table, e.array = true, n.Kind == unstable.ArrayTable
			if table = e.path; e.array && len(table) == 1 {
				items[table[0]]++
			}
			out = append(out, e)
		case unstable.KeyValue:
			pair(table, n)
		}
	}
	return out
}
