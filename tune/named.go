package tune

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"zapcast/catchup"
	"zapcast/failover"
	"zapcast/httpin"
	"zapcast/ingest"
	"zapcast/lineup"
)

const (
	// Bounds of the time that one source of a channel has for itself before the
	// next is tried beside it.
	patienceMin = 300 * time.Millisecond
	patienceMax = 1500 * time.Millisecond

	// openTimeout bounds the looking up of names for a source.
	openTimeout = 5 * time.Second
)

// find looks a path up among the channels that have names.
func (t *Tuner) find(path string) (lineup.Found, bool) {
	l := t.config.Load().Lineup
	if l == nil {
		return lineup.Found{}, false
	}
	return l.Table().Find(path)
}

// named returns the channel of a name. One whose only source is a group or an RTSP
// URL is that: whoever asks for it by its address watches the same channel. asked
// is the path that the viewer asked for; where its query names another moment,
// the first source that can go there plays it for him alone.
func (t *Tuner) named(ctx context.Context, found lineup.Found, asked, agent string) (Channel, error) {
	config := t.config.Load()
	c := found.Channel
	sources, key := c.Sources, "/"+c.Path
	if c.Edition > 0 {
		key += "#" + strconv.Itoa(c.Edition+1)
	}
	failing := failover.Config{Patience: patience(config.Silence, len(sources)), Logger: config.Logger.With("channel", key)}
	if found.Source >= 0 {
		sources = sources[found.Source : found.Source+1]
		key += "$" + sources[0].Label
	} else {
		failing.Switch = c.Switch
	}
	if i := slices.IndexFunc(sources, overRTSP); i >= 0 {
		path, _ := streamPath(sources[i])
		if path, ok := catchup.Ask(path, asked); ok {
			return t.Channel(ctx, path, agent)
		}
	}
	if path, ok := streamPath(sources[0]); ok && len(sources) == 1 {
		return t.Channel(ctx, path, agent)
	}
	upstreams := make([]failover.Upstream, len(sources))
	for i, s := range sources {
		upstreams[i] = failover.Upstream{Name: s.Name(), Open: t.opener(s)}
	}
	return Channel{
		Key:      key,
		Protocol: protocol(sources[0]),
		Open: func(r ingest.Receiver) (ingest.Source, error) {
			return failover.Open(r, upstreams, failing)
		},
	}, nil
}

// patience shares the time that a channel may be silent among its sources, so
// that each has been tried before it is over.
func patience(silence time.Duration, sources int) time.Duration {
	return min(max(silence/time.Duration(sources+1), patienceMin), patienceMax)
}

// streamPath is the path in the grammar that means a source; false: there is
// none.
func streamPath(s lineup.Source) (string, bool) {
	scheme, rest, _ := strings.Cut(s.URL, "://")
	if scheme != "rtp" && !overRTSP(s) {
		return "", false
	}
	return "/" + scheme + "/" + rest, true
}

func overRTSP(s lineup.Source) bool { return s.Scheme() == "rtsp" || s.Scheme() == "rtsps" }

func protocol(s lineup.Source) string {
	switch scheme := s.Scheme(); scheme {
	case "rtp":
		return "multicast"
	case "https":
		return "http"
	case "rtsps":
		return "rtsp"
	default:
		return scheme
	}
}

// opener returns what opens a source of a channel.
func (t *Tuner) opener(s lineup.Source) func(ingest.Receiver) (ingest.Source, error) {
	path, ok := streamPath(s)
	if !ok {
		config := t.config.Load()
		return func(ingest.Receiver) (ingest.Source, error) {
			source, err := httpin.Open(s.URL, httpin.Config{UserAgent: config.UserAgent, AllowRedirect: config.RTSP.Allows})
			if err != nil {
				return nil, err
			}
			return source, nil
		}
	}
	return func(r ingest.Receiver) (ingest.Source, error) {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		c, err := t.Channel(ctx, path, "")
		if err != nil {
			return nil, err
		}
		return c.Open(r)
	}
}
