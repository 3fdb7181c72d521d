package lineup

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zapcast/playlist"
)

// Config says which channels there are.
type Config struct {
	// Channels are the configuration's own; they come first.
	Channels []Entry

	// Playlists follow in this order.
	Playlists []Playlist

	// Dir is where the last good copies of playlists from servers are kept.
	// Empty: they are not.
	Dir string

	// UserAgent is how the program names itself to servers. Default "zapcast".
	UserAgent string

	// Logger takes what an operator should know. Default: none.
	Logger *slog.Logger
}

// An Entry is one channel of the configuration.
type Entry struct {
	Name, Group, Logo string
	Sources           []Source // URLs as in a playlist
	Origin            string   // "zapcast.toml:12"
}

// A Playlist is a list of channels elsewhere.
type Playlist struct {
	// Source is the path of a file, or a http or https URL.
	Source string

	// Refresh is how often it is read again. 0: only when the configuration is.
	Refresh time.Duration
}

// Name is the source without passwords.
func (p Playlist) Name() string {
	if u, err := url.Parse(p.Source); err == nil && u.Host != "" {
		return u.Redacted()
	}
	return p.Source
}

// Remote reports whether the playlist comes from a server.
func (p Playlist) Remote() bool {
	u, err := url.Parse(p.Source)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// PlaylistStatus is a snapshot of one playlist.
type PlaylistStatus struct {
	Name     string           // its source, without passwords
	Channels int              // entries that it has
	Copy     bool             // what is shown is the copy on disk of an earlier run
	Read     time.Time        // when the source last brought it, or said that it is unchanged; zero: never
	Err      error            // why the source could not be read the last time; nil: it was
	Faults   []playlist.Fault // of the list
}

// A Lineup is the channels that have names, kept up to date. It is safe for
// concurrent use.
type Lineup struct {
	table atomic.Pointer[Table]
	files sync.WaitGroup // the goroutines of readers
	stop  context.CancelFunc

	mu      sync.Mutex // guards the rest
	cfg     Config
	readers []*reader
}

// Open returns the line-up of cfg. Playlists in files have been read when it
// returns, those of servers are there as they were last seen, and are asked
// for in the background.
func Open(cfg Config) *Lineup {
	l := &Lineup{stop: func() {}}
	l.table.Store(newBuilder(nil).done())
	l.Reconfigure(cfg)
	return l
}

// Table returns the line-up of this moment.
func (l *Lineup) Table() *Table { return l.table.Load() }

// Reconfigure takes another configuration, and reads every playlist again.
func (l *Lineup) Reconfigure(cfg Config) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l.Close()
	ctx, stop := context.WithCancel(context.Background())
	l.mu.Lock()
	old := l.readers
	l.cfg, l.stop, l.readers = cfg, stop, nil
	for _, p := range cfg.Playlists {
		r := &reader{playlist: p, lineup: l, agent: cfg.UserAgent, log: cfg.Logger}
		if r.remote = p.Remote(); r.remote && cfg.Dir != "" {
			r.copy = copyPath(cfg.Dir, p.Source)
		}
		if i := slices.IndexFunc(old, func(o *reader) bool { return o.playlist.Source == p.Source }); i >= 0 {
			r.state = old[i].state
		}
		l.readers = append(l.readers, r)
	}
	readers := l.readers
	l.mu.Unlock()
	for _, r := range readers {
		if r.remote {
			r.restore()
		} else {
			r.read(ctx)
		}
	}
	l.rebuild()
	for _, r := range readers {
		l.files.Go(func() { r.run(ctx) })
	}
}

// Close ends the reading of playlists and waits for it.
func (l *Lineup) Close() {
	l.mu.Lock()
	stop := l.stop
	l.mu.Unlock()
	stop()
	l.files.Wait()
}

// rebuild makes the table anew.
func (l *Lineup) rebuild() {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := newBuilder(l.table.Load())
	for i := range l.cfg.Channels {
		c := &l.cfg.Channels[i]
		lines := make([]playlist.Source, len(c.Sources))
		for j, s := range c.Sources {
			lines[j] = playlist.Source{URL: s.URL, Label: s.Label}
		}
		e := playlist.New(c.Name, c.Group, c.Logo, lines...)
		b.entry(&e, c.Origin)
	}
	for _, r := range l.readers {
		if r.state.list != nil {
			b.list(r.state.list, r.playlist.Name())
		}
	}
	l.table.Store(b.done())
}

// Playlists returns a snapshot of the playlists, in the order of the
// configuration.
func (l *Lineup) Playlists() []PlaylistStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]PlaylistStatus, 0, len(l.readers))
	for _, r := range l.readers {
		s := PlaylistStatus{Name: r.playlist.Name(), Copy: r.state.copied, Read: r.state.at, Err: r.state.err}
		if list := r.state.list; list != nil {
			s.Channels, s.Faults = len(list.Entries), list.Faults
		}
		out = append(out, s)
	}
	return out
}
