package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"zapcast/playout"
)

// progress tells on one line how far a playout is, again and again on a
// terminal and once at the end.
type progress struct {
	w     io.Writer
	seed  uint64
	start time.Time
	last  playout.Stats // when the line was written last
	at    time.Time
	width int // of the line on the terminal
}

func newProgress(w io.Writer, seed uint64) *progress {
	now := time.Now()
	return &progress{w: w, seed: seed, start: now, at: now}
}

// update writes the line over the one before, with the rate since then.
func (p *progress) update(s playout.Stats) {
	now := time.Now()
	line := fmt.Sprintf("%v  %s  %s", s.Position.Round(time.Second), bitRate(s.Bytes-p.last.Bytes, now.Sub(p.at)), events(s))
	// Spaces cover what a longer line has left there.
	fmt.Fprintf(p.w, "\r%-*s", p.width, line)
	p.last, p.at, p.width = s, now, len(line)
}

// finish writes the line for the last time, with the mean rate.
func (p *progress) finish(s playout.Stats) {
	if p.width > 0 {
		fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
	}
	took := time.Since(p.start)
	fmt.Fprintf(p.w, "%v, %s: %s, seed %d\n", took.Round(10*time.Millisecond), bitRate(s.Bytes, took), events(s), p.seed)
}

// events lists what happened, as far as it did.
func events(s playout.Stats) string {
	out := []string{fmt.Sprintf("%d datagrams", s.Datagrams)}
	for _, e := range []struct {
		n    int64
		what string
	}{
		{s.Parity, "of parity"},
		{s.Dropped, "dropped"},
		{s.Duplicated, "duplicated"},
		{s.Reordered, "reordered"},
		{s.Failed, "failed"},
	} {
		if e.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", e.n, e.what))
		}
	}
	if s.LastError != nil {
		out[len(out)-1] += fmt.Sprintf(" (%v)", s.LastError)
	}
	if s.Skipped > 0 {
		out = append(out, fmt.Sprintf("stood still for %v", s.Skipped.Round(time.Millisecond)))
	}
	return strings.Join(out, ", ")
}

func bitRate(bytes int64, took time.Duration) string {
	return fmt.Sprintf("%.2f Mbit/s", float64(bytes)*8/1e6/max(took.Seconds(), 1e-3))
}

// isTerminal reports whether somebody looks at what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
