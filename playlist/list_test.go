package playlist

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// same writes a list with its own URLs.
func same(l *List) string {
	var b []byte
	if l.Header != "" {
		b = append(b, l.Header+"\n"...)
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		b = e.Append(b, func(i int) (string, string) { return e.Sources[i].URL, e.Sources[i].Label })
	}
	for _, line := range l.Trailer {
		b = append(b, line+"\n"...)
	}
	return string(b)
}

func TestAppend_leavesTheRest(t *testing.T) {
	const text = `#EXTM3U x-tvg-url="http://h/e.xml" catchup="append" odd
# a comment
#EXTINF:-1 tvg-id="1" tvg-name="O" unknown="ü" catchup-days=7 group-title="A",One
#EXTVLCOPT:http-user-agent=X
#KODIPROP:inputstream=y
rtp://239.1.1.1:5000?fcc=10.0.0.1:8027$4K
rtp://239.1.1.2:5000$HD
# another
#EXTINF:-1,Two ${(b)yyyyMMddHHmmss:utc}
mms://h/2
# the end
`
	if diff := cmp.Diff(text, same(parse(t, text))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAppend_leavesOut(t *testing.T) {
	l := parse(t, "#EXTINF:-1,One\nrtp://239.1.1.1:1$4K\n# between\nrtp://239.1.1.1:2$HD\n")
	got := l.Entries[0].Append([]byte("before\n"), func(i int) (string, string) {
		if i == 0 {
			return "", ""
		}
		return "http://h/One/HD", "HD"
	})
	if want := "before\n#EXTINF:-1,One\n# between\nhttp://h/One/HD$HD\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = l.Entries[0].Append([]byte("before\n"), func(int) (string, string) { return "", "" })
	if string(got) != "before\n" {
		t.Errorf("no source wanted: got %q, want nothing", got)
	}
}

func TestAppend_catchupJoiner(t *testing.T) {
	tests := []struct{ name, attributes, url, want string }{
		{"no query", `catchup="append" catchup-source="&p={utc}"`, "http://h/1", `catchup-source="?p={utc}"`},
		{"a query", `catchup="append" catchup-source="?p={utc}"`, "http://h/1?t=x", `catchup-source="&p={utc}"`},
		{"right already", `catchup="append" catchup-source="?p={utc}"`, "http://h/1", `catchup-source="?p={utc}"`},
		{"other name", `catchup-type="append" catchup-source="&p={utc}"`, "http://h/1", `catchup-source="?p={utc}"`},
		{"a path", `catchup="append" catchup-source="/p"`, "http://h/1", `catchup-source="/p"`},
		{"other mode", `catchup="default" catchup-source="&p={utc}"`, "http://h/1", `catchup-source="&p={utc}"`},
		{
			"many placeholders", `catchup="append" catchup-source="&p=` + strings.Repeat("${utc:yyyy}", 900) + `"`, "http://h/1",
			`catchup-source="?p=` + strings.Repeat("${utc:yyyy}", 900) + `"`,
		},
	}
	for _, tt := range tests {
		l := parse(t, "#EXTINF:-1 "+tt.attributes+",One\nrtp://239.1.1.1:1\n")
		got := string(l.Entries[0].Append(nil, func(int) (string, string) { return tt.url, "" }))
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q in it", tt.name, got, tt.want)
		}
	}
}

func TestNew(t *testing.T) {
	e := New("One \"1\"\n", "A", "http://h/l.png", Source{URL: "rtp://239.1.1.1:1"})
	got := string(e.Append(nil, func(int) (string, string) { return "http://h/A/One", "" }))
	want := "#EXTINF:-1 tvg-logo=\"http://h/l.png\" group-title=\"A\",One '1' \nhttp://h/A/One\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzParse parses anything, and parses what is written of it to the same list.
func FuzzParse(f *testing.F) {
	f.Add("\ufeff#EXTM3U x-tvg-url=http://h/e.xml\"\r\n#EXTINF:-1 tvg-id=\"1\" group-title='A',One\r\nrtp://239.1.1.1:1$4K\nrtsp://h$HD?x\n")
	f.Add("#EXTINF:-1 catchup=\"append\" catchup-source=\"&a\",\n#EXTGRP:B\nhttp://h/${utc}\n#x")
	f.Add("rtp://239.1.1.1:1\n\xd1\xeb\xca\xd3\n#EXTINF:\n#EXTINF:,\n/a\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse([]byte(text))
		if err != nil {
			return
		}
		written := same(l)
		if strings.Contains(written, "append") {
			return // a joiner may be corrected
		}
		again, err := Parse([]byte(written))
		if err != nil {
			t.Fatalf("what was written of %q: %v", text, err)
		}
		if diff := cmp.Diff(written, same(again)); diff != "" {
			t.Errorf("written twice (-first +second):\n%s", diff)
		}
	})
}

// long is a list of n channels as operators' lists are.
func long(n int) []byte {
	var b strings.Builder
	b.WriteString("#EXTM3U x-tvg-url=\"http://192.0.2.1/epg.xml.gz\"\n")
	for i := range n {
		fmt.Fprintf(&b, "#EXTINF:-1 tvg-id=\"%d\" tvg-name=\"频道%d\" tvg-logo=\"http://192.0.2.1/logo/%d.png\" group-title=\"组%d\" "+
			"catchup=\"default\" catchup-source=\"rtsp://192.0.2.2/%d?playseek=${(b)yyyyMMddHHmmss}-${(e)yyyyMMddHHmmss}\",频道%d 高清\n"+
			"rtp://239.1.%d.%d:5000?fcc=192.0.2.3:8027\n", i, i, i, i%20, i, i, i>>8&255, i&255)
	}
	return []byte(b.String())
}

func BenchmarkParse(b *testing.B) {
	text := long(5000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if l, err := Parse(text); err != nil || len(l.Entries) != 5000 || len(l.Faults) != 0 {
			b.Fatalf("got %d entries, error %v", len(l.Entries), err)
		}
	}
}
