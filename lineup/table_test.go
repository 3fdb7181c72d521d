package lineup

import (
	"fmt"
	"strings"
	"testing"

	"zapcast/playlist"

	"github.com/google/go-cmp/cmp"
)

// table makes the line-up of one playlist.
func table(t testing.TB, text string) *Table {
	t.Helper()
	l, err := playlist.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder(nil)
	b.list(l, "test")
	return b.done()
}

// show lists the channels, one a line: path, sources.
func show(t *Table) string {
	var b strings.Builder
	for _, c := range t.Channels {
		b.WriteString(c.Path)
		for _, s := range c.Sources {
			b.WriteString(" " + s.URL)
			if s.Label != "" {
				b.WriteString("$" + s.Label)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestTable_paths(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"name", "#EXTINF:-1,One\nrtp://239.1.1.1:1\n", "One rtp://239.1.1.1:1\n"},
		{"group", "#EXTINF:-1 group-title=\"A\",One\nrtp://239.1.1.1:1\n", "A/One rtp://239.1.1.1:1\n"},
		{
			"the same twice", "#EXTINF:-1,One\nrtp://239.1.1.1:1\n#EXTINF:-1,One\nrtp://239.1.1.2:1\n#EXTINF:-1,One\nrtp://239.1.1.3:1\n",
			"One rtp://239.1.1.1:1\nOne/2 rtp://239.1.1.2:1\nOne/3 rtp://239.1.1.3:1\n",
		},
		{"no name", "rtp://239.1.1.1:1?fcc=192.0.2.1:1\n", "239.1.1.1:1 rtp://239.1.1.1:1?fcc=192.0.2.1:1\n"},
		{"a reserved name", "#EXTINF:-1 group-title=\"api\",status\nrtp://239.1.1.1:1\n", "channel/api/status rtp://239.1.1.1:1\n"},
		{"slashes and dots", "#EXTINF:-1 group-title=\"/A//../B/\", One/Two \nrtp://239.1.1.1:1\n", "A/B/One/Two rtp://239.1.1.1:1\n"},
		{"labels in one entry", "#EXTINF:-1,One\nrtp://239.1.1.1:1$4K\nrtsp://h/1$HD\n", "One rtp://239.1.1.1:1$4K rtsp://h/1$HD\n"},
		{"labels in two entries", "#EXTINF:-1,One\nrtp://239.1.1.1:1$4K\n#EXTINF:-1,One\nrtsp://h/1$HD\n", "One rtp://239.1.1.1:1$4K rtsp://h/1$HD\n"},
		{"the same label in two entries", "#EXTINF:-1,One\nrtp://239.1.1.1:1$4K\n#EXTINF:-1,One\nrtsp://h/1$4K\n", "One rtp://239.1.1.1:1$4K\nOne/2 rtsp://h/1$4K\n"},
		{
			"other relays", "#EXTINF:-1,One\nhttp://192.0.2.1:4022/udp/239.1.1.1:1\nhttp://h/rtp/10.0.0.1@239.1.1.2:1?x=y\nhttp://h/rtsp/h2/1\nhttp://h/rtp/\nhttp://h/rtp/file.ts\n/udp/239.1.1.3:1\n",
			"One rtp://239.1.1.1:1 rtp://10.0.0.1@239.1.1.2:1?x=y rtsp://h2/1 http://h/rtp/ http://h/rtp/file.ts rtp://239.1.1.3:1\n",
		},
		{"an operator's portal", "#EXTINF:-1,One\nigmp://239.1.1.1:1|rtsp://h/1\n", "One rtp://239.1.1.1:1 rtsp://h/1\n"},
		{"HTTP", "#EXTINF:-1,One\nhttps://h/1.ts\n", "One https://h/1.ts\n"},
		{"nothing for us", "#EXTINF:-1,One\nmms://h/1\n#EXTINF:-1,Two\nhttps://h/1.m3u8?x\n", ""},
		{"VLC's at sign", "#EXTINF:-1,One\nudp://@239.1.1.1:1\n", "One rtp://239.1.1.1:1\n"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, show(table(t, tt.in))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestTable_find(t *testing.T) {
	tab := table(t, `#EXTINF:-1 group-title="央视",CCTV 1?%$
rtp://239.1.1.1:1$4K
rtp://239.1.1.2:1$HD
`)
	tests := []struct {
		target string
		ok     bool
		source int
	}{
		{"/%E5%A4%AE%E8%A7%86/CCTV%201%3F%25%24", true, -1},
		{"/央视/CCTV%201%3F%25%24?r2h-token=x", true, -1},
		{"/%E5%A4%AE%E8%A7%86/CCTV%201%3F%25%24/?x", true, -1},
		{"/%E5%A4%AE%E8%A7%86/CCTV%201%3F%25%24$4K", true, -1},
		{"/%E5%A4%AE%E8%A7%86/CCTV%201%3F%25%24/HD", true, 1},
		{"/%E5%A4%AE%E8%A7%86/CCTV%201%3F%25%24/4K?x=y$z", true, 0},
		{"/%E5%A4%AE%E8%A7%86/CCTV%201", false, 0},
		{"/%E5%A4%AE%E8%A7%86", false, 0},
		{"/", false, 0},
		{"/%zz", false, 0},
	}
	for _, tt := range tests {
		found, ok := tab.Find(tt.target)
		if ok != tt.ok || ok && (found.Source != tt.source || found.Channel != tab.Channels[0]) {
			t.Errorf("%s: got %v, %+v, want %v, source %d", tt.target, ok, found, tt.ok, tt.source)
		}
	}
	if path := Escape(tab.Channels[0].Path); path != "%E5%A4%AE%E8%A7%86/CCTV%201%3F%25%24" {
		t.Errorf("escaped: got %s", path)
	}
}

// VLC asks RTSP servers in lower case.
func TestTable_findInAnyCase(t *testing.T) {
	tab := table(t, `#EXTINF:-1 group-title="News",Öne
rtp://239.1.1.1:1
#EXTINF:-1,Two
rtp://239.1.1.2:1
#EXTINF:-1,TWO
rtp://239.1.1.3:1
`)
	for target, want := range map[string]string{
		"/news/öne": "News/Öne", "/news/%c3%b6ne": "News/Öne", "/NEWS/%C3%96NE?x": "News/Öne",
		"/Two": "Two", "/TWO": "TWO", "/two": "",
	} {
		found, ok := tab.Find(target)
		if ok != (want != "") || ok && found.Channel.Path != want {
			t.Errorf("%s: got %v, %+v, want %q", target, ok, found.Channel, want)
		}
	}
}

func TestTable_longName(t *testing.T) {
	tab := table(t, "#EXTINF:-1 group-title=\""+strings.Repeat("组", 900)+"\","+strings.Repeat("台", 900)+"\nrtp://239.1.1.1:1$"+strings.Repeat("高", 100)+"\n")
	for path := range tab.byPath {
		if n := len(Escape(path)); n > 1800 {
			t.Errorf("got a path of %d bytes, want one that fits a request", n)
		}
		if _, ok := tab.Find("/" + Escape(path)); !ok {
			t.Errorf("%q is not found", path)
		}
	}
}

func TestTable_keepsSwitches(t *testing.T) {
	old := table(t, "#EXTINF:-1,One\nrtp://239.1.1.1:1\n#EXTINF:-1,Two\nrtp://239.1.1.2:1\n")
	l, _ := playlist.Parse([]byte("#EXTINF:-1,Two\nrtp://239.1.1.2:1\n#EXTINF:-1,One\nrtp://239.1.1.9:1\n"))
	b := newBuilder(old)
	b.list(l, "test")
	now := b.done()
	if now.Channels[0].Switch != old.Channels[1].Switch || now.Channels[0].Edition != 0 {
		t.Error("got another switch or edition of a channel that is as it was")
	}
	if now.Channels[1].Switch == old.Channels[0].Switch || now.Channels[1].Edition != 1 {
		t.Error("got the same switch or edition of a channel with another source")
	}
}

const sample = `#EXTM3U x-tvg-url="http://h/e.xml"
# comment
#EXTINF:-1 tvg-id="1" unknown="ü" group-title="A",One
rtp://239.1.1.1:1?fcc=192.0.2.1:8027$4K
rtsp://h/1$HD
#EXTINF:-1 group-title="B" catchup="append" catchup-source="&p={utc}",Two, or 3
#EXTVLCOPT:x
rtp://239.1.1.2:1
#EXTINF:-1 group-title="B",Web
https://h/1.m3u8
`

func TestAppendM3U(t *testing.T) {
	tests := []struct {
		name string
		view View
		want string
	}{
		{"all", View{Base: "http://h:1/p"}, `#EXTM3U x-tvg-url="http://h/e.xml"
# comment
#EXTINF:-1 tvg-id="1" unknown="ü" group-title="A",One
http://h:1/p/A/One/4K$4K
http://h:1/p/A/One/HD$HD
#EXTINF:-1 group-title="B" catchup="append" catchup-source="?p={utc}",Two, or 3
#EXTVLCOPT:x
http://h:1/p/B/or%203
#EXTINF:-1 group-title="B",Web
https://h/1.m3u8
`},
		{"token", View{Base: "http://h", Query: "r2h-token=x", Group: "B"}, `#EXTM3U x-tvg-url="http://h/e.xml"
#EXTINF:-1 group-title="B" catchup="append" catchup-source="&p={utc}",Two, or 3
#EXTVLCOPT:x
http://h/B/or%203?r2h-token=x
#EXTINF:-1 group-title="B",Web
https://h/1.m3u8
`},
		{"one URL each", View{Base: "http://h", Single: true, Group: "A"}, `#EXTM3U x-tvg-url="http://h/e.xml"
# comment
#EXTINF:-1 tvg-id="1" unknown="ü" group-title="A",One
http://h/A/One
`},
		{"a label", View{Base: "http://h", Labels: []string{"HD"}, Group: "A"}, `#EXTM3U x-tvg-url="http://h/e.xml"
# comment
#EXTINF:-1 tvg-id="1" unknown="ü" group-title="A",One
http://h/A/One/HD$HD
`},
	}
	tab := table(t, sample)
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, string(tab.AppendM3U(nil, tt.view))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestAppendM3U_headersOfSeveral(t *testing.T) {
	b := newBuilder(nil)
	for _, h := range []string{`#EXTM3U x-tvg-url="http://a/e.xml"`, `#EXTM3U x-tvg-url="http://b/e.xml" catchup="append"`} {
		l, err := playlist.Parse([]byte(h + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		b.list(l, "test")
	}
	want := `#EXTM3U x-tvg-url="http://a/e.xml" catchup="append"` + "\n"
	if got := string(b.done().AppendM3U(nil, View{})); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSource_name(t *testing.T) {
	for in, want := range map[string]string{
		"rtsp://u:hush@h/1":    "rtsp://u:xxxxx@h/1",
		"rtp://239.1.1.1:1":    "rtp://239.1.1.1:1",
		"rtsp://u:hu sh@h/%zz": "rtsp://…",
	} {
		if got := (Source{URL: in}).Name(); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func BenchmarkAppendM3U(b *testing.B) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "#EXTINF:-1 tvg-id=\"%d\" tvg-logo=\"http://192.0.2.1/logo/%d.png\" group-title=\"组%d\",频道%d\nrtp://239.1.%d.%d:5000\n", i, i, i%20, i, i>>8, i&255)
	}
	tab := table(b, text.String())
	b.ReportAllocs()
	for b.Loop() {
		if n := len(tab.AppendM3U(nil, View{Base: "http://192.0.2.1:5140"})); n < 5000*100 {
			b.Fatalf("got %d bytes", n)
		}
	}
}
