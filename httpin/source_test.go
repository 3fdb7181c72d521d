package httpin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"zapcast/ingest/ingesttest"
	"zapcast/mpegts"
)

// drain reads s until it has ended or brought n bytes.
func drain(t *testing.T, s *Source, n int) []byte {
	t.Helper()
	sink := &ingesttest.Sink{T: t}
	for deadline := time.Now().Add(10 * time.Second); len(sink.Bytes) < n && s.Ended() == nil; time.Sleep(time.Millisecond) {
		for s.Drain(time.Now(), 64, sink) {
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d bytes within 10 s, want %d", len(sink.Bytes), n)
		}
	}
	return sink.Bytes
}

// serve answers with f, and returns the address.
func serve(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func open(t *testing.T, address string) *Source {
	t.Helper()
	s, err := Open(address, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSource_wholeStream(t *testing.T) {
	// More than all blocks hold, in pieces that cut packets.
	want := ingesttest.TS(0, 3*blocks*blockBytes/mpegts.PacketSize)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("User-Agent"); got != "zapcast" {
			t.Errorf("User-Agent: got %q, want zapcast", got)
		}
		w.Header().Set("Content-Type", "video/mp2t")
		for rest, n := want, 1; len(rest) > 0; n = n*7%100003 + 1 {
			piece := rest[:min(n, len(rest))]
			w.Write(piece)
			rest = rest[len(piece):]
		}
	})
	s := open(t, address+"/stream")
	got := drain(t, s, len(want)+1)
	if !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes, want the %d that were sent", len(got), len(want))
	}
	if err := s.Ended(); err != io.EOF {
		t.Errorf("Ended: got %v, want EOF", err)
	}
	status := s.Status()
	if status.Source != address+"/stream" || status.Bytes != int64(len(want)) || status.BadTS != 0 || status.Payload != "mp2t-direct" ||
		"http://"+status.Sender != address || status.LastData.IsZero() {
		t.Errorf("status: got %+v", status)
	}
}

func TestSource_waitsForItsReader(t *testing.T) {
	sent := make(chan int, 1)
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		n := 0
		for range 1000 {
			m, err := w.Write(ingesttest.TS(0, 348))
			n += m
			if err != nil {
				break
			}
		}
		sent <- n
	})
	s := open(t, address)
	for deadline := time.Now().Add(5 * time.Second); len(s.full) < blocks; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got %d blocks filled, want %d", len(s.full), blocks)
		}
	}
	select {
	case n := <-sent:
		t.Errorf("got %d bytes taken by a reader that does not drain, want the server to wait", n)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestSource_junk(t *testing.T) {
	stream := ingesttest.TS(0, 20)
	var b []byte
	b = append(b, "this is no packet"...)
	b = append(b, stream[:10*188]...)
	b = append(b, stream[10*188:10*188+50]...) // cut short
	b = append(b, stream[11*188:]...)
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(b) })
	s := open(t, address)
	got := drain(t, s, len(b))
	want := append(stream[:10*188:10*188], stream[11*188:]...)
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
	if status := s.Status(); status.BadTS == 0 {
		t.Error("got no bad TS counted")
	}
}

func TestOpen_refuses(t *testing.T) {
	answers := map[string]func(w http.ResponseWriter){
		"/404": func(w http.ResponseWriter) { w.WriteHeader(404) },
		"/page": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Write([]byte("hi"))
		},
		"/hls":  func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/vnd.apple.mpegurl") },
		"/loop": func(w http.ResponseWriter) { w.Header().Set("Location", "/loop"); w.WriteHeader(302) },
	}
	address := serve(t, func(w http.ResponseWriter, r *http.Request) { answers[r.URL.Path](w) })
	secret := strings.Replace(address, "http://", "http://user:hush@", 1)
	tests := []struct{ address, want string }{
		{secret + "/404", "expected the status 200, found 404"},
		{secret + "/page", "expected MPEG-TS, found text/html"},
		{secret + "/hls", "expected MPEG-TS, found application/vnd.apple.mpegurl"},
		{secret + "/loop", "expected at most 5 redirects, found more"},
		{"http://user:hush@127.0.0.1:1/x", "connection refused"},
		{"ftp://user:hush@127.0.0.1/x", "expected an address http://HOST/PATH"},
		{"http://user:hu sh@[/", "expected an address http://HOST/PATH"},
	}
	for _, tt := range tests {
		s, err := Open(tt.address, Config{})
		if err == nil {
			s.Close()
			t.Errorf("%s: got no error, want %q", tt.address, tt.want)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %q, want %q in it and no password", tt.address, err, tt.want)
		}
	}
}

