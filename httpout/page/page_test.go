package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func get(t *testing.T, at string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	file, ok := Find(at)
	if !ok {
		t.Fatalf("no file at %q", at)
	}
	r := httptest.NewRequest("GET", "/"+at, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	file.ServeHTTP(w, r)
	return w
}

func TestFind(t *testing.T) {
	for at, want := range map[string]bool{
		"": true, "page/main.js": true, "page/vendor/mpegts.js": true, "page/vendor/mpegts.js.gz": false,
		"page": false, "page/": false, "main.js": false, "page/../page.go": false, "page/vendor": false,
	} {
		if _, got := Find(at); got != want {
			t.Errorf("file at %q: got %v, want %v", at, got, want)
		}
	}
}

func TestFile_isCompressedAndCached(t *testing.T) {
	zipped := get(t, "page/main.js", "Accept-Encoding", "br, gzip")
	plain := get(t, "page/main.js")
	if got := zipped.Header().Get("Content-Encoding"); got != "gzip" {
		t.Errorf("Content-Encoding: got %q, want gzip", got)
	}
	unzipped, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(unzipped)
	if err != nil || !bytes.Equal(b, plain.Body.Bytes()) {
		t.Errorf("compressed and plain differ (%v)", err)
	}
	if source, _ := assets.ReadFile("assets/main.js"); !bytes.Equal(b, source) {
		t.Error("the answer differs from the file")
	}
	again := get(t, "page/main.js", "If-None-Match", plain.Header().Get("ETag"))
	if again.Code != 304 || again.Body.Len() != 0 {
		t.Errorf("asked again: got %d and %d bytes, want 304 and none", again.Code, again.Body.Len())
	}
}

func TestFile_policy(t *testing.T) {
	for _, at := range []string{"", "page/main.js"} {
		policy := get(t, at).Header().Get("Content-Security-Policy")
		for _, word := range []string{"unsafe", "*", "script-src http"} {
			if strings.Contains(policy, word) {
				t.Errorf("policy of %q: %s", at, policy)
			}
		}
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") {
			t.Errorf("policy of %q: %s", at, policy)
		}
	}
}

// Every file that the sources name is there, and nothing is loaded from elsewhere.
func TestAssets_areWhole(t *testing.T) {
	named := regexp.MustCompile(`from "\./([^"]+)"|"page/([^"]+\.(?:js|css|svg))"`)
	foreign := regexp.MustCompile(`(?:src|href|url|import|from|fetch)\W{1,3}https?://`)
	inline := regexp.MustCompile(`innerHTML|insertAdjacentHTML|document\.write|eval\(|<[^>]+\son\w+=|style="`)
	err := fs.WalkDir(assets, "assets", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(at, "assets/vendor/") {
			return err
		}
		b, err := assets.ReadFile(at)
		for _, m := range named.FindAllSubmatch(b, -1) {
			if name := string(m[1]) + string(m[2]); !slices.Contains([]string{""}, name) {
				if _, ok := Find("page/" + name); !ok {
					t.Errorf("%s: no file %s", at, name)
				}
			}
		}
		for _, fault := range []*regexp.Regexp{foreign, inline} {
			if m := fault.Find(b); m != nil {
				t.Errorf("%s: %s", at, m)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What is not ours is what its authors published, with their licence beside it.
func TestVendored_asPublished(t *testing.T) {
	raw, err := os.ReadFile("vendored.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ File, Package, Version, Path, Licence, Text, Integrity, SHA256 string }
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range rows {
		listed[row.File] = true
		zipped, err := os.ReadFile(row.File)
		if err != nil {
			t.Error(err)
			continue
		}
		r, err := gzip.NewReader(bytes.NewReader(zipped))
		if err != nil {
			t.Fatalf("%s: %v", row.File, err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %v", row.File, err)
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != row.SHA256 {
			t.Errorf("%s: hashes to %x, want %s", row.File, sum, row.SHA256)
		}
		if text, err := os.ReadFile(row.Text); err != nil || len(text) < 500 {
			t.Errorf("%s: the licence's text %s is missing (%v)", row.File, row.Text, err)
		}
		if row.Package == "" || row.Version == "" || row.Licence == "" || !strings.HasPrefix(row.Integrity, "sha512-") {
			t.Errorf("%s: not all is said: %+v", row.File, row)
		}
	}
	err = fs.WalkDir(os.DirFS("."), "assets/vendor", func(at string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !listed[at] {
			t.Errorf("%s is not in vendored.json", at)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Both languages say everything, with the same figures in it.
func TestLanguages_sayTheSame(t *testing.T) {
	en, zh := sentences(t, "en"), sentences(t, "zh")
	figure := regexp.MustCompile(`\{\w+\}`)
	for key, text := range en {
		other, ok := zh[key]
		if !ok {
			t.Errorf("zh has no %q", key)
			continue
		}
		a, b := figure.FindAllString(text, -1), figure.FindAllString(other, -1)
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Errorf("%s: got the figures %q, want %q", key, b, a)
		}
	}
	for key := range zh {
		if strings.HasPrefix(key, "find_") {
			continue // in English the server says it; diagnose tests these
		}
		if _, ok := en[key]; !ok {
			t.Errorf("en has no %q", key)
		}
	}
}

// Every sentence that the modules ask for by name is there.
func TestLanguages_haveWhatIsAskedFor(t *testing.T) {
	en := sentences(t, "en")
	asked := regexp.MustCompile(`\bt\("(\w+)"`)
	names, err := fs.Glob(assets, "assets/*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, _ := assets.ReadFile(name)
		for _, m := range asked.FindAllSubmatch(b, -1) {
			if _, ok := en[string(m[1])]; !ok {
				t.Errorf("%s asks for %q", name, m[1])
			}
		}
	}
}

func sentences(t *testing.T, language string) map[string]string {
	t.Helper()
	b, err := assets.ReadFile("assets/" + language + ".js")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  (\w+):\s+"((?:[^"\\]|\\.)*)",$`).FindAllSubmatch(b, -1) {
		if _, twice := found[string(m[1])]; twice {
			t.Errorf("%s: %s twice", language, m[1])
		}
		found[string(m[1])] = string(m[2])
	}
	if lines := bytes.Count(b, []byte("\",\n")); lines != len(found) {
		t.Fatalf("%s: read %d sentences of %d", language, len(found), lines)
	}
	return found
}
