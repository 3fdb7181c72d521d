package fec

import (
	"bytes"
	"errors"
	"testing"
)

func TestParseRS_faults(t *testing.T) {
	good := RSHeader{Begin: 65500, End: 63, M: 5, Index: 4, Protected: 200}.append(nil, make([]byte, 200))
	if h, parity, err := ParseRS(good); err != nil || h.K() != 100 || len(parity) != 200 {
		t.Fatalf("got %+v, %d bytes, %v", h, len(parity), err)
	}
	set := func(at int, values ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], values)
		return b
	}
	for name, c := range map[string]struct {
		payload []byte
		want    error
	}{
		"empty":                  {nil, ErrShort},
		"header cut":             {good[:11], ErrShort},
		"parity cut":             {good[:len(good)-1], ErrShort},
		"65536 media":            {set(2, 0xff, 0xdb), ErrGeometry},
		"256 media":              {set(2, 0, 219), ErrGeometry},
		"no parity":              {set(4, 0, 0), ErrGeometry},
		"index beyond":           {set(5, 5), ErrGeometry},
		"more than 256 in all":   {set(4, 157), ErrGeometry},
		"protects no header":     {set(8, 0, 11), ErrLength},
		"protects a jumbo frame": {set(8, 6, 1), ErrLength},
		"parity shorter":         {set(6, 0, 199), ErrLength},
	} {
		if _, _, err := ParseRS(c.payload); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestParseXOR_faults(t *testing.T) {
	e := mustXOR(t, 1, 2, false)
	e.Add(testDatagram(65535, true))
	e.Add(testDatagram(0, true))
	good := bytes.Clone(e.Add(testDatagram(1, true))[0].Datagram)
	if h, _, err := ParseXOR(good); err != nil || h.Base != 65535 || h.Step != 1 || h.Count != 2 || h.Row {
		t.Fatalf("got %+v, %v", h, err)
	}
	set := func(at int, value byte) []byte {
		b := bytes.Clone(good)
		b[at] = value
		return b
	}
	for name, b := range map[string][]byte{
		"empty": nil, "cut": good[:27], "version 1": set(0, 0x40), "no E": set(16, 33), "mask": set(19, 1),
		"another extension": set(24, 0x80), "another code": set(24, 0x08), "index": set(24, 1), "row with a step of 2": func() []byte {
			b := set(24, xorRow)
			b[25] = 2
			return b
		}(), "no step": set(25, 0), "no count": set(26, 0), "base of 24 bits": set(27, 1), "jumbo": append(bytes.Clone(good), make([]byte, 1500)...),
	} {
		if _, _, err := ParseXOR(b); !errors.Is(err, ErrNotXOR) {
			t.Errorf("%s: got %v, want ErrNotXOR", name, err)
		}
	}
	wide := set(25, 255)
	wide[26] = 255
	if _, _, err := ParseXOR(wide); !errors.Is(err, ErrGeometry) {
		t.Errorf("255 × 255: got %v, want ErrGeometry", err)
	}
}

func TestEncoders_refuse(t *testing.T) {
	for _, c := range []struct {
		k, m    int
		dialect Dialect
	}{{0, 1, Integer}, {1, 0, Integer}, {200, 57, Integer}, {200, 56, Alpha}} {
		if _, err := NewRSEncoder(c.k, c.m, c.dialect); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	for _, c := range [][2]int{{0, 5}, {5, 0}, {256, 1}, {40, 40}} {
		if _, err := NewXOREncoder(c[0], c[1], true); err == nil {
			t.Errorf("%v was taken", c)
		}
	}
}

func FuzzParseRS(f *testing.F) {
	f.Add(RSHeader{Begin: 65500, End: 63, M: 5, Index: 4, Protected: 20}.append(nil, make([]byte, 20)))
	f.Add(RSHeader{Begin: 7, End: 7, M: 255, Index: 0, Protected: 12}.append(nil, make([]byte, 12)))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, parity, err := ParseRS(b)
		if err != nil {
			return
		}
		if k := h.K(); k < 1 || h.M < 1 || k+h.M > 256 || h.Index >= h.M || len(parity) != h.Protected || len(parity) < rtpHeaderBytes {
			t.Fatalf("accepted %+v with %d bytes", h, len(parity))
		}
		again, _, err := ParseRS(h.append(nil, parity))
		if err != nil || again != h {
			t.Fatalf("%+v reads back as %+v, %v", h, again, err)
		}
	})
}

func FuzzParseXOR(f *testing.F) {
	for _, rows := range []bool{true, false} {
		e, _ := NewXOREncoder(4, 4, rows)
		for _, s := range transmit(e, 0, 32, true) {
			if !s.media {
				f.Add(s.bytes)
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, data, err := ParseXOR(b)
		if err != nil {
			return
		}
		if h.Step < 1 || h.Count < 1 || h.Step*h.Count > maxSpan || h.Row && h.Step != 1 || len(data) > maxProtected {
			t.Fatalf("accepted %+v with %d bytes", h, len(data))
		}
		head := append([]byte(nil), b[:rtpHeaderBytes]...)
		again, _, err := ParseXOR(h.append(head, data))
		if err != nil || again != h {
			t.Fatalf("%+v reads back as %+v, %v", h, again, err)
		}
	})
}
