package fec

import (
	"math/rand/v2"
	"testing"
)

// model says which numbers can be known: sets and searches until nothing new
// turns up.
type model struct {
	here   map[uint16]bool
	groups []modelGroup
}

type modelGroup struct {
	numbers []uint16
	rows    map[int]bool
}

func (m *model) close() {
	for found := true; found; {
		found = false
		for _, g := range m.groups {
			var missing []uint16
			for _, n := range g.numbers {
				if !m.here[n] {
					missing = append(missing, n)
				}
			}
			if len(missing) > 0 && len(missing) <= len(g.rows) {
				for _, n := range missing {
					m.here[n] = true
				}
				found = true
			}
		}
	}
}

// FuzzDecoder draws operations from bytes: which code, and then which of the
// stream's datagrams come next, in any order and any number of times. What the
// model can know the decoder brings, byte for byte, and nothing else.
func FuzzDecoder(f *testing.F) {
	f.Add(byte(0), []byte{0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add(byte(1), []byte{200, 3, 3, 9, 100, 4, 0, 0, 1})
	f.Add(byte(7), []byte{5, 4, 3, 2, 1, 250, 251, 252, 253, 254, 255})
	random := rand.New(rand.NewPCG(9, 9))
	for i := range 10 {
		ops := make([]byte, 250)
		for j := range ops {
			ops[j] = byte(random.Uint32())
		}
		f.Add(byte(i), ops)
	}
	f.Fuzz(func(t *testing.T, kind byte, ops []byte) { checkModel(t, kind, ops) })
}

func checkModel(t *testing.T, kind byte, ops []byte) {
	t.Helper()
	var list []sent
	const from = 65450
	switch kind % 4 {
	case 0:
		list = transmit(mustRS(t, 10, 4, Integer), from, 120, true)
	case 1:
		list = transmit(mustRS(t, 25, 6, Alpha), from, 120, false)
	case 2:
		list = transmit(mustXOR(t, 5, 4, true), from, 120, true)
	case 3:
		list = transmit(mustXOR(t, 6, 5, false), from, 120, false)
	}
	varied := kind%2 == 0
	d := NewDecoder(Config{Check: anyLength})
	d.Remember(Dialect(kind % 4 & 1))
	m := &model{here: map[uint16]bool{}}
	d.Media(from-1, testDatagram(from-1, varied)) // whose header the others have
	sentMedia, repaired := map[uint16]bool{}, map[uint16]bool{}
	for _, op := range ops {
		s := list[int(op)%len(list)]
		if s.media {
			d.Media(s.seq, s.bytes)
			m.here[s.seq] = true
			sentMedia[s.seq] = true
		} else {
			give(t, d, s.bytes)
			m.note(s.bytes)
		}
		m.close()
		for _, r := range d.Take() {
			if want := testDatagram(r.Sequence, varied); string(r.Datagram) != string(want) {
				t.Fatalf("%d came back wrong", r.Sequence)
			}
			if repaired[r.Sequence] || sentMedia[r.Sequence] {
				t.Fatalf("%d came back although it was here", r.Sequence)
			}
			repaired[r.Sequence] = true
		}
		for seq := range m.here {
			if !repaired[seq] && !sentMedia[seq] {
				t.Fatalf("%d can be known, and did not come back", seq)
			}
		}
		for seq := range repaired {
			if !m.here[seq] {
				t.Fatalf("%d came back, and cannot be known", seq)
			}
		}
	}
	d.check(t)
}

func (m *model) note(parity []byte) {
	var numbers []uint16
	index := 0
	if parity[1]&rtpPayloadType == RSPayloadType {
		h, _, _ := ParseRS(parity[rtpHeaderBytes:])
		for i := range h.K() {
			numbers = append(numbers, h.Begin+uint16(i))
		}
		index = h.Index
	} else {
		h, _, _ := ParseXOR(parity)
		for i := range h.Count {
			numbers = append(numbers, h.Base+uint16(i*h.Step))
		}
	}
	for _, g := range m.groups {
		if len(g.numbers) == len(numbers) && g.numbers[0] == numbers[0] && g.numbers[len(numbers)-1] == numbers[len(numbers)-1] {
			g.rows[index] = true
			return
		}
	}
	m.groups = append(m.groups, modelGroup{numbers, map[int]bool{index: true}})
}

// check compares the decoder's counters with what it holds.
func (d *Decoder) check(t *testing.T) {
	t.Helper()
	open, rows := 0, 0
	for _, g := range d.groups {
		if g.open() {
			open++
		} else if len(g.rows) > 0 {
			t.Errorf("a group that waits for nothing keeps %d rows", len(g.rows))
		}
		rows += len(g.rows)
	}
	if open != d.open || rows != d.rowsKept || rows > maxRows || len(d.groups) > maxGroups {
		t.Errorf("%d groups wait and %d rows are kept, counted as %d and %d", open, rows, d.open, d.rowsKept)
	}
}

// FuzzDecoder_anything gives headers out of nowhere: nothing but what was
// computed from true parity may come of it, and what is held stays bounded.
func FuzzDecoder_anything(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 1, 0, 10, 0, 19, 5, 0, 0})
	f.Add([]byte{2, 0, 0, 4, 4, 0, 0, 0, 0, 0, 200, 0, 0, 0, 0, 0, 1, 0, 190, 0, 210, 30, 29, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		d := NewDecoder(Config{Check: anyLength})
		base := uint16(0)
		for ; len(ops) >= 8; ops = ops[8:] {
			a, b := uint16(ops[1])<<8|uint16(ops[2]), uint16(ops[3])<<8|uint16(ops[4])
			switch ops[0] % 5 {
			case 0:
				for range ops[3] {
					d.Media(base, testDatagram(base, false)[:200])
					base++
				}
				base += uint16(ops[4] % 8)
			case 1:
				h := RSHeader{Begin: base - a%512, M: int(ops[5]), Index: int(ops[6])}
				h.End = h.Begin + b%256
				if h.Protected = 200; Integer.Valid(h.K(), h.M) && h.Index < h.M {
					d.RS(h, make([]byte, 200))
				}
			case 2:
				h := XORHeader{Base: base - a%512, Step: int(ops[3])%32 + 1, Count: int(ops[4])%32 + 1, length: b}
				if h.Row = ops[5]%2 == 0; h.Row {
					h.Step = 1
				}
				d.XOR(h, make([]byte, 188))
			case 3:
				base = a
			case 4:
				d.Forget()
			}
			d.Take()
			d.Hope(base - b%300)
			d.check(t)
		}
	})
}
