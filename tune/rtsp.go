package tune

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"zapcast/catchup"
	"zapcast/httpin"
	"zapcast/ingest"
	"zapcast/rtsp"
)

// A Description is what a server tells of a stream before it plays.
type Description struct {
	Duration time.Duration // of a recording; 0: open-ended or not told
}

// cutRTSP returns the URL of a path that begins with /rtsp/ or /rtsps/. What
// follows is the rest of the URL as it stands.
func cutRTSP(path string) (url string, ok bool) {
	for _, scheme := range []string{"rtsp", "rtsps"} {
		if rest, ok := strings.CutPrefix(path, "/"+scheme+"/"); ok {
			return scheme + "://" + rest, true
		}
	}
	return "", false
}

// credentialSeed makes the mark of a password useless outside this process.
var credentialSeed = maphash.MakeSeed()

// private numbers the channels that are one viewer's own.
var private atomic.Int64

// rtspChannel returns the channel of an RTSP URL. A live one is shared by all who
// ask for the same; one that begins at another moment is nobody else's.
func (t *Tuner) rtspChannel(url, agent string, now time.Time) (Channel, error) {
	client := t.config.Load().RTSP
	if client == nil {
		return Channel{}, Refuse(http.StatusNotFound, "RTSP sources are switched off here")
	}
	url, _ = cutLabel(url)
	u, err := rtsp.ParseURL(url)
	if err != nil {
		return Channel{}, badRequest("%s", strings.TrimPrefix(err.Error(), "rtsp: "))
	}
	plan := catchup.New(u.Target, agent, now)
	if plan.Unfilled != "" {
		return Channel{}, badRequest("expected a moment in the place of %s, which the player has not filled in", Quote(plan.Unfilled))
	}
	u.Target = plan.Target
	if plan.Interface != "" {
		if _, err := t.resolver.InterfaceByName(plan.Interface); err != nil {
			return Channel{}, badRequest("unknown interface %s", Quote(plan.Interface))
		}
	}
	request := rtsp.Request{URL: u, Interface: plan.Interface, Range: plan.Range, Private: plan.Shifted}
	return Channel{
		Key:          rtspKey(request),
		Protocol:     "rtsp",
		OnlyDescribe: plan.Duration,
		Describe: func(ctx context.Context) (Description, error) {
			d, err := client.Describe(ctx, request)
			return Description{Duration: d.Duration}, rtspRefusal(err)
		},
		Open: func(receiver ingest.Receiver) (ingest.Source, error) {
			source, err := client.Open(receiver, request)
			if err == nil {
				return rtspSource{source}, nil
			}
			var failed *rtsp.Error
			if errors.As(err, &failed) && failed.Location != "" {
				return t.handOver(client, failed.Location, request.Private)
			}
			return nil, rtspRefusal(err)
		},
	}, nil
}

// handOver opens what an RTSP server redirects to over HTTP. Where its servers
// may be is where RTSP servers may be.
func (t *Tuner) handOver(client *rtsp.Client, location string, private bool) (ingest.Source, error) {
	source, err := httpin.Open(location, httpin.Config{UserAgent: t.config.Load().UserAgent, Allow: client.Allows, Private: private})
	if err != nil {
		return nil, err // and not a nil *Source that is no nil ingest.Source
	}
	return source, nil
}

// rtspKey is the same for requests that one session serves: the resource, the
// interface, and who asks, of which only the name can be read.
func rtspKey(r rtsp.Request) string {
	key := r.URL.String()
	if r.Interface != "" {
		key += "%" + r.Interface
	}
	if r.URL.User != "" {
		key += fmt.Sprintf(" (as %s, %08x)", r.URL.User, uint32(maphash.String(credentialSeed, r.URL.User+"\x00"+r.URL.Password)))
	}
	if r.Private {
		if r.Range != "" {
			key += " (" + r.Range + ")"
		}
		key += fmt.Sprintf(" #%d", private.Add(1))
	}
	return key
}

// rtspSource tells viewers of the end in terms of HTTP.
type rtspSource struct{ *rtsp.Source }

func (s rtspSource) Ended() error { return rtspRefusal(s.Source.Ended()) }

// rtspRefusal makes the answer to a viewer out of a server's.
func rtspRefusal(err error) error {
	var failed *rtsp.Error
	if !errors.As(err, &failed) {
		return err
	}
	code := http.StatusServiceUnavailable
	switch failed.Status {
	case http.StatusNotFound, http.StatusForbidden:
		code = failed.Status
	case http.StatusUnauthorized: // the server's word to us, not ours to the viewer
		code = http.StatusBadGateway
	case http.StatusRequestTimeout:
		code = http.StatusGatewayTimeout
	}
	return &StatusError{code, failed.Reason}
}
