package server

import (
	"strings"

	"zapcast/tune"
)

// track is the last part of the URL of a channel's only track.
const track = "trackID=0"

// A place is a request URL, taken apart: nothing of it is decoded or tidied.
type place struct {
	base string // without user information, track and final slash
	path string // what follows the host: what names the channel
}

// parsePlace takes apart a URL like rtsp://HOST:PORT/rtp/GROUP:PORT?fcc=…, with or
// without the track behind it. Clients put the track behind the query.
func parsePlace(url string) (place, error) {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok || !strings.EqualFold(scheme, "rtsp") {
		return place{}, tune.Refuse(400, "expected a URL that begins with rtsp://, found %s", tune.Quote(url))
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return place{}, tune.Refuse(404, "expected a channel behind the host, as in rtsp://HOST/rtp/GROUP:PORT, found %s", tune.Quote(url))
	}
	host, path := rest[:slash], rest[slash:]
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	if bare, ok := strings.CutSuffix(path, "/"+track); ok {
		path = bare
	}
	path = strings.TrimSuffix(path, "/")
	return place{base: oneLine("rtsp://" + host + path), path: path}, nil
}
