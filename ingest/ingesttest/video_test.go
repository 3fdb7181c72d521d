package ingesttest

import (
	"testing"

	"zapcast/mpegts"
)

func TestVideo_isFoundByAScanner(t *testing.T) {
	var scan mpegts.Scanner
	var pos int64
	next := uint64(0)
	for n := range uint32(100) {
		b := Video(n, 40)
		scan.Scan(b, pos)
		if at, ok := scan.RandomAccess(); !ok || at != int64(n/40*40)*1316+2*188 {
			t.Fatalf("payload %d: got random access at %d, %t", n, at, ok)
		}
		pos += int64(len(b))
		numbers, random := VideoNumbers(b)
		if random != (n%40 == 0) || len(b) != 1316 {
			t.Errorf("payload %d: got random %t, %d bytes", n, random, len(b))
		}
		for _, number := range numbers {
			if number != next {
				t.Fatalf("payload %d: got number %d, want %d", n, number, next)
			}
			next++
		}
		if first := VideoFirst(n+1, 40); first != next {
			t.Fatalf("VideoFirst(%d): got %d, want %d", n+1, first, next)
		}
	}
}
