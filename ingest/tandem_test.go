package ingest

import (
	"fmt"
	"testing"
)

func TestTandem(t *testing.T) {
	n := func(i int) []byte { return fmt.Append(nil, i) }
	td := newTandem()
	if known, _ := td.followed(n(1)); known {
		t.Error("nothing was ahead: got a datagram that is known")
	}
	for i := range 10 {
		td.led(n(i))
	}
	if known, missed := td.followed(n(4)); !known || missed != 4 {
		t.Errorf("the fifth: got known %t, missed %d", known, missed)
	}
	if known, missed := td.followed(n(5)); !known || missed != 0 {
		t.Errorf("the one behind it: got known %t, missed %d", known, missed)
	}
	if known, _ := td.followed(n(2)); known {
		t.Error("one from before: known")
	}
	if td.waiting() != 4 {
		t.Errorf("waiting: got %d, want 4", td.waiting())
	}
	for i := range 3 * tandemMax {
		td.led(n(i))
	}
	if td.waiting() > tandemMax {
		t.Errorf("waiting: got %d, want %d at most", td.waiting(), tandemMax)
	}
	if known, _ := td.followed(n(3*tandemMax - 1)); !known || td.waiting() != 0 {
		t.Errorf("the newest: got known %t, %d waiting", known, td.waiting())
	}
}
