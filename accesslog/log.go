// Package accesslog writes a line for each request that has been answered, and
// for each stream when its viewer has gone: in the format that nginx made known,
// or as JSON. Tokens and passwords are not written.
package accesslog

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"zapcast/access"
)

// JSON is the format of one JSON object a line, with every variable.
const JSON = "json"

// Combined is the format that is known under this name.
const Combined = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`

// fileMode lets the log be read by the group: it holds addresses of viewers.
const fileMode fs.FileMode = 0o640

// An Entry is one answered request.
type Entry struct {
	At        time.Time // when it had been answered
	Client    string    // address, with or without a port
	User      string    // name of the token; empty: none
	Method    string
	Target    string
	Proto     string // "HTTP/1.1"
	Host      string
	Status    int
	Bytes     int64         // of the body
	Took      time.Duration // since the request
	Referer   string
	Agent     string
	Channel   string        // of a stream; empty: it was none
	Start     string        // where a stream began: "history", "cold", "live"
	FirstByte time.Duration // of a stream, after the request; 0: none was sent
}

// variables are what a format may hold, in the order of the JSON form.
var variables = []struct {
	name  string
	value func(*Entry) any
}{
	{"time_iso8601", func(e *Entry) any { return e.At.Format(time.RFC3339) }},
	{"time_local", func(e *Entry) any { return e.At.Format("02/Jan/2006:15:04:05 -0700") }},
	{"msec", func(e *Entry) any { return seconds(time.Duration(e.At.UnixMilli()) * time.Millisecond) }},
	{"remote_addr", func(e *Entry) any { return address(e.Client) }},
	{"remote_user", func(e *Entry) any { return e.User }},
	{"request", func(e *Entry) any { return e.Method + " " + access.Redact(e.Target) + " " + e.Proto }},
	{"request_method", func(e *Entry) any { return e.Method }},
	{"request_uri", func(e *Entry) any { return access.Redact(e.Target) }},
	{"server_protocol", func(e *Entry) any { return e.Proto }},
	{"http_host", func(e *Entry) any { return e.Host }},
	{"status", func(e *Entry) any { return e.Status }},
	{"body_bytes_sent", func(e *Entry) any { return e.Bytes }},
	{"request_time", func(e *Entry) any { return seconds(e.Took) }},
	{"http_referer", func(e *Entry) any { return access.Redact(e.Referer) }},
	{"http_user_agent", func(e *Entry) any { return access.Redact(e.Agent) }},
	{"channel", func(e *Entry) any { return access.Redact(e.Channel) }},
	{"start", func(e *Entry) any { return e.Start }},
	{"first_byte_time", func(e *Entry) any { return seconds(e.FirstByte) }},
}

func seconds(d time.Duration) json.Number {
	return json.Number(strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', 3, 64))
}

// address cuts the port off.
func address(client string) string {
	if i := strings.LastIndexByte(client, ':'); i > 0 && (strings.Count(client, ":") == 1 || client[i-1] == ']') {
		client = client[:i]
	}
	return strings.Trim(client, "[]")
}

// A piece of a format is text, or else the index of a variable.
type piece struct {
	text     string
	variable int
}

// parse takes a format apart. "$name" and "${name}" are variables.
func parse(format string) ([]piece, error) {
	if format == JSON {
		return nil, nil
	}
	var pieces []piece
	for format != "" {
		text, rest, found := strings.Cut(format, "$")
		if text != "" {
			pieces = append(pieces, piece{text, -1})
		}
		if !found {
			break
		}
		rest, braced := strings.CutPrefix(rest, "{")
		n := 0
		for n < len(rest) && (rest[n] == '_' || 'a' <= rest[n] && rest[n] <= 'z' || '0' <= rest[n] && rest[n] <= '9') {
			n++
		}
		index := -1
		for i, v := range variables {
			if v.name == rest[:n] {
				index = i
			}
		}
		if index < 0 {
			return nil, fmt.Errorf("expected $ and the name of a variable, found $%s", rest[:n])
		}
		pieces = append(pieces, piece{"", index})
		if rest = rest[n:]; braced {
			closed := false
			if rest, closed = strings.CutPrefix(rest, "}"); !closed {
				return nil, fmt.Errorf("expected } behind ${%s, found none", variables[index].name)
			}
		}
		format = rest
	}
	return pieces, nil
}

// Check says what is wrong with a format.
func Check(format string) error {
	_, err := parse(format)
	return err
}

// A Log is a file that entries are written to. The zero value writes nothing. It
// is safe for concurrent use.
type Log struct {
	mu     sync.Mutex // guards the rest
	file   *os.File
	pieces []piece // nil: JSON
}

// Open begins to write to the file at path in a format, opening it anew even if
// it is the same: it may have been moved away. An empty path ends it.
func (l *Log) Open(path, format string) error {
	pieces, err := parse(format)
	if err != nil {
		return err
	}
	var file *os.File
	if path != "" {
		if file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, fileMode); err != nil {
			return err
		}
	}
	l.mu.Lock()
	old := l.file
	l.file, l.pieces = file, pieces
	l.mu.Unlock()
	if old != nil {
		return old.Close()
	}
	return nil
}

// On reports whether entries are written.
func (l *Log) On() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file != nil
}

// Write writes an entry, as one line and with one call. A write that fails is
// lost.
func (l *Log) Write(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_, _ = l.file.Write(append(line(l.pieces, &e), '\n'))
	}
}

// line writes an entry out.
func line(pieces []piece, e *Entry) []byte {
	var b []byte
	if pieces == nil {
		sep := byte('{')
		for _, v := range variables {
			value, err := json.Marshal(v.value(e))
			if err != nil {
				panic("accesslog: " + v.name + ": " + err.Error())
			}
			b = append(append(strconv.AppendQuote(append(b, sep), v.name), ':'), value...)
			sep = ','
		}
		return append(b, '}')
	}
	for _, p := range pieces {
		if p.variable < 0 {
			b = append(b, p.text...)
			continue
		}
		b = appendSafe(b, fmt.Sprint(variables[p.variable].value(e)))
	}
	return b
}

// appendSafe appends a value as nginx does: "-" for nothing, and what could
// forge a line or a field in hexadecimal.
func appendSafe(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	if s == "" {
		return append(b, '-')
	}
	for _, c := range []byte(s) {
		if c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}
