package main

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"
)

// playing is true in a page that shows pictures.
const playing = `document.querySelector("video").videoWidth > 0 && document.querySelector(".message").hidden`

// A demoBrowser is the demo as a browser sees it.
type demoBrowser struct {
	*browser
	demo  *service
	paths []string // of its channels
}

// TestBrowser has one demo and one browser for all: starting them takes seconds.
func TestBrowser(t *testing.T) {
	b := startBrowser(t)
	p := runProgram(t, here, "demo", "--listen", "127.0.0.1:0")
	d := &demoBrowser{browser: b, demo: &service{process: p, in: here}}
	d.demo.addr = p.says(&p.stdout, `Who watches what: http://([^/]+)/`)[1]
	for _, m := range regexp.MustCompile(`zapcast \d +http://[^/]+(/\S+)`).FindAllStringSubmatch(p.stdout.String(), -1) {
		d.paths = append(d.paths, m[1])
	}
	t.Run("plays a channel", d.playsChannel)
	t.Run("zaps quickly", d.zapsQuickly)
	t.Run("zaps often", d.zapsOften)
	t.Run("explains a black screen", d.explains)
	t.Run("shows a loss", d.showsLoss)
	t.Run("lists thousands", b.longList)
	t.Run("rests when hidden", d.restsWhenHidden)
	t.Run("fits everywhere", d.fitsEverywhere)
}

// watch opens the page on the first channel and waits for pictures.
func (d *demoBrowser) watch(t *testing.T) *tab {
	t.Helper()
	page := d.open(t, "http://"+d.demo.addr+"/#/watch"+d.paths[0], 1440, 900)
	page.until(playing)
	return page
}

func (d *demoBrowser) playsChannel(t *testing.T) {
	page := d.open(t, "http://"+d.demo.addr+"/#/watch/zapcast%201", 1440, 900)
	page.until(playing)
	page.until(`document.querySelector('.row[aria-selected="true"] .name').textContent === "zapcast 1"`)
	var video struct{ Time, Frames float64 }
	const look = `(() => { const v = document.querySelector("video"); return {time: v.currentTime, frames: v.getVideoPlaybackQuality().totalVideoFrames}; })()`
	page.eval(look, &video)
	begin := video
	eventually(t, func() bool {
		page.eval(look, &video)
		return video.Time > begin.Time+1 && video.Frames > begin.Frames+20
	}, "the video's time moves on by 1 s, and its decoded frames by 20")
	if viewers := d.demo.status().Viewers; len(viewers) != 1 {
		t.Errorf("got %d viewers, want 1: %+v", len(viewers), viewers)
	}
	page.shot("watch")
}

// zapTo zaps and returns what the page measured, in milliseconds.
func (p *tab) zapTo(path string) (total float64) {
	p.t.Helper()
	p.eval(fmt.Sprintf(`delete document.querySelector(".zap").dataset.total; location.hash = "#/watch%s"`, path), nil)
	p.until(`document.querySelector(".zap").dataset.total`)
	p.eval(`Number(document.querySelector(".zap").dataset.total)`, &total)
	return total
}

// A zap between two warm channels takes at most 400 ms to the first frame, of
// which the server's part, from the request to the first byte of a random-access
// point, is at most 15 ms.
func (d *demoBrowser) zapsQuickly(t *testing.T) {
	page := d.watch(t)
	page.zapTo(d.paths[1]) // now both are warm
	var totals, servers []float64
	for i := range 15 {
		totals = append(totals, page.zapTo(d.paths[i%2]))
		if viewers := d.demo.status().Viewers; len(viewers) == 1 && viewers[0].FirstRandomAccess != nil {
			servers = append(servers, *viewers[0].FirstRandomAccess)
		}
	}
	slices.Sort(totals)
	slices.Sort(servers)
	t.Logf("to the first frame: median %.0f ms of %.0f", totals[len(totals)/2], totals)
	if len(servers) < 10 {
		t.Fatalf("got %d figures of the server, want 10 and more", len(servers))
	}
	t.Logf("of which the server: median %.2f ms of %.2f", servers[len(servers)/2], servers)
	if median := servers[len(servers)/2]; median > 15 {
		t.Errorf("server: median %.1f ms, want at most 15", median)
	}
	if median := totals[len(totals)/2]; median > 400 {
		t.Errorf("first frame: median %.0f ms, want at most 400", median)
	}
}

// Zapping fast and often leaves one session on the server and nothing in the page.
func (d *demoBrowser) zapsOften(t *testing.T) {
	page := d.watch(t)
	heap := func() (used float64) {
		t.Helper()
		page.call("HeapProfiler.collectGarbage", nil, nil)
		var usage struct{ UsedSize float64 }
		page.call("Runtime.getHeapUsage", nil, &usage)
		return usage.UsedSize
	}
	zaps := func(n int) {
		for i := range n {
			page.eval(fmt.Sprintf(`location.hash = "#/watch%s"`, d.paths[i%len(d.paths)]), nil)
			time.Sleep(150 * time.Millisecond) // as fast as a thumb: it is what is tested
		}
	}
	zaps(10)
	page.zapTo(d.paths[1])
	before := heap()
	zaps(50)
	page.zapTo(d.paths[0])
	after := heap()
	t.Logf("heap of the page: %.2f MB before 50 zaps, %.2f MB after", before/1e6, after/1e6)
	if after > before+1e6 {
		t.Errorf("the page's heap grew from %.0f to %.0f bytes, want at most 1 MB more", before, after)
	}
	eventually(t, func() bool { return len(d.demo.status().Viewers) == 1 }, "one viewer is left")
}
