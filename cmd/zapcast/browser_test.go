package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"zapcast/internal/testlog"
)

// A browser is a headless Chromium, told what to do over the pipe of its
// DevTools protocol (https://chromedevtools.github.io/devtools-protocol):
// messages are JSON, each ended by a zero byte.
type browser struct {
	cmd   *exec.Cmd
	write *os.File
	log   testlog.Log

	mu     sync.Mutex // guards what follows
	nextID int
	waits  map[int]chan devtoolsMessage
	tabs   map[string]*tab // by session
	ended  error
}

type devtoolsMessage struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *devtoolsError  `json:"error,omitempty"`
	// Session says which tab a message is for, or from.
	Session string `json:"sessionId,omitempty"`
}

type devtoolsError struct {
	Message string `json:"message"`
}

// chromium names the program as Debian and others do.
var chromium = []string{"/usr/lib/chromium/chromium", "chromium", "chromium-browser", "google-chrome"}

// startBrowser starts a browser that ends with the test. Without one the test
// skips, or fails where ZAPCAST_TEST_BROWSER=1.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	var program string
	for _, name := range chromium {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		if os.Getenv("ZAPCAST_TEST_BROWSER") == "1" {
			t.Fatalf("needs one of %q", chromium)
		}
		t.Skipf("needs one of %q", chromium)
	}
	theirsIn, oursOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	oursIn, theirsOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{write: oursOut, waits: map[int]chan devtoolsMessage{}, tabs: map[string]*tab{}}
	b.cmd = exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--mute-audio",
		"--enable-precise-memory-info", "--log-level=3", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	b.cmd.ExtraFiles = []*os.File{theirsIn, theirsOut} // descriptors 3 and 4
	b.cmd.Stderr = &b.log
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirsIn.Close()
	theirsOut.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(bufio.NewReaderSize(oursIn, 1<<20))
	}()
	t.Cleanup(func() {
		_, _ = b.call("", "Browser.close", nil) // it may be gone
		oursOut.Close()
		killed := time.AfterFunc(patience, func() { _ = b.cmd.Process.Kill() })
		_ = b.cmd.Wait()
		killed.Stop()
		oursIn.Close()
		<-read
		if t.Failed() {
			t.Logf("the browser said:\n%s", b.log.String())
		}
	})
	return b
}

func (b *browser) read(from *bufio.Reader) {
	for {
		raw, err := from.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.ended = fmt.Errorf("browser: %w", err)
			for _, wait := range b.waits {
				close(wait)
			}
			b.waits = nil
			b.mu.Unlock()
			return
		}
		var m devtoolsMessage
		if json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		wait, tab := b.waits[m.ID], b.tabs[m.Session]
		delete(b.waits, m.ID)
		b.mu.Unlock()
		switch {
		case m.ID != 0 && wait != nil:
			wait <- m
		case tab != nil:
			tab.heard(m)
		}
	}
}

