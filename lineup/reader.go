package lineup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"zapcast/playlist"
)

const (
	// Pauses after a failure: the first, doubled up to the longest.
	retryMin = 2 * time.Second
	retryMax = 256 * time.Second

	// fetchTimeout bounds a whole answer of a server.
	fetchTimeout = 30 * time.Second
)

// A reader reads one playlist, again and again.
type reader struct {
	playlist Playlist
	lineup   *Lineup
	agent    string
	log      *slog.Logger
	remote   bool
	copy     string // path of the copy on disk; empty: none is kept

	state readerState // guarded by Lineup.mu
}

type readerState struct {
	list   *playlist.List // nil: nothing yet
	tag    string         // ETag of the answer that brought it
	since  string         // Last-Modified of it
	copied bool
	at     time.Time
	err    error
}

// run keeps the playlist up to date until ctx ends. A file has been read once.
func (r *reader) run(ctx context.Context) {
	pause := retryMin
	if r.remote && r.read(ctx) {
		r.lineup.rebuild()
	}
	for {
		wait := r.playlist.Refresh
		if r.failed() {
			wait, pause = pause, min(2*pause, retryMax)
			if r.playlist.Refresh > 0 {
				wait = min(wait, r.playlist.Refresh)
			}
		} else if pause = retryMin; wait <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if r.read(ctx) {
			r.lineup.rebuild()
		}
	}
}

func (r *reader) failed() bool {
	r.lineup.mu.Lock()
	defer r.lineup.mu.Unlock()
	return r.state.err != nil
}

// errUnchanged is a server's word that its list is the one that we have.
var errUnchanged = errors.New("unchanged")

// read reads the playlist. It reports whether that brought another list.
func (r *reader) read(ctx context.Context) (news bool) {
	r.lineup.mu.Lock()
	next := r.state
	r.lineup.mu.Unlock()
	was := next.err
	text, err := r.load(ctx, &next)
	if ctx.Err() != nil {
		return false
	}
	var list *playlist.List
	if err == nil {
		list, err = playlist.Parse(text)
	}
	switch {
	case errors.Is(err, errUnchanged):
		next.err, next.copied, next.at = nil, false, time.Now()
	case err != nil:
		next.err = err
		if was == nil || was.Error() != err.Error() {
			r.log.Warn("playlist not read; what it brought before stays", "playlist", r.playlist.Name(), "err", err)
		}
	default:
		next.list, next.err, next.copied, next.at = list, nil, false, time.Now()
		news = true
		r.log.Info("playlist read", "playlist", r.playlist.Name(), "channels", len(list.Entries), "faults", len(list.Faults))
		for _, f := range list.Faults {
			r.log.Warn("playlist: "+f.Text, "playlist", r.playlist.Name(), "line", f.Line)
		}
		r.keep(text)
	}
	r.lineup.mu.Lock()
	if err != nil && !errors.Is(err, errUnchanged) {
		r.state.err = err
	} else {
		r.state = next
	}
	r.lineup.mu.Unlock()
	return news
}

// load gets the bytes of the playlist, and what identifies them into next.
func (r *reader) load(ctx context.Context, next *readerState) ([]byte, error) {
	if r.remote {
		return r.fetch(ctx, next)
	}
	f, err := os.Open(r.playlist.Source)
	if err != nil {
		if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
			err = cause.Err
		}
		return nil, fmt.Errorf("expected a readable file: %w", err)
	}
	defer f.Close()
	return limited(f)
}

// limited reads all of r, one byte more than Parse takes at most.
func limited(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, playlist.MaxBytes+1))
}

func (r *reader) fetch(ctx context.Context, next *readerState) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.playlist.Source, nil)
	if err != nil {
		return nil, errors.New("expected a URL")
	}
	agent := r.agent
	if agent == "" {
		agent = "zapcast"
	}
	request.Header.Set("User-Agent", agent)
	if next.list != nil {
		set(request.Header, "If-None-Match", next.tag)
		set(request.Header, "If-Modified-Since", next.since)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		if cause := (*url.Error)(nil); errors.As(err, &cause) {
			err = cause.Err // the URL is in it, with the password
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %v", fetchTimeout)
		}
		return nil, err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusNotModified:
		return nil, errUnchanged
	case http.StatusOK:
	default:
		return nil, fmt.Errorf("expected the status 200, found %d", answer.StatusCode)
	}
	next.tag, next.since = answer.Header.Get("ETag"), answer.Header.Get("Last-Modified")
	return limited(answer.Body)
}

func set(h http.Header, key, value string) {
	if value != "" {
		h.Set(key, value)
	}
}

// copyPath is the file that keeps the last good copy of a playlist.
func copyPath(dir, source string) string {
	sum := sha256.Sum256([]byte(source))
	return filepath.Join(dir, "playlist-"+hex.EncodeToString(sum[:8])+".m3u")
}

// keep writes the copy, beside the old one and then in its place.
func (r *reader) keep(text []byte) {
	if r.copy == "" {
		return
	}
	if old, err := os.ReadFile(r.copy); err == nil && string(old) == string(text) {
		return
	}
	err := os.MkdirAll(filepath.Dir(r.copy), 0o700)
	if err == nil {
		if err = os.WriteFile(r.copy+".new", text, 0o600); err == nil {
			err = os.Rename(r.copy+".new", r.copy)
		}
	}
	if err != nil {
		r.log.Warn("copy of a playlist not kept", "playlist", r.playlist.Name(), "err", err)
	}
}

// restore takes the copy on disk where there is nothing newer.
func (r *reader) restore() {
	r.lineup.mu.Lock()
	have := r.state.list != nil
	r.lineup.mu.Unlock()
	if have || r.copy == "" {
		return
	}
	f, err := os.Open(r.copy)
	if err != nil {
		return // there is none yet
	}
	defer f.Close()
	text, err := limited(f)
	if err != nil {
		return
	}
	list, err := playlist.Parse(text)
	if err != nil {
		r.log.Warn("copy of a playlist cannot be used", "playlist", r.playlist.Name(), "err", err)
		return
	}
	r.lineup.mu.Lock()
	r.state.list, r.state.copied = list, true
	r.lineup.mu.Unlock()
}
