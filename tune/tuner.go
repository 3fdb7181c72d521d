// Package tune turns what a viewer asks for into a channel that an engine can
// open, whichever front the viewer came through.
//
//	grammar.go      a stream URL taken apart: Target (target.go, parameters.go)
//	resolve.go      names and interface looked up: ingest.FlowSpec
//	tuner.go        the channel: its key, and what opens its source
//	named.go        the same for channels that have a name, with several sources
//
// URLs follow udpxy, msd_lite and rtp2httpd; docs/urls.md is the grammar. They
// are taken from the request line as it stands: they hold "//", "%" and ":"
// where a tidying router would change them.
package tune

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"zapcast/fcc"
	"zapcast/ingest"
	"zapcast/lineup"
	"zapcast/rtsp"
)

// Config holds the settings of a Tuner. The zero value works.
type Config struct {
	// Interface is the name of the network interface to join groups on where a
	// request names none. Default: empty, the routing table's choice.
	Interface string

	// RTSP opens /rtsp/ URLs. Default: nil, there are none.
	RTSP *rtsp.Client

	// Lineup knows the channels that have names. Default: none.
	Lineup *lineup.Lineup

	// Silence is when a channel without data ends. Within it, the sources of a
	// channel that has several are tried one after the other. Default 5 s.
	Silence time.Duration

	// UserAgent is how the program names itself to HTTP servers. Default
	// "zapcast".
	UserAgent string

	// Logger takes changes of a channel's source. Default: none.
	Logger *slog.Logger
	// FCC is how bursts are asked for.
	FCC fcc.Config
	// RepairLatency is how long a hole waits at most for what may repair it.
	// Default 400 ms.
	RepairLatency time.Duration
}

// A Tuner resolves requests. It is safe for concurrent use.
type Tuner struct {
	config   atomic.Pointer[Config]
	resolver Resolver
	book     *fcc.Book
	memory   ingest.RepairMemory
}

// New returns a tuner that looks names up with resolver.
func New(config Config, resolver Resolver) *Tuner {
	t := &Tuner{resolver: resolver, book: fcc.NewBook()}
	t.Reconfigure(config)
	return t
}

// Reconfigure changes the settings for requests to come.
func (t *Tuner) Reconfigure(config Config) {
	if config.Silence <= 0 {
		config.Silence = 5 * time.Second
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	t.config.Store(&config)
}

// FCCServers returns what was learned of each server of fast channel change.
func (t *Tuner) FCCServers(now time.Time) []fcc.ServerStatus { return t.book.Status(now) }

// A Channel is what a viewer has asked for, resolved.
type Channel struct {
	// Key is the same for all requests that mean the same upstream.
	Key string

	// Protocol is how the upstream is reached: "multicast", "rtsp" or "http". Of
	// a channel with several sources, it is that of the first.
	Protocol string

	// Open opens the upstream. It may block. A *StatusError is the viewer's own
	// fault, or the upstream's word for him.
	Open func(ingest.Receiver) (ingest.Source, error)

	// Describe asks the upstream about the stream and plays nothing; nil where
	// there is nobody to ask. Errors are as with Open.
	Describe func(context.Context) (Description, error)

	// OnlyDescribe says that the viewer wants no more than the description.
	OnlyDescribe bool

	// Ignored says in plain words which parameters of the request were left
	// aside, and why.
	Ignored []string
}

// Stream reports whether path, query included, is in the grammar's realm or
// names a channel. What does neither may have another meaning to a front.
func (t *Tuner) Stream(path string) bool {
	if _, ok := cutRTSP(path); ok {
		return true
	}
	if _, ok := cutStream(path); ok {
		return true
	}
	_, ok := t.find(path)
	return ok
}

// Channel returns the channel that path means, looking up the names in it until
// ctx ends. agent is the viewer's User-Agent, or empty: it may tell his zone, for
// times without one. It opens nothing. Every error is a *StatusError.
func (t *Tuner) Channel(ctx context.Context, path, agent string) (Channel, error) {
	if url, ok := cutRTSP(path); ok {
		return t.rtspChannel(url, agent, time.Now())
	}
	if _, ok := cutStream(path); !ok {
		if found, ok := t.find(path); ok {
			return t.named(ctx, found, path, agent)
		}
	}
	target, err := Parse(path)
	if err != nil {
		return Channel{}, err
	}
	config := t.config.Load()
	spec, err := t.resolver.flow(ctx, target, config.Interface)
	if err != nil {
		return Channel{}, err
	}
	burst := t.fcc(ctx, &target)
	asked := target.Spec.Interface != "" || target.InterfaceIndex != 0
	repair := ingest.RepairConfig{Parity: target.FEC, Latency: config.RepairLatency, Memory: &t.memory}
	key := spec.String()
	if text := repair.String(); text != "" {
		key += "?" + text
	}
	return Channel{
		Key:      key,
		Protocol: "multicast",
		Ignored:  target.Ignored,
		Open: func(receiver ingest.Receiver) (ingest.Source, error) {
			source, err := open(receiver, spec, burst, repair, config.FCC, t.book)
			switch {
			case err == nil:
				return source, nil
			case asked && errors.Is(err, ingest.ErrInterface):
				return nil, badRequest("%v", err)
			}
			return nil, err
		},
	}, nil
}

// fcc returns what is to be asked of which server, nil: nothing. A server that
// cannot be found only costs the fast change.
func (t *Tuner) fcc(ctx context.Context, target *Target) *fcc.Request {
	if target.FCC == "" {
		return nil
	}
	server, err := t.resolver.server(ctx, target.FCC)
	request := fcc.Request{Server: server, Dialect: target.FCCType}
	if err == nil {
		err = request.Validate()
	}
	if err != nil {
		target.ignore("fcc", target.FCC, err.Error())
		return nil
	}
	return &request
}

// open opens a group, with a burst in front of it where one is asked for.
func open(receiver ingest.Receiver, spec ingest.FlowSpec, burst *fcc.Request, repair ingest.RepairConfig, config fcc.Config, book *fcc.Book) (ingest.Source, error) {
	if burst == nil {
		source, err := ingest.OpenMulticast(receiver, spec)
		if err != nil {
			return nil, err // and not a nil *Multicast that is no nil Source
		}
		source.Repair(receiver, repair)
		return source, nil
	}
	source, err := fcc.Open(receiver, spec, *burst, config, book)
	if err != nil {
		return nil, err
	}
	source.Repair(receiver, repair)
	return source, nil
}
