package fec

import "testing"

// Two losses in one row are beyond the row, and a column brings them back: they
// are hoped for although no column has come yet, in the stream's first matrix.
func TestHope_beforeTheFirstColumn(t *testing.T) {
	d := NewDecoder(Config{Check: anyLength})
	lost := map[uint16]bool{1013: true, 1016: true}
	back := 0
	for _, s := range transmit(mustXOR(t, 10, 10, true), 1000, 220, false) {
		switch {
		case !s.media:
			give(t, d, s.bytes)
		case !lost[s.seq]:
			d.Media(s.seq, s.bytes)
		}
		back += len(d.Take())
		for seq := range lost {
			if begun := d.store.begun && int16(d.store.top-seq) > 0; begun && back == 0 && !d.Hope(seq) {
				t.Fatalf("%d is given up when %d has come and no column has", seq, d.store.top-1)
			}
		}
	}
	if back != 2 {
		t.Errorf("%d came back, want 2", back)
	}
}

// Where there are rows and never a column, two losses in one row are soon no
// longer hoped for.
func TestHope_rowsAlone(t *testing.T) {
	d := NewDecoder(Config{Check: anyLength})
	for _, s := range transmit(mustXOR(t, 10, 10, true), 1000, 1000, false) {
		if s.media {
			if s.seq != 1903 && s.seq != 1906 {
				d.Media(s.seq, s.bytes)
			}
		} else if h, data, err := ParseXOR(s.bytes); err == nil && h.Row {
			d.XOR(h, data)
			if int16(h.Base-1910) >= 0 && d.Hope(1903) {
				t.Fatalf("hope for 1903 when the row from %d has come", h.Base)
			}
		}
	}
}
