package playlist

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// want is what matters of an entry, on lines of its own.
func show(l *List) string {
	var b strings.Builder
	for _, e := range l.Entries {
		fmt.Fprintf(&b, "%s|%s|%s", e.Group, e.Name, e.Logo)
		for _, s := range e.Sources {
			fmt.Fprintf(&b, " %s$%s@%d", s.URL, s.Label, s.Line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func parse(t *testing.T, text string) *List {
	t.Helper()
	l, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestParse(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "#EXTM3U\n#EXTINF:-1,One\nrtp://239.1.1.1:5000\n", "|One| rtp://239.1.1.1:5000$@3\n"},
		{"no header", "#EXTINF:0,One\nudp://239.1.1.1:5000", "|One| udp://239.1.1.1:5000$@2\n"},
		{"byte-order mark, CRLF, no final newline", "\ufeff#EXTM3U x-tvg-url=\"http://h/e.xml\"\r\n#EXTINF:-1,One\r\nrtp://239.1.1.1:5000", "|One| rtp://239.1.1.1:5000$@3\n"},
		{"group and logo", `#EXTINF:-1 tvg-id="1" tvg-logo="http://h/l.png" group-title="A, B",One` + "\nrtp://239.1.1.1:1\n", "A, B|One|http://h/l.png rtp://239.1.1.1:1$@2\n"},
		{"group on a line of its own", "#EXTINF:-1,One\n#EXTGRP: News\nrtp://239.1.1.1:1\n", "News|One| rtp://239.1.1.1:1$@3\n"},
		{"group-title wins", "#EXTINF:-1 group-title=\"A\",One\n#EXTGRP:B\nrtp://239.1.1.1:1\n", "A|One| rtp://239.1.1.1:1$@3\n"},
		{"name of tvg-name", `#EXTINF:-1 tvg-name="One",` + "\nrtp://239.1.1.1:1\n", "|One| rtp://239.1.1.1:1$@2\n"},
		{"no comma outside quotes", `#EXTINF:-1 tvg-id="1,5" TV` + "\nrtp://239.1.1.1:1\n", "|| rtp://239.1.1.1:1$@2\n"},
		{"a quote in the name", `#EXTINF:-1 group-title="A",5" TV` + "\nrtp://239.1.1.1:1\n", `A|5" TV| rtp://239.1.1.1:1$@2` + "\n"},
		{"three sources", "#EXTINF:-1,One\nrtp://239.1.1.1:1$4K\nrtsp://h/1$HD\nhttp://h/1.ts?a=b$SD\n", "|One| rtp://239.1.1.1:1$4K@2 rtsp://h/1$HD@3 http://h/1.ts?a=b$SD@4\n"},
		{"URLs alone", "rtp://239.1.1.1:1\nrtp://239.1.1.2:1\n", "|| rtp://239.1.1.1:1$@1\n|| rtp://239.1.1.2:1$@2\n"},
		{"entry without URL", "#EXTINF:-1,Gone\n#EXTINF:-1,One\nrtp://239.1.1.1:1\n", "|One| rtp://239.1.1.1:1$@3\n"},
		{"label before the query", "#EXTINF:-1,One\nrtp://239.1.1.1:1$HD?token=x\n", "|One| rtp://239.1.1.1:1?token=x$HD@2\n"},
		{"label after the query", "#EXTINF:-1,One\nrtp://239.1.1.1:1?token=x$HD\n", "|One| rtp://239.1.1.1:1?token=x$HD@2\n"},
		{"template at the end", "#EXTINF:-1,One\nhttp://h/${utc}\n", "|One| http://h/${utc}$@2\n"},
		{"dollar in a path", "#EXTINF:-1,One\nhttp://h/$a/b\n", "|One| http://h/$a/b$@2\n"},
		{"unknown scheme", "#EXTINF:-1,One\nmms://h/1\n", "|One| mms://h/1$@2\n"},
		{"unicode", "#EXTINF:-1 group-title=\"央视\",CCTV-1 综合\nrtp://239.1.1.1:1$高清\n", "央视|CCTV-1 综合| rtp://239.1.1.1:1$高清@2\n"},
		{"quote and semicolon in an address", "#EXTINF:-1,One\nhttp://h/a';reboot;'\n", "|One| http://h/a';reboot;'$@2\n"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, show(parse(t, tt.in))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestParse_GBK(t *testing.T) {
	const text = "#EXTM3U\n#EXTINF:-1 group-title=\"央视\",综合\nrtp://239.1.1.1:1$高清\n"
	gbk, err := simplifiedchinese.GBK.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(show(parse(t, text)), show(parse(t, gbk))); diff != "" {
		t.Errorf("got another list than from UTF-8 (-want +got):\n%s", diff)
	}
}

func TestParse_faults(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"entry without URL", "#EXTINF:-1,Gone\n#EXTINF:-1,One\nrtp://239.1.1.1:1\n", "line 2: expected a URL for the entry before, found the next entry"},
		{"label before the query", "#EXTINF:-1,One\nrtp://239.1.1.1:1$HD?token=x\n", `line 2: expected the label at the end of the line, found "?token=x" after it`},
		{"no name", "#EXTINF:-1\nrtp://239.1.1.1:1\n", `line 2: expected a comma and a name at the end of "#EXTINF:-1", found none`},
		{"long line", "#EXTINF:-1," + strings.Repeat("x", maxLine) + "\nrtp://239.1.1.1:1\n", "line 1: expected a line of at most 16384 bytes, found 16395: left out"},
		{"no URL", "#EXTINF:-1,One\n239.1.1.1:1\nrtp://239.1.1.1:1\n", `line 2: expected a URL or a line that begins with #, found "239.1.1.1:1": left as it is`},
		{"many sources", "#EXTINF:-1,One\n" + strings.Repeat("rtp://239.1.1.1:1$x\n", maxSources+1), "line 34: expected at most 32 sources of one entry, found more: left out"},
	}
	for _, tt := range tests {
		var got []string
		for _, f := range parse(t, tt.in).Faults {
			got = append(got, f.String())
		}
		if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestParse_refuses(t *testing.T) {
	tests := []struct {
		name, in, want string
		noList         bool
	}{
		{"nothing", "", "found nothing", true},
		{"a page", "<!DOCTYPE html>\n<title>Log in</title>", `expected a line #EXTM3U or URLs, found "<!DOCTYPE html>\n<title>Log in</title>"`, true},
		{"comments", "# nothing\n", "expected a line #EXTM3U or URLs", true},
		{"HLS", "#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:4,\na.ts\n", "line 2: no list of channels: expected channels, found an HLS playlist", true},
		{"binary", "#EXTM3U\x00", "found a zero byte", true},
		{"too long", "#EXTM3U\n" + strings.Repeat("#\n", MaxBytes/2), "expected at most 10485760 bytes, found 10485768", false},
		{"too many", strings.Repeat("rtp://239.1.1.1:1\n", maxEntries+1), "line 50001: expected at most 50000 entries, found more", false},
	}
	for _, tt := range tests {
		_, err := Parse([]byte(tt.in))
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrNoList) != tt.noList {
			t.Errorf("%s: got error %v, want one with %q, no list: %v", tt.name, err, tt.want, tt.noList)
		}
	}
	if _, err := Parse([]byte("#EXTM3U\n")); err != nil {
		t.Errorf("an empty list: got %v, want none", err)
	}
}

func TestAttribute(t *testing.T) {
	tests := []struct{ name, line, key, want string }{
		{"quoted", `#EXTM3U x-tvg-url="http://h/e.xml"`, "x-tvg-url", "http://h/e.xml"},
		{"any case", `#EXTM3U X-TVG-URL="http://h/e.xml"`, "x-tvg-url", "http://h/e.xml"},
		{"opening quote missing", `#EXTM3U x-tvg-url=http://h/e.xml" a="b"`, "x-tvg-url", "http://h/e.xml"},
		{"closing quote missing", `#EXTM3U a="b" x-tvg-url="http://h/e.xml`, "x-tvg-url", "http://h/e.xml"},
		{"escaped quotes", `#EXTM3U x-tvg-url=\"http://h/e.xml\"`, "x-tvg-url", "http://h/e.xml"},
		{"single quotes", `#EXTINF:-1 tvg-name='A B' x="y",N`, "tvg-name", "A B"},
		{"no quotes", `#EXTINF:-1 tvg-chno=12,N`, "tvg-chno", "12"},
		{"empty", `#EXTINF:-1 a="" b="c",N`, "b", "c"},
		{"after a word alone", `#EXTINF:-1 word b="c",N`, "b", "c"},
		{"not of the name", `#EXTINF:-1,a="b"`, "a", ""},
		{"absent", `#EXTINF:-1 a="b",N`, "c", ""},
		{"no attributes", `#EXTM3U`, "a", ""},
	}
	for _, tt := range tests {
		if got := Attribute(tt.line, tt.key); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A number is one that can be dialled.
func TestParse_number(t *testing.T) {
	for attribute, want := range map[string]int{`tvg-chno="12"`: 12, `tvg-chno=7`: 7, `tvg-chno="BBC 1"`: 0, `tvg-chno="-3"`: 0, ``: 0} {
		l, err := Parse([]byte("#EXTM3U\n#EXTINF:-1 " + attribute + ",One\nrtp://239.1.1.1:1\n"))
		if err != nil || l.Entries[0].Number != want {
			t.Errorf("%s: got %d, %v, want %d", attribute, l.Entries[0].Number, err, want)
		}
	}
}
