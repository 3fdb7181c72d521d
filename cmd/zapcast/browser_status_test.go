package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The status view shows a loss within 2 s of its being counted, and a viewer's
// coming and going.
func (d *demoBrowser) showsLoss(t *testing.T) {
	group := playOnLoopback(t, "clips/one.ts", "--drop 5%")
	page := d.open(t, "http://"+d.demo.addr+"/#/status", 1440, 900)
	page.until(`document.querySelector(".state").dataset.state === "open"`)
	d.view(t, "/rtp/"+group)
	var id string
	eventually(t, func() bool {
		for _, c := range d.demo.status().Channels {
			if strings.HasPrefix(c.ID, group) && c.Lost > 0 {
				id = c.ID
				return true
			}
		}
		return false
	}, "the server counts a loss")
	counted := time.Now()
	page.until(fmt.Sprintf(`[...document.querySelectorAll("a.line")].some((l) => l.textContent.includes(%q) && l.querySelector(".damage.bad"))`, group))
	if took := time.Since(counted); took > 2*time.Second {
		t.Errorf("the page shows the loss after %v, want at most 2 s", took)
	}
	page.until(`document.querySelectorAll(".viewer").length === 1`)
	page.eval(fmt.Sprintf(`location.hash = "#/status/%s"`, url.PathEscape(id)), nil)
	page.until(`document.querySelectorAll(".charts canvas").length === 3`)
	page.until(`document.querySelector(".server").textContent.match(/bursts: [1-9]/)`) // by the channel that was played first
	page.until(`[...document.querySelectorAll(".histograms .bars i")].some((bar) => bar.offsetHeight > 1)`)
	page.eval(`document.querySelector(".viewer button").click()`, nil)
	page.until(`document.querySelectorAll(".viewer").length === 0`)
	eventually(t, func() bool { return len(d.demo.status().Viewers) == 0 }, "the viewer is disconnected")
}

// The page says what it waits for, and on a click why it waits in vain: here,
// that the port is another one.
func (d *demoBrowser) explains(t *testing.T) {
	path, port, _ := strings.Cut(d.paths[0], ":")
	page := d.open(t, "http://"+d.demo.addr+"/#/watch"+path+":1", 1440, 900)
	page.expect("503 (Service Unavailable)")
	page.until(`document.querySelector(".message.busy .words").textContent.includes("Waiting for the server")`)
	const why = `document.querySelector(".choices button:last-child:not([hidden])")`
	page.until(why)
	page.eval(why+".click()", nil)
	page.until(`document.querySelectorAll(".findings li").length >= 5`)
	var verdict string
	page.eval(`document.querySelector('.findings li[data-level="verdict"]').textContent`, &verdict)
	want := regexp.MustCompile(`arrive, but for port .*\b` + port + `\b.*, not 1\.`) // another demo may be on the air
	if os.Getuid() == 0 && !want.MatchString(verdict) {
		t.Errorf("got the verdict %q, want %s", verdict, want)
	}
	page.shot("diagnosis")
}

// Nothing is asked for while the page cannot be seen.
func (d *demoBrowser) restsWhenHidden(t *testing.T) {
	page := d.open(t, "http://"+d.demo.addr+"/#/status", 1440, 900)
	page.until(`document.querySelector(".state").dataset.state === "open"`)
	hide := func(hidden bool) {
		page.eval(fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %v, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`, hidden), nil)
	}
	hide(true)
	page.until(`document.querySelector(".state").dataset.state === "closed"`)
	hide(false)
	page.until(`document.querySelector(".state").dataset.state === "open"`)
}

// view takes a stream and throws it away until it is closed.
func (d *demoBrowser) view(t *testing.T, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", d.demo.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: VLC/3.0.21 LibVLC/3.0.21\r\n\r\n", path, d.demo.addr); err != nil {
		t.Fatal(err)
	}
	go func() {
		b := make([]byte, 64<<10)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { c.Close() })
	return c
}

// Both languages and themes fit on a phone and on a desktop, in every view.
func (d *demoBrowser) fitsEverywhere(t *testing.T) {
	for _, path := range d.paths {
		d.view(t, path)
	}
	d.view(t, d.paths[0])
	d.view(t, "/rtp/"+playOnLoopback(t, "clips/one.ts", "--drop 2% --reorder 2%"))
	if code, _ := d.demo.fetch("/rtp/nowhere.invalid:5000"); code == http.StatusOK {
		t.Error("a channel that is not there starts")
	}
	page := d.open(t, "http://"+d.demo.addr+"/#/status", 1440, 900)
	for _, language := range []string{"en", "zh"} {
		for _, theme := range []string{"light", "dark"} {
			page.eval(fmt.Sprintf(`localStorage["zapcast.language"] = '"%s"'; localStorage["zapcast.theme"] = '"%s"'; location.reload()`, language, theme), nil)
			for _, width := range []int{1440, 390} {
				page.size(width, 900)
				for _, view := range []struct{ name, hash, ready string }{
					{"status", "#/status", `document.querySelectorAll("a.line").length >= 4`},
					{"detail", "#/status/" + url.PathEscape(d.ids(t)[0]), `document.querySelectorAll(".charts canvas").length === 3`},
					{"watch", "#/watch" + d.paths[1], playing},
					{"log", "#/log", `document.querySelector("main.log")`},
				} {
					name := fmt.Sprintf("%s-%s-%s-%d", view.name, language, theme, width)
					page.until(fmt.Sprintf(`document.documentElement?.dataset.theme === %q && document.documentElement.lang.startsWith(%q)`, theme, language))
					page.eval(fmt.Sprintf(`location.hash = %q`, view.hash), nil)
					page.until(view.ready)
					var wide []string
					page.eval(overflowing, &wide)
					if len(wide) > 0 {
						t.Errorf("%s: too wide: %q", name, wide)
					}
					page.shot(name)
				}
			}
		}
	}
}

func (d *demoBrowser) ids(t *testing.T) (ids []string) {
	t.Helper()
	for _, c := range d.demo.status().Channels {
		ids = append(ids, c.ID)
	}
	return ids
}

// overflowing lists what reaches beyond the window's right edge, or has its
// words cut off without saying so.
const overflowing = `[...document.querySelectorAll("body *")].filter((e) => {
	const box = e.getBoundingClientRect();
	if (box.width === 0 || e.closest("svg, .u-wrap")) return false;
	const clipped = e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "hidden" && getComputedStyle(e).textOverflow !== "ellipsis";
	return box.right > innerWidth + 1 || box.left < -1 || clipped;
}).map((e) => e.tagName + "." + e.className).concat(document.documentElement.scrollWidth > innerWidth ? ["page"] : [])`
