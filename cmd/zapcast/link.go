package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"zapcast/access"
	"zapcast/lineup"
)

const linkUsage = `usage: zapcast link --config FILE [--for 2h] [--base URL] CHANNEL

Prints a URL that plays one channel without a token until its time is over.
CHANNEL is the path of a channel ("Group/Name") or a stream ("/rtp/239.1.1.1:5000").
It is signed with http.link-key of FILE; whoever has the file can sign.

  --for DURATION   how long the link plays (default 2h)
  --base URL       what goes before the path (default http://HOST:5140 and http.prefix)
`

// runLink signs a link to a stream.
func runLink(_ context.Context, args []string, stdout, _ io.Writer) error {
	var opts options
	fs := flag.NewFlagSet("link", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&opts.file, "config", "", "")
	lasts := fs.Duration("for", 2*time.Hour, "")
	base := fs.String("base", "", "")
	channel := ""
	for rest := args; ; { // flags may follow the channel
		if err := fs.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				fmt.Fprint(stdout, linkUsage)
				return err
			}
			return usageError{fmt.Errorf("link: %w", err)}
		}
		if rest = fs.Args(); len(rest) == 0 {
			break
		}
		if channel != "" {
			return usageError{fmt.Errorf("link: expected one channel, found %q and %q", cut(channel), cut(rest[0]))}
		}
		channel, rest = rest[0], rest[1:]
	}
	switch {
	case opts.file == "":
		return usageError{errors.New("link: expected --config FILE, found no file with http.link-key")}
	case channel == "":
		return usageError{errors.New("link: expected a channel, found none")}
	case *lasts <= 0:
		return usageError{fmt.Errorf("link: expected a duration above zero in --for, found %v", *lasts)}
	}
	cfg, err := opts.load()
	if err != nil {
		return err
	}
	if cfg.linkKey == "" {
		return fmt.Errorf("%s: http.link-key: expected a secret that signs links, found none", opts.file)
	}
	path, query, _ := strings.Cut(strings.TrimPrefix(channel, "/"), "?")
	if !strings.Contains(path, "%") {
		path = escapePath(path)
	}
	target := "/" + path
	sep := "?"
	if query != "" {
		target, sep = target+"?"+query, "&"
	}
	if *base == "" {
		*base = "http://HOST:5140" + cfg.prefix
	}
	signed := access.Sign(cfg.linkKey, target, time.Now().Add(*lasts))
	fmt.Fprintf(stdout, "%s%s%s%s=%s\n", strings.TrimSuffix(*base, "/"), target, sep, access.LinkParameter, signed)
	return nil
}

// escapePath escapes a path, but for what stream URLs are made of.
func escapePath(path string) string {
	escaped := lineup.Escape(path)
	for _, c := range []string{":", "@", "[", "]"} {
		escaped = strings.ReplaceAll(escaped, fmt.Sprintf("%%%02X", c[0]), c)
	}
	return escaped
}
