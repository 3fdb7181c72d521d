// Package journal keeps the program's log: text, one line an event, written at
// once, with the newest lines held for whoever looks at a running server.
//
// Tokens and passwords in a value are not written. A write that fails is lost
// and nothing else happens.
package journal

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"zapcast/access"
)

const (
	// Kept is how many lines are held.
	Kept = 500

	// maxLine bounds what is held of a line, in bytes.
	maxLine = 2048
)

// A Line is one event of the log.
type Line struct {
	Number int64 // from 1, in order
	At     time.Time
	Level  slog.Level
	Text   string // msg="…" and what belongs to it
}

// A Journal is a log. It is safe for concurrent use.
type Journal struct {
	level slog.LevelVar
	out   io.Writer

	mu    sync.Mutex  // guards the rest, and keeps records apart
	now   slog.Record // the one that is being written
	count int64
	ring  []Line // at count-1 modulo Kept, the newest
}

// New returns a journal that writes to out.
func New(out io.Writer) *Journal { return &Journal{out: out} }

// Logger returns what the program logs to. times says whether each line begins
// with its time.
func (j *Journal) Logger(times bool) *slog.Logger {
	opts := &slog.HandlerOptions{Level: &j.level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 && !times {
			return slog.Attr{}
		}
		return redact(a)
	}}
	return slog.New(&handler{slog.NewTextHandler((*writer)(j), opts), j})
}

// redact takes tokens and passwords out of an attribute.
func redact(a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(access.Redact(a.Value.String()))
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(access.Redact(err.Error()))
		}
	}
	return a
}

// SetLevel sets the least weight of lines from now on.
func (j *Journal) SetLevel(level slog.Level) { j.level.Set(level) }

// Level is the least weight of lines.
func (j *Journal) Level() slog.Level { return j.level.Level() }

// Lines returns the lines held that come after the one with a number, the
// oldest first.
func (j *Journal) Lines(after int64) []Line {
	j.mu.Lock()
	defer j.mu.Unlock()
	if after > j.count {
		after = 0 // the number is another run's
	}
	first := max(j.count-int64(len(j.ring)), after, 0)
	lines := make([]Line, 0, max(j.count-first, 0))
	for n := first; n < j.count; n++ {
		lines = append(lines, j.ring[n%Kept])
	}
	return lines
}

// A handler writes records one by one, so that writer knows which it has.
type handler struct {
	slog.Handler
	journal *Journal
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	h.journal.mu.Lock()
	defer h.journal.mu.Unlock()
	h.journal.now = r
	return h.Handler.Handle(ctx, r)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.journal}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.journal}
}

// writer is a Journal that is given the text of a record.
type writer Journal

func (w *writer) Write(p []byte) (int, error) {
	text := p
	if i := bytes.Index(text, []byte(slog.MessageKey+"=")); i >= 0 {
		text = text[i:]
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	line := Line{Number: w.count + 1, At: w.now.Time, Level: w.now.Level, Text: strings.ToValidUTF8(string(text[:min(len(text), maxLine)]), "")}
	if len(w.ring) < Kept {
		w.ring = append(w.ring, line)
	} else {
		w.ring[w.count%Kept] = line
	}
	w.count++
	return w.out.Write(p)
}
