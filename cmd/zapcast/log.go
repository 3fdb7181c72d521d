package main

import (
	"io"
	"log/slog"
	"os"

	"zapcast/journal"
)

// newLogger returns the program's log, which starts with the configured level.
func newLogger(w io.Writer, level slog.Level) (*journal.Journal, *slog.Logger) {
	j := journal.New(w)
	j.SetLevel(level)
	return j, j.Logger(os.Getenv("JOURNAL_STREAM") == "") // systemd.exec(5): its journal has the time
}

// slogLevel returns the weight that a log-level names.
func (c *serveConfig) slogLevel() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		panic("main: log-level " + c.logLevel + ": " + err.Error())
	}
	return level
}
