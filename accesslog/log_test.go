package accesslog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var entry = Entry{
	At: time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC), Client: "192.0.2.7:40000", Method: "GET", Target: "/One?r2h-token=hush", Proto: "HTTP/1.1",
	Host: "tv:80", Status: 200, Bytes: 188, Took: 1500 * time.Millisecond, Agent: "P \"1\"\n R2HTOKEN/hush", Channel: "/One", Start: "live", FirstByte: 2 * time.Millisecond,
}

func TestLog_formats(t *testing.T) {
	for format, want := range map[string]string{
		Combined: `192.0.2.7 - - [30/Nov/2026:22:00:00 +0000] "GET /One?r2h-token=xxxxx HTTP/1.1" 200 188 "-" "P \x221\x22\x0A R2HTOKEN/xxxxx"`,
		"${status}x $request_time $channel $start $first_byte_time $msec": "200x 1.500 /One live 0.002 1796076000.000",
		"plain": "plain",
	} {
		pieces, err := parse(format)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(line(pieces, &entry)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", format, got, want)
		}
	}
	got := line(nil, &entry)
	var object map[string]any
	if err := json.Unmarshal(got, &object); err != nil || object["status"] != 200.0 || object["request_time"] != 1.5 || strings.Contains(string(got), "hush") {
		t.Errorf("JSON: got %s (%v)", got, err)
	}
}

func TestCheck(t *testing.T) {
	for format, want := range map[string]string{
		"$nope": "expected $ and the name of a variable, found $nope", "$": "expected $ and the name of a variable, found $",
		"${status": "expected } behind ${status, found none", Combined: "", JSON: "",
	} {
		if err := Check(format); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: got %v, want %q", format, err, want)
		}
	}
}

func TestLog_isOpenedAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	var l Log
	l.Write(entry) // to nowhere
	if l.On() {
		t.Error("on before it was opened")
	}
	if err := l.Open(path, "$status"); err != nil {
		t.Fatal(err)
	}
	l.Write(entry)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	l.Write(entry)
	if err := l.Open(path, "$status"); err != nil {
		t.Fatal(err)
	}
	l.Write(entry)
	if err := l.Open(filepath.Join(path, "no"), "$status"); err == nil {
		t.Error("no error for a path that cannot be")
	}
	l.Write(entry)
	if err := l.Open("", Combined); err != nil || l.On() {
		t.Errorf("closed: got %v, on %v", err, l.On())
	}
	old, _ := os.ReadFile(path + ".1")
	now, _ := os.ReadFile(path)
	if string(old) != "200\n200\n" || string(now) != "200\n200\n" {
		t.Errorf("got %q and %q, want two lines each", old, now)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(Combined)
	f.Add("${status}$")
	f.Fuzz(func(t *testing.T, format string) {
		pieces, err := parse(format)
		if err != nil || strings.Contains(format, "\n") {
			return
		}
		if got := string(line(pieces, &entry)); strings.Contains(got, "\n") || strings.Contains(got, "hush") && !strings.Contains(format, "hush") {
			t.Errorf("%q: got %q", format, got)
		}
	})
}
