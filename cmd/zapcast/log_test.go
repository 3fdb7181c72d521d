package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// writes keeps each write apart.
type writes [][]byte

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, bytes.Clone(p))
	return len(p), nil
}

func TestLogger_longLineIsOneWrite(t *testing.T) {
	var w writes
	_, log := newLogger(&w, slog.LevelInfo)
	log.Debug("too fine")
	log.Info(strings.Repeat("x", 5000), "err", errors.New("two\nlines"))
	log.Info("next")
	if len(w) != 2 {
		t.Fatalf("writes: got %d, want 2", len(w))
	}
	for _, line := range w {
		if n := bytes.Count(line, []byte("\n")); n != 1 || line[len(line)-1] != '\n' {
			t.Errorf("line: got %d newlines in %q, want one, at its end", n, line)
		}
	}
}

func TestLogger_journalHasTheTime(t *testing.T) {
	for stream, want := range map[string]bool{"": true, "8:12345": false} {
		t.Setenv("JOURNAL_STREAM", stream)
		var w writes
		_, log := newLogger(&w, slog.LevelInfo)
		log.Info("hello")
		if got := bytes.HasPrefix(w[0], []byte("time=2")); got != want {
			t.Errorf("JOURNAL_STREAM=%q: line %q begins with the time: got %v, want %v", stream, w[0], got, want)
		}
	}
}
