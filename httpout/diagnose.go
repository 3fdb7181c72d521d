package httpout

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"zapcast/access"
	"zapcast/diagnose"
	"zapcast/fanout"
	"zapcast/lineup"
	"zapcast/tune"
)

const (
	// lookTime is how long a diagnosis watches the channel: several packets of
	// the slowest radio, and a second or two of IGMP.
	lookTime = 3 * time.Second
	// sourceTime is how long it waits for the source to be there.
	sourceTime = 2 * time.Second
	// maxDiagnoses bounds the channels that are opened for diagnoses.
	maxDiagnoses = 4
)

// diagnose answers /api/diagnose?url=PATH or ?channel=ID: it opens the channel
// as a viewer would, watches for some seconds, and says what it found.
func (s *Server) diagnose(w http.ResponseWriter, r *http.Request) error {
	path, err := diagnosed(r.URL.Query())
	if err != nil {
		return err
	}
	select {
	case s.diagnoses <- struct{}{}:
		defer func() { <-s.diagnoses }()
	default:
		w.Header().Set("Retry-After", retryAfter)
		return tune.Refuse(http.StatusServiceUnavailable, "expected at most %d diagnoses at one time", maxDiagnoses)
	}
	facts, err := s.facts(r.Context(), path)
	if err != nil {
		return err
	}
	body, err := json.MarshalIndent(struct {
		Findings []diagnose.Finding `json:"findings"`
	}{diagnose.Explain(facts)}, "", "  ")
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", noCache)
	answer(s.config.Load(), w, r, http.StatusOK, "application/json", append(body, '\n'))
	return nil
}

// diagnosed is the path of the stream that a query names.
func diagnosed(query url.Values) (path string, err error) {
	if path = query.Get("url"); path != "" {
		return "/" + strings.TrimPrefix(path, "/"), nil
	}
	id := query.Get("channel")
	if id == "" {
		return "", tune.Refuse(http.StatusBadRequest, "expected ?url=PATH of a stream, or ?channel=ID as in /api/status")
	}
	if id[0] == '/' { // a channel that has a name
		return "/" + lineup.Escape(id[1:]), nil
	}
	if scheme, rest, ok := strings.Cut(id, "://"); ok && (scheme == "rtsp" || scheme == "rtsps") {
		return "/" + scheme + "/" + rest, nil
	}
	place, name, ok := strings.Cut(id, "%") // as ingest.FlowSpec has it
	if !ok {
		return "/rtp/" + place, nil
	}
	return "/rtp/" + place + "?r2h-ifname=" + url.QueryEscape(name), nil
}

// facts opens the channel, gives it lookTime, and gathers what is known then.
func (s *Server) facts(ctx context.Context, path string) (f diagnose.Facts, err error) {
	if !s.tuner.Stream(path) {
		return f, tune.Refuse(http.StatusBadRequest, "expected the path of a stream, found %s", tune.Quote(path))
	}
	channel, err := s.tuner.Channel(ctx, path, "")
	if err != nil {
		f.Refused = access.Redact(err.Error())
		return f, nil
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		lease, err := s.engine.Open(ctx, channel.Key, channel.Open)
		if err != nil {
			failed <- err
			return
		}
		<-ctx.Done()
		lease.Close()
	}()
	defer func() { cancel(); <-done }()

	before, err := s.opened(ctx, channel.Key, failed)
	if err != nil {
		f.Refused = access.Redact(err.Error())
		_, name, _ := strings.Cut(channel.Key, "%")
		diagnose.Around(ctx, &f, name, s.queries, 0)
		return f, nil
	}
	f.Group, f.Sender = diagnose.GroupOf(before.Source.Source)
	began := time.Now()
	diagnose.Around(ctx, &f, before.Source.Interface, s.queries, lookTime)
	f.Took = time.Since(began)
	f.Before = before.Source
	s.after(&f, channel.Key)
	return f, ctx.Err()
}

// opened waits until the channel has its source.
func (s *Server) opened(ctx context.Context, key string, failed <-chan error) (fanout.ChannelStatus, error) {
	deadline := time.NewTimer(sourceTime)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, c := range s.engine.Status().Channels {
			if c.ID == key && c.Source.Source != "" {
				return c, nil
			}
		}
		select {
		case err := <-failed:
			return fanout.ChannelStatus{}, err
		case <-deadline.C:
			return fanout.ChannelStatus{}, tune.Refuse(http.StatusGatewayTimeout, "its source did not open within %v", sourceTime)
		case <-ctx.Done():
			return fanout.ChannelStatus{}, ctx.Err()
		case <-tick.C:
		}
	}
}

// after fills in what the engine knows when the look is over.
func (s *Server) after(f *diagnose.Facts, key string) {
	status := s.engine.Status()
	for _, c := range status.Channels {
		switch {
		case c.ID == key:
			f.Opened = true
			f.Source, f.Seen = access.Redact(c.Source.Source), access.Redact(c.Seen)
			f.After, f.Codec, f.BitRate = c.Source, c.Codec, c.BitRate
			f.RandomAccess = c.LastRandomAccess
		case c.State != "live" && c.State != "lingering":
		case c.Source.Interface == f.Link.Name:
			f.Others++
		case c.Source.Interface != "":
			f.Elsewhere = c.Source.Interface
		}
	}
	for _, v := range status.Viewers {
		if v.Channel == key && v.Blocked {
			f.Blocked++
		}
	}
}
