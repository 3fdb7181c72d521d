package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server below a prefix, with tokens and a long playlist, of which the page
// shows everything but the tokens.
func (b *browser) longList(t *testing.T) {
	const channels = 5000
	list := filepath.Join(t.TempDir(), "tv.m3u")
	var m3u strings.Builder
	for i := range channels {
		fmt.Fprintf(&m3u, "#EXTINF:-1 group-title=\"组 %d\" tvg-logo=\"data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7\",频道 %d\nrtp://239.1.%d.%d:5000\n", i%20, i+1, i>>8, i&255)
	}
	if err := os.WriteFile(list, []byte(m3u.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const secret, poor = "se;c&r$e%t", "wall-token"
	s := serveOnLoopback(t, fmt.Sprintf(`http.prefix = "/tv"
[[playlist]]
source = %q
[[token]]
name = "all"
secret = %q
rights = ["admin"]
[[token]]
name = "wall"
secret = %q
rights = ["view"]
[[token]]
name = "player"
secret = "play-token"
rights = ["stream"]
`, list, secret, poor))
	at := "http://" + s.addr + "/tv/"

	page := b.open(t, at+"?r2h-token="+url.QueryEscape(secret), 1440, 900)
	page.until(`document.querySelectorAll(".list .row").length > 10`)
	var shown struct {
		Rows, Height int
		Search, Text string
		Cookie       string
	}
	page.eval(`({rows: document.querySelectorAll(".list .row").length, height: document.querySelector(".rows").offsetHeight,
		search: location.search, cookie: document.cookie, text: document.documentElement.outerHTML})`, &shown)
	if shown.Rows > 60 || shown.Height != channels*56 {
		t.Errorf("got %d rows in the page, %d pixels high, want few, as high as %d", shown.Rows, shown.Height, channels)
	}
	if shown.Search != "" || shown.Cookie != "" || strings.Contains(shown.Text, "token") {
		t.Errorf("the page shows a token: address %q, cookie %q, or its text", shown.Search, shown.Cookie)
	}
	page.scrolls(t)

	page.eval(`{const s = document.querySelector(".find input"); s.value = "4999 频道"; s.dispatchEvent(new Event("input"))}`, nil)
	page.until(`[...document.querySelectorAll(".list .row:not([hidden])")].map((r) => r.querySelector(".name").textContent).join() === "频道 4999"`)
	page.eval(`{const s = document.querySelector(".find input"); s.value = ""; s.dispatchEvent(new Event("input"))}`, nil)
	page.eval(`{const g = document.querySelector(".find select"); g.value = "组 3"; g.dispatchEvent(new Event("change"))}`, nil)
	page.until(fmt.Sprintf(`document.querySelector(".rows").offsetHeight === %d`, channels/20*56))
	page.until(`document.querySelector(".list img")`)

	// Channel 4 is the first of group 3, 24 the next.
	for _, k := range []struct{ key, name string }{{"ArrowDown", "频道 4"}, {"ArrowDown", "频道 24"}, {"ArrowUp", "频道 4"}, {"ArrowUp", "频道 4984"}, {"1", ""}, {"7", "频道 17"}} {
		page.press(k.key)
		if k.name != "" {
			page.until(fmt.Sprintf(`document.querySelector("h1").textContent === %q`, k.name))
		}
	}

	page.eval(`location.hash = "#/log"`, nil)
	page.until(`document.querySelector(".level select:not([disabled])")?.value === "info"`)
	page.until(`document.querySelector(".log-lines").textContent.includes("msg=listening")`)
	page.eval(`{const s = document.querySelector(".level select"); s.value = "debug"; s.dispatchEvent(new Event("change"))}`, nil)
	page.until(`document.querySelector(".log-lines").textContent.includes("log level set")`)

	wall := b.open(t, at+"?r2h-token="+poor+"#/log", 390, 900)
	wall.until(`document.querySelector(".log-lines").textContent.includes("log level set")`)
	var can bool
	wall.eval(`new Promise((done) => setTimeout(() => done(!document.querySelector(".level select").disabled), 300))`, &can)
	if can {
		t.Error("who may only look can choose a log level")
	}
	wall.expect("403 (Forbidden)")
	wall.eval(`location.hash = "#/watch"`, nil)
	wall.until(`document.querySelector(".picker .empty").textContent.includes("does not grant")`)
	wall.eval(`location.hash = "#/status"`, nil)
	wall.until(`document.querySelector("main.status.powerless")`)
}

// scrolls runs through the list and measures how busy that keeps the page. (How
// far the frames are apart depends on what else the machine does.)
func (p *tab) scrolls(t *testing.T) {
	t.Helper()
	const frames = 120
	busy := func() (seconds float64) {
		t.Helper()
		var got struct {
			Metrics []struct {
				Name  string
				Value float64
			}
		}
		p.call("Performance.getMetrics", nil, &got)
		for _, m := range got.Metrics {
			switch m.Name { // painting is the browser's, here without a graphics card
			case "ScriptDuration", "LayoutDuration", "RecalcStyleDuration":
				seconds += m.Value
			}
		}
		return seconds
	}
	p.call("Performance.enable", map[string]any{"timeDomain": "threadTicks"}, nil)
	before := busy()
	p.eval(fmt.Sprintf(`new Promise((done) => {
		const list = document.querySelector(".list");
		let left = %d;
		const step = () => {
			list.scrollTop += 300; // 18 000 pixels a second
			if (--left) requestAnimationFrame(step); else done();
		};
		requestAnimationFrame(step);
	})`, frames), nil)
	each := (busy() - before) * 1000 / frames
	t.Logf("a frame of a list that scrolls fast keeps the page busy for %.1f ms", each)
	if each > 8 {
		t.Errorf("a frame of a list that scrolls keeps the page busy for %.1f ms, want at most 8 of 16", each)
	}
}

// press presses a key as a person does.
func (p *tab) press(key string) {
	p.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		p.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key}, nil)
	}
}
