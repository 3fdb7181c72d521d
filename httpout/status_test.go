package httpout

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The page names every field, and no other.
func TestStatus_pageNamesEveryField(t *testing.T) {
	page, err := os.ReadFile("../docs/status.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, m[1])
	}
	want := fieldPaths(reflect.TypeFor[statusJSON](), "")
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("fields of the status and of docs/status.md (-want +got):\n%s", diff)
	}
}

func fieldPaths(t reflect.Type, path string) (paths []string) {
	switch {
	case t.Kind() == reflect.Pointer:
		return fieldPaths(t.Elem(), path)
	case t.Kind() == reflect.Slice:
		return fieldPaths(t.Elem(), path+"[]")
	case t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]():
		return []string{path}
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if path != "" {
			name = path + "." + name
		}
		paths = append(paths, fieldPaths(field.Type, name)...)
	}
	return paths
}

func TestStatus_ofARunningChannel(t *testing.T) {
	f := newFront(t, Config{Version: "1.2.3"})
	f.feed("239.1.1.1:5000")
	f.watch("/rtp/239.1.1.1:5000?a=1", "User-Agent: test/1")
	f.request("GET", "/nothing")

	response, body := f.request("GET", "/api/status", "Connection: close")
	if got := response.Header.Get("Content-Type"); response.StatusCode != 200 || got != "application/json" || response.Header.Get("Cache-Control") != noCache {
		t.Errorf("got %s, header %v", response.Status, response.Header)
	}
	var status statusJSON
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&status); err != nil {
		t.Fatal(err)
	}
	if p := status.Process; p.Version != "1.2.3" || p.PID != os.Getpid() || p.UptimeSeconds <= 0 || p.Goroutines == 0 || p.HeapBytes == 0 || p.Loops != 1 || p.Processors == 0 {
		t.Errorf("process: %+v", p)
	}
	if status.Refused.NotFound != 1 {
		t.Errorf("refused: %+v, want one not found", status.Refused)
	}
	if len(status.Channels) != 1 || len(status.Viewers) != 1 {
		t.Fatalf("got %d channels and %d viewers, want one of each:\n%s", len(status.Channels), len(status.Viewers), body)
	}
	c := status.Channels[0]
	if c.ID != "239.1.1.1:5000" || c.Interface != "test0" || c.State != "live" || c.Viewers != 1 || c.Packets == 0 || c.Lost != 0 ||
		c.Payload != "mp2t-rtp" || c.DataAgeMS == nil || c.RandomAccessAgeMS != nil || c.Source != "rtp://239.1.1.1:5000" {
		t.Errorf("channel: %+v", c)
	}
	v := status.Viewers[0]
	if !strings.HasPrefix(v.Address, "127.0.0.1:") || v.Channel != c.ID || v.URL != "/rtp/239.1.1.1:5000?a=1" || v.Agent != "test/1" ||
		v.Bytes == 0 || v.Start != "live" || v.FirstByteMS == nil || *v.FirstByteMS <= 0 || v.FirstRandomAccessMS != nil {
		t.Errorf("viewer: %+v", v)
	}
	for _, list := range []string{`"failures": []`, `"warnings": []`} {
		if !strings.Contains(body, list) {
			t.Errorf("want %s where there is none, got:\n%s", list, body)
		}
	}
}

func TestStatus_failuresAreFew(t *testing.T) {
	var f failures
	for i := range 3 * keptFailures {
		f.add(failure{Channel: string(rune('a' + i%(keptFailures+2)))})
	}
	list := f.snapshot()
	newest := string(rune('a' + (3*keptFailures-1)%(keptFailures+2)))
	if len(list) != keptFailures || list[0].Channel != newest {
		t.Errorf("got %v, want %d, the newest (%s) first", list, keptFailures, newest)
	}
	slices.SortFunc(list, func(a, b failure) int { return strings.Compare(a.Channel, b.Channel) })
	if len(slices.Compact(list)) != keptFailures {
		t.Errorf("a channel is listed twice: %v", list)
	}
}