// call asks the browser, or one of its tabs, and waits for the answer.
func (b *browser) call(session, method string, params any) (json.RawMessage, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if params == nil {
		body = []byte("{}")
	}
	wait := make(chan devtoolsMessage, 1)
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return nil, b.ended
	}
	b.nextID++
	id := b.nextID
	b.waits[id] = wait
	raw, err := json.Marshal(devtoolsMessage{ID: id, Method: method, Params: body, Session: session})
	if err == nil {
		_, err = b.write.Write(append(raw, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case m, ok := <-wait:
		switch {
		case !ok:
			return nil, errors.New("browser: gone")
		case m.Error != nil:
			return nil, fmt.Errorf("browser: %s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	case <-time.After(2 * patience):
		return nil, fmt.Errorf("browser: %s: no answer", method)
	}
}

// A tab is one page of the browser.
type tab struct {
	t       *testing.T
	browser *browser
	session string

	mu         sync.Mutex // guards what follows
	expected   string     // complaints that hold this are none
	complaints []string   // errors and warnings of the console, exceptions, refused content
}

// open opens a tab of that size, in pixels of the page. It is closed at the end
// of the test, which fails if the console had anything to complain of.
func (b *browser) open(t *testing.T, url string, width, height int) *tab {
	t.Helper()
	must := func(session, method string, params, result any) {
		t.Helper()
		raw, err := b.call(session, method, params)
		if err == nil && result != nil {
			err = json.Unmarshal(raw, result)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var target struct{ TargetID string }
	must("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	must("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &tab{t: t, browser: b, session: attached.SessionID}
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.call(domain+".enable", nil, nil)
	}
	t.Cleanup(func() {
		p.noComplaint()
		_, _ = b.call("", "Target.closeTarget", map[string]any{"targetId": target.TargetID})
	})
	p.size(width, height)
	p.call("Page.navigate", map[string]any{"url": url}, nil)
	return p
}

func (p *tab) call(method string, params, result any) {
	p.t.Helper()
	raw, err := p.browser.call(p.session, method, params)
	if err == nil && result != nil {
		err = json.Unmarshal(raw, result)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

// size makes the page that large, as a phone's where it is narrow.
func (p *tab) size(width, height int) {
	p.t.Helper()
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
	}, nil)
}

// heard takes what the page says of itself.
func (p *tab) heard(m devtoolsMessage) {
	var complaint string
	switch m.Method {
	case "Runtime.exceptionThrown":
		complaint = string(m.Params)
	case "Runtime.consoleAPICalled":
		var called struct{ Type string }
		if json.Unmarshal(m.Params, &called) == nil && (called.Type == "error" || called.Type == "warning" || called.Type == "assert") {
			complaint = string(m.Params)
		}
	case "Log.entryAdded":
		var added struct{ Entry struct{ Level, Text string } }
		if json.Unmarshal(m.Params, &added) == nil && (added.Entry.Level == "error" || added.Entry.Level == "warning") {
			complaint = string(m.Params)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if complaint != "" && (p.expected == "" || !strings.Contains(complaint, p.expected)) {
		p.complaints = append(p.complaints, complaint)
	}
}

// expect names a complaint that a test brings about.
func (p *tab) expect(complaint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = complaint
}

// noComplaint fails the test for everything the console was told.
func (p *tab) noComplaint() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	const most = 5
	for _, c := range p.complaints[:min(most, len(p.complaints))] {
		p.t.Errorf("the console says (%d in all): %.800s", len(p.complaints), c)
	}
}

// eval runs JavaScript in the page and puts its value, awaited, in result.
func (p *tab) eval(expression string, result any) {
	p.t.Helper()
	if err := p.try(expression, result); err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) try(expression string, result any) error {
	raw, err := p.browser.call(p.session, "Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true,
	})
	if err != nil {
		return err
	}
	var evaluated struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	if err := json.Unmarshal(raw, &evaluated); err != nil {
		return err
	}
	if evaluated.ExceptionDetails != nil {
		return fmt.Errorf("browser: %s: %s", expression, evaluated.ExceptionDetails)
	}
	if result == nil || evaluated.Result.Value == nil {
		return nil
	}
	return json.Unmarshal(evaluated.Result.Value, result)
}

// until waits for an expression to be true.
func (p *tab) until(expression string) {
	p.t.Helper()
	eventually(p.t, func() (is bool) { return p.try("Boolean("+expression+")", &is) == nil && is }, expression)
}

// shot writes a picture of the page into the folder that ZAPCAST_SCREENSHOTS
// names, if it does.
func (p *tab) shot(name string) {
	p.t.Helper()
	folder := os.Getenv("ZAPCAST_SCREENSHOTS")
	if folder == "" {
		return
	}
	var shot struct{ Data []byte }
	p.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	if err := os.WriteFile(folder+"/"+name+".png", shot.Data, 0o644); err != nil {
		p.t.Error(err)
	}
}
