package main

import (
	"io"
	"log/slog"
	"os"
)

// newLogger returns the program's log: text, one line an event, written at
// once. A write that fails is lost and nothing else happens.
func newLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if os.Getenv("JOURNAL_STREAM") != "" { // systemd.exec(5): the journal has the time
		opts.ReplaceAttr = withoutTime
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.Attr{}
	}
	return a
}

// slogLevel returns the weight that a log-level names.
func (c *serveConfig) slogLevel() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		panic("main: log-level " + c.logLevel + ": " + err.Error())
	}
	return level
}
