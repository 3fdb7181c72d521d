package journal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

func TestJournal_holdsTheNewest(t *testing.T) {
	var out bytes.Buffer
	j := New(&out)
	log := j.Logger(true).With("channel", "One")
	log.Debug("too fine")
	for i := range Kept + 10 {
		log.Warn("event", "n", i)
	}
	lines := j.Lines(0)
	if len(lines) != Kept || lines[0].Number != 11 || lines[Kept-1].Number != Kept+10 {
		t.Fatalf("got %d lines, the first %d, want %d, 11", len(lines), lines[0].Number, Kept)
	}
	last := lines[Kept-1]
	if want := fmt.Sprintf("msg=event channel=One n=%d", Kept+9); last.Text != want || last.Level != slog.LevelWarn || last.At.IsZero() {
		t.Errorf("got %+v, want the text %q", last, want)
	}
	if got := j.Lines(Kept + 8); len(got) != 2 {
		t.Errorf("after %d: got %d lines, want 2", Kept+8, len(got))
	}
	if got := j.Lines(Kept + 10); len(got) != 0 {
		t.Errorf("after the end: got %d lines, want none", len(got))
	}
	if got := j.Lines(1 << 40); len(got) != Kept {
		t.Errorf("after another run's last: got %d lines, want all", len(got))
	}
	if n := strings.Count(out.String(), "\n"); n != Kept+10 {
		t.Errorf("got %d lines written, want %d", n, Kept+10)
	}
}

func TestJournal_level(t *testing.T) {
	var out bytes.Buffer
	j := New(&out)
	j.SetLevel(slog.LevelError)
	j.Logger(false).Warn("no")
	j.SetLevel(slog.LevelDebug)
	j.Logger(false).Debug("yes")
	if got, want := out.String(), "level=DEBUG msg=yes\n"; got != want || j.Level() != slog.LevelDebug {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJournal_tellsNoSecrets(t *testing.T) {
	var out bytes.Buffer
	j := New(&out)
	j.Logger(true).With("source", "rtsp://u:hush@h/").Info("x", "err", errors.New("get http://u:hush@h/: no"), "target", "/One?r2h-token=hush")
	if text := out.String() + j.Lines(0)[0].Text; strings.Contains(text, "hush") || strings.Count(text, "xxxxx") != 6 {
		t.Errorf("got %s", text)
	}
}

func TestJournal_manyWriters(t *testing.T) {
	var out bytes.Buffer
	j := New(&out)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 100 {
				j.Logger(true).Log(t.Context(), slog.Level(4*(i%2)), "x", "i", i)
			}
		})
	}
	wg.Wait()
	for _, line := range j.Lines(0) {
		if want := fmt.Sprint(slog.Level(4 * int((line.Text[len(line.Text)-1]-'0')%2))); line.Level.String() != want {
			t.Fatalf("got %v for %q", line.Level, line.Text)
		}
	}
}
