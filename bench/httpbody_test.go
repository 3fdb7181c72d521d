//go:build linux

package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func feedBody(step int, b []byte) (counts, error) {
	h := httpBody{v: &verifier{source: 7}}
	for ; len(b) > 0; b = b[min(step, len(b)):] {
		if _, err := h.feed(b[:min(step, len(b))]); err != nil {
			return h.v.counts, err
		}
	}
	return h.v.counts, nil
}

// responses are the same n packets as one body and in chunks.
func responses(n int) [][]byte {
	b := stream(n)
	plain := append([]byte("HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"), b...)
	chunked := []byte("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
	for rest := b; len(rest) > 0; {
		n := min(333, len(rest))
		chunked = fmt.Appendf(chunked, "%x;ext=1\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	return [][]byte{plain, append(chunked, "0\r\n\r\n"...)}
}

func TestHTTPBody_pieces(t *testing.T) {
	want := counts{Bytes: 50 * tsLen, Packets: 50}
	for i, in := range responses(50) {
		for _, step := range []int{1, 3, 500, 1 << 20} {
			got, err := feedBody(step, in)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("response %d, step %d: error %v, -want +got:\n%s", i, step, err, diff)
			}
		}
	}
}

func TestHTTPBody_refused(t *testing.T) {
	for _, in := range []string{
		"HTTP/1.1 404 Not Found\r\n\r\n",
		"RTSP/1.0 200 OK\r\n\r\n",
		"HTTP/1.1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nGG\r\n",
		"HTTP/1.1 200 OK\r\nX: " + string(make([]byte, maxHeader)) + "\r\n\r\n",
	} {
		if _, err := feedBody(1<<20, []byte(in)); err == nil {
			t.Errorf("%.60q passed", in)
		}
	}
}

// FuzzHTTPBody: how a response is cut must not matter.
func FuzzHTTPBody(f *testing.F) {
	for _, r := range responses(3) {
		f.Add(r, 7)
	}
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nrest"), 1)
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		if step < 1 {
			return
		}
		want, wantErr := feedBody(len(in)+1, in)
		got, err := feedBody(step, in)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (wantErr == nil) {
			t.Errorf("step %d: got error %v, want %v; -want +got:\n%s", step, err, wantErr, diff)
		}
	})
}
