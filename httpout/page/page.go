package page

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed assets
var assets embed.FS

// Folder is the first segment of the path of everything but the page itself.
const Folder = "page"

// policy lets the page load what is the server's own and nothing else. Logos are
// the exception: a playlist has them from anywhere. Video comes from memory
// (blob:), into which the player puts it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; media-src 'self' blob:; " +
	"img-src 'self' data: http: https:; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// types are the content types by extension; the system's own table differs from
// system to system.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
}

// A File is one file of the page. It is an http.Handler for GET and HEAD.
type File struct {
	contentType string
	etag        string
	zipped      []byte // gzip, RFC 1952
}

// Find returns the file at a path of the server, without a slash at its
// beginning: "" is the page.
func Find(at string) (*File, bool) {
	name, ok := "index.html", at == ""
	if !ok {
		if name, ok = strings.CutPrefix(at, Folder+"/"); !ok {
			return nil, false
		}
	}
	file, ok := load()[name]
	return file, ok
}

// load compresses what is not compressed yet. The files are few and small, so
// they are kept for as long as the program runs.
var load = sync.OnceValue(func() map[string]*File {
	files := map[string]*File{}
	err := fs.WalkDir(assets, "assets", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := assets.ReadFile(at)
		if err != nil {
			return err
		}
		name, zipped := strings.CutSuffix(strings.TrimPrefix(at, "assets/"), ".gz")
		if !zipped {
			body = compress(body)
		}
		files[name] = &File{
			contentType: types[path.Ext(name)],
			etag:        fmt.Sprintf(`W/"%08x%x"`, crc32.ChecksumIEEE(body), len(body)),
			zipped:      body,
		}
		return nil
	})
	if err != nil {
		panic("page: the embedded files cannot be read: " + err.Error())
	}
	return files
})

func compress(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	w.Write(body)
	w.Close()
	return bytes.Clone(b.Bytes())
}

// ServeHTTP answers with the file, compressed for those who take it so. A
// browser asks again each time, and is told that it has it already.
func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	header.Set("Content-Security-Policy", policy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	header.Set("ETag", f.etag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.zipped
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
	} else {
		body = f.plain()
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

func (f *File) plain() []byte {
	r, err := gzip.NewReader(bytes.NewReader(f.zipped))
	if err != nil {
		panic("page: an embedded file is damaged: " + err.Error())
	}
	b, err := io.ReadAll(r)
	if err != nil {
		panic("page: an embedded file is damaged: " + err.Error())
	}
	return b
}
