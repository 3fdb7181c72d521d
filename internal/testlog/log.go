// Package testlog keeps what goroutines log, for a test to read meanwhile.
package testlog

import (
	"bytes"
	"log/slog"
	"sync"
)

// A Log is text that goroutines write and a test reads. Its zero value is
// empty and ready for use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends b.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns what has been written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger returns a logger that writes lines of text to l.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
