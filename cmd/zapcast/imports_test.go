package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows says what each package may import: packages of this module by their
// folder, and other modules' packages, all that begin with the path. The
// standard library is free to all. A new arrow is a decision about the
// architecture; a new module is one about what the program is made of.
var arrows = map[string][]string{
	"mpegts":            {},
	"fec":               {"github.com/klauspost/reedsolomon", "github.com/pion/rtp"},
	"internal/captures": {"github.com/gopacket/gopacket/pcapgo"},
	"ingest":            {"fec", "mpegts", "golang.org/x/sys/unix", "golang.org/x/net/ipv4", "golang.org/x/net/ipv6"},
	"ingest/ingesttest": {"ingest", "mpegts", "github.com/pion/rtp"},
	"fcc":               {"fcc/wire", "ingest", "mpegts"},
	"fcc/wire":          {},
	"fcc/server":        {"fcc/wire", "ingest", "mpegts", "golang.org/x/sys/unix"},
	"catchup":           {},
	"rtsp":              {"ingest", "mpegts", "golang.org/x/sys/unix"},
	"fanout":            {"ingest", "mpegts", "golang.org/x/sys/unix"},
	"access":            {},
	"accesslog":         {"access"},
	"failover":          {"ingest"},
	"httpin":            {"ingest", "mpegts"},
	"journal":           {"access"},
	"lineup":            {"failover", "playlist"},
	"playlist":          {"golang.org/x/text/encoding/simplifiedchinese"},
	"httpout/page":      {},
	"tune":              {"catchup", "rtsp", "fcc", "failover", "httpin", "ingest", "lineup"},
	"tune/tunetest":     {"tune"},
	"diagnose":          {"ingest", "golang.org/x/sys/unix"},
	"httpout":           {"httpout/page", "access", "accesslog", "diagnose", "fanout", "ingest", "journal", "lineup", "tune", "github.com/VictoriaMetrics/metrics", "golang.org/x/sys/unix"},
	"playout":           {"fec", "mpegts", "github.com/pion/rtp", "golang.org/x/net/ipv4", "golang.org/x/net/ipv6"},
	"internal/nettest":  {"golang.org/x/sys/unix"},
	"internal/testlog":  {},
	"bench":             {"golang.org/x/sys/unix"},
	"rtsp/server":       {"fanout", "tune", "github.com/pion/rtcp", "golang.org/x/net/ipv4", "golang.org/x/net/ipv6", "golang.org/x/sys/unix"},
	"cmd/zapcast":       {"fcc", "fcc/server", "rtsp", "access", "accesslog", "diagnose", "httpout", "journal", "rtsp/server", "tune", "fanout", "ingest", "lineup", "playout", "mpegts", "github.com/pelletier/go-toml/v2", "golang.org/x/sys/unix"},
}

// moduleImports lists the imports of every package of the module, by folder,
// for all systems at once and without those of tests.
func moduleImports(t *testing.T) map[string][]string {
	t.Helper()
	const root, module = "../..", "zapcast/"
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if found[folder] == nil {
			found[folder] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			first, _, _ := strings.Cut(imported, "/")
			if ours, ok := strings.CutPrefix(imported, module); ok {
				found[folder][ours] = true
			} else if strings.Contains(first, ".") { // the standard library has no host
				found[folder][imported] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for folder, imports := range found {
		out[folder] = slices.Sorted(maps.Keys(imports))
	}
	return out
}

func TestImports_followTheArrows(t *testing.T) {
	for folder, imports := range moduleImports(t) {
		allowed, ok := arrows[folder]
		if !ok {
			t.Errorf("%s: got a package without a row in the table of arrows", folder)
		}
		for _, imported := range imports {
			fits := func(path string) bool {
				return imported == path || strings.HasPrefix(imported, path+"/") && strings.Contains(path, ".")
			}
			if !slices.ContainsFunc(allowed, fits) {
				t.Errorf("%s: got an import of %s, want one of %q", folder, imported, allowed)
			}
		}
	}
}