// A server that the configuration names may be anywhere; where it redirects to is
// looked at once its name is resolved, at every hop.
func TestOpen_redirectsToOtherHosts(t *testing.T) {
	var home string // this server; "localhost" is another name of it
	home = serve(t, func(w http.ResponseWriter, r *http.Request) {
		away := strings.Replace(home, "127.0.0.1", "localhost", 1)
		for path, to := range map[string]string{"/here": "/ts", "/away": away + "/ts", "/there-and-back": away + "/back", "/back": home + "/ts", "/port": "http://127.0.0.1:1/"} {
			if r.URL.Path == path {
				http.Redirect(w, r, to, http.StatusFound)
				return
			}
		}
		_, _ = w.Write(ingesttest.TS(0, 7))
	})
	loopback := func(addr netip.Addr) bool { return addr.IsLoopback() }
	for _, tt := range []struct {
		path     string
		redirect func(netip.Addr) bool
		want     string
	}{
		{"/ts", notLoopback, ""},
		{"/here", notLoopback, ""},
		{"/away", loopback, ""},
		{"/away", nil, ""},
		{"/away", notLoopback, "is not within the networks"},
		{"/there-and-back", notLoopback, "is not within the networks"},
		{"/port", notLoopback, "the address 127.0.0.1:1 is not within the networks"},
	} {
		s, err := Open(home+tt.path, Config{AllowRedirect: tt.redirect})
		if err == nil {
			_ = s.Close()
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", tt.path, err, tt.want)
		}
	}
}

func notLoopback(addr netip.Addr) bool { return !addr.IsLoopback() }

func TestOpen_givesUp(t *testing.T) {
	release := make(chan struct{})
	address := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	_, err := Open(address, Config{Timeout: 30 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "no answer within 30ms") {
		t.Errorf("got %v, want an error that says how long it waited", err)
	}
}

func TestOpen_credentialsAndHeader(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s %s %s", user, password, r.Header.Get("X-Hop"))
		if user != "user" || password != "hush" || r.Header.Get("X-Hop") != "1" {
			t.Errorf("got user %q, password %q, header %q", user, password, r.Header.Get("X-Hop"))
		}
	})
	s, err := Open(strings.Replace(address, "http://", "http://user:hush@", 1), Config{Header: http.Header{"X-Hop": {"1"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Status().Source; strings.Contains(got, "hush") {
		t.Errorf("got %q with the password", got)
	}
}

func TestClose_leavesNothing(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(ingesttest.TS(0, 348)); err != nil {
				return
			}
		}
	})
	before := runtime.NumGoroutine()
	for range 5 {
		s, err := Open(address, Config{})
		if err != nil {
			t.Fatal(err)
		}
		drain(t, s, 100*188)
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got %d goroutines, want %d", runtime.NumGoroutine(), before)
		}
	}
}

// FuzzAlign cuts a stream anywhere and compares with what align makes of it as
// a whole: nothing but whole packets comes out, and all of a clean stream.
func FuzzAlign(f *testing.F) {
	f.Add([]byte("junk"), uint16(100))
	f.Add(ingesttest.TS(0, 3), uint16(188))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		clean := ingesttest.TS(7, 4)
		in := append(append([]byte(nil), b...), clean...)
		var rest []byte
		var total int
		synced := false
		for len(in) > 0 {
			n := min(int(cut)+1, len(in))
			var runs [][]byte
			var junk int
			held := len(rest)
			runs, rest, synced, junk = align(nil, append(append([]byte(nil), rest...), in[:n]...), synced)
			got := junk + len(rest)
			for _, run := range runs {
				if !mpegts.Whole(run) {
					t.Fatalf("got a run of %d bytes, want whole packets", len(run))
				}
				got += len(run)
			}
			if got != held+n || len(rest) > mpegts.PacketSize {
				t.Fatalf("got %d bytes accounted for and %d held, want %d and at most a packet", got, len(rest), held+n)
			}
			in = in[n:]
			total += n
		}
	})
}
