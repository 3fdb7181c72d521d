package lineup

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxSegment bounds a part of a path, in bytes: with each byte escaped, group,
// name and label stay within the longest request target.
const maxSegment = 180

// reserved are the first segments that mean something else.
var reserved = map[string]bool{
	"rtp": true, "udp": true, "rtsp": true, "rtsps": true, "http": true, "https": true, "igmp": true,
	"api": true, "assets": true, "page": true, "healthz": true, "metrics": true,
	"playlist.m3u": true, "playlist.m3u8": true, "epg.xml": true, "epg.xml.gz": true,
	"favicon.ico": true, "robots.txt": true, "status": true, "stat": true,
}

// pathOf makes the path of a channel: its group, if it has one, and its name.
func pathOf(group, name string) string {
	path := segment(name)
	if path == "" {
		path = "channel"
	}
	if g := segment(group); g != "" {
		path = g + "/" + path
	}
	first, _, _ := strings.Cut(path, "/")
	if reserved[strings.ToLower(first)] {
		path = "channel/" + path
	}
	return path
}

// segment makes text fit for a path. A slash in it stays one.
func segment(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	var parts []string
	for part := range strings.SplitSeq(s, "/") {
		if part = strings.TrimSpace(part); part != "" && part != "." && part != ".." {
			parts = append(parts, part)
		}
	}
	s = strings.Join(parts, "/")
	if len(s) > maxSegment {
		s = strings.TrimRight(strings.ToValidUTF8(s[:maxSegment], ""), "/ ")
	}
	return s
}

// free returns path, or with a number behind it the first that is not taken.
func free(path string, taken func(string) bool) string {
	if !taken(path) {
		return path
	}
	for n := 2; ; n++ {
		if p := path + "/" + strconv.Itoa(n); !taken(p) {
			return p
		}
	}
}

// Escape writes a path for a URL: every byte percent-encoded that could mean
// something there.
func Escape(path string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(3 * len(path))
	for _, c := range []byte(path) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// unescape takes the path out of a request target: without query and label,
// decoded, without the slashes around it.
func unescape(target string) (string, bool) {
	target, _, _ = strings.Cut(target, "?")
	target, _, _ = strings.Cut(target, "$")
	path, err := url.PathUnescape(target)
	if err != nil {
		return "", false
	}
	return strings.Trim(path, "/"), true
}
