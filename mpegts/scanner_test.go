package mpegts

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// scanAll lets a new Scanner see b packet by packet.
func scanAll(b []byte) *Scanner {
	var s Scanner
	for at := 0; at < len(b); at += PacketSize {
		s.Scan(b[at:at+PacketSize], int64(at))
	}
	return &s
}

// wantPoint checks the newest random-access point; a negative want is none.
func wantPoint(t *testing.T, s *Scanner, want int64) {
	t.Helper()
	got, ok := s.RandomAccess()
	if !ok {
		got = -1
	}
	if got != want {
		t.Errorf("random-access point: got %d, want %d", got, want)
	}
}

func TestScanner_accessUnits(t *testing.T) {
	for _, a := range accessUnits() {
		t.Run(fmt.Sprintf("%s/%s", codecNames[videoCodec(a.streamType)], a.name), func(t *testing.T) {
			var m mux
			m.tables(a.streamType)
			want := m.pos()
			if !a.want {
				want = -1
			}
			m.pes(a.es)
			s := scanAll(m.out)
			wantPoint(t, s, want)
			if _, ok := s.Candidate(); ok {
				t.Errorf("a candidate is open behind the first slice")
			}
			if s.Rule() != AtRandomAccess {
				t.Errorf("rule: got %q, want %q", s.Rule(), AtRandomAccess)
			}
			if got, want := s.Codec(), codecNames[videoCodec(a.streamType)]; got != want {
				t.Errorf("codec: got %q, want %q", got, want)
			}
		})
	}
}

// Every split of the PES packet between two transport packets, which puts each
// start code and each header field across the boundary in turn, and then with
// one byte of payload in each of the first packets.
func TestScanner_straddles(t *testing.T) {
	for _, a := range accessUnits() {
		pes := pesPacket(a.es)
		for first := 1; first <= min(len(pes), PacketSize-headerSize); first++ {
			var m mux
			m.tables(a.streamType)
			want := m.pos()
			if !a.want {
				want = -1
			}
			m.unit(testVideo, pes, first)
			wantPoint(t, scanAll(m.out), want)
			if t.Failed() {
				t.Fatalf("codec %s, %s: first %d bytes in the first packet", codecNames[videoCodec(a.streamType)], a.name, first)
			}
		}
	}
	for n := 1; n < maxSearchPackets; n++ {
		var m mux
		m.tables(typeHEVC)
		want := m.pos()
		pes := pesPacket(units(nal(21<<1, 1)))
		for i := range n {
			m.packet(testVideo, i == 0, nil, pes[i:i+1])
			m.audio()
		}
		m.packet(testVideo, false, nil, pes[n:])
		wantPoint(t, scanAll(m.out), want)
	}
}

func TestScanner_newestPointAndCandidate(t *testing.T) {
	var m mux
	m.tables(typeH264)
	first := m.pos()
	m.pes(h264IDR)
	m.pes(h264Inter)
	second := m.pos()
	m.unit(testVideo, pesPacket(h264IDR), 60)
	end := m.pos()

	s := scanAll(m.out[:second])
	wantPoint(t, s, first)
	s.Scan(m.out[second:second+PacketSize], second)
	wantPoint(t, s, first)
	if pos, ok := s.Candidate(); pos != second || !ok {
		t.Errorf("candidate: got %d, %v, want %d", pos, ok, second)
	}
	s.Scan(m.out[second+PacketSize:end], second+PacketSize)
	wantPoint(t, s, second)

	s.Reset()
	if _, ok := s.RandomAccess(); ok || s.Rule() != Unknown || s.Codec() != "" || len(s.AppendTables(nil)) != 0 {
		t.Errorf("something is left after Reset")
	}
}

func TestScanner_searchIsBounded(t *testing.T) {
	for _, c := range []struct {
		packets int
		want    bool
	}{{maxSearchPackets, true}, {maxSearchPackets + 1, false}} {
		var m mux
		m.tables(typeH264)
		want := m.pos()
		if !c.want {
			want = -1
		}
		sei := append([]byte{0x06}, bytes.Repeat([]byte{0xA5}, (c.packets-1)*184)...)
		m.pes(append(units(sei), h264IDR...))
		wantPoint(t, scanAll(m.out), want)
	}
}

func TestScanner_lossInsideCandidate(t *testing.T) {
	build := func() (m mux) {
		m.tables(typeH264)
		m.unit(testVideo, pesPacket(h264IDR), 40)
		return m
	}
	t.Run("counter", func(t *testing.T) {
		m := build()
		p := m.last()
		p.setContinuity(p.Continuity() + 1)
		wantPoint(t, scanAll(m.out), -1)
	})
	t.Run("position", func(t *testing.T) {
		m := build()
		cut := m.pos() - PacketSize
		s := scanAll(m.out[:cut])
		s.Scan(m.out[cut:], cut+16*7*PacketSize)
		wantPoint(t, s, -1)
	})
	t.Run("damage", func(t *testing.T) {
		m := build()
		m.last()[1] |= errorBit
		wantPoint(t, scanAll(m.out), -1)
	})
	t.Run("new PES", func(t *testing.T) {
		var m mux
		m.tables(typeH264)
		m.pes(units(h264Delimiter, h264SPS))
		want := m.pos()
		m.pes(h264IDR)
		wantPoint(t, scanAll(m.out), want)
	})
	t.Run("duplicate and packets without payload", func(t *testing.T) {
		var m mux
		m.tables(typeH264)
		want := m.pos()
		pes := pesPacket(units(h264Delimiter, h264SPS, h264PPS, nal(0x65)))
		for i, part := range [][]byte{pes[:36], pes[36:50], pes[50:]} {
			p := bytes.Clone(m.packet(testVideo, i == 0, nil, part))
			if i > 0 {
				m.out = append(m.out, p...)
			}
			m.packet(testVideo, false, []byte{pcrBit, 0, 0, 0, 0, 0, 0}, nil)
		}
		wantPoint(t, scanAll(m.out), want)
	})
}

// PMT on PID 0x01F0 in two packets, network entry first.
func TestScanner_tablesOverSeveralPackets(t *testing.T) {
	for _, descriptors := range []int{0, 150, 163, 164, 165, 166, 300, 900} {
		var m mux
		m.section(0, patSection(0, program{0, 0x10}, program{1, testPMT}))
		m.null()
		m.section(testPMT, pmtSection(1, descriptors, es{typeAudio, testAudio}, es{typeH264, testVideo}))
		tables := m.pos()
		s := scanAll(m.out)
		if s.Rule() != AtRandomAccess || s.Codec() != "h264" {
			t.Errorf("%d bytes of descriptors: got rule %q, codec %q", descriptors, s.Rule(), s.Codec())
		}
		want := slices.Concat(m.out[:PacketSize], m.out[2*PacketSize:tables])
		if got := s.AppendTables(nil); !bytes.Equal(got, want) {
			t.Errorf("%d bytes of descriptors: tables differ from the stream's packets: got %d bytes, want %d", descriptors, len(got), len(want))
		}
	}
}

func TestScanner_sectionLayouts(t *testing.T) {
	pat := patSection(0, program{1, testPMT})
	pmt := pmtSection(1, 0, es{typeHEVC, testVideo})
	other := longSection(0xC0, 7, 0, make([]byte, 100))
	foreign := pmtSection(2, 0, es{typeH264, testAudio})
	for name, write := range map[string]func(m *mux){
		"after other sections": func(m *mux) { m.section(testPMT, slices.Concat(other, foreign, pmt)) },
		"behind the tail of another": func(m *mux) {
			m.packet(testPMT, true, nil, slices.Concat([]byte{0}, other[:60]))
			m.packet(testPMT, true, nil, slices.Concat([]byte{byte(len(other) - 60)}, other[60:], pmt))
		},
		"header across packets": func(m *mux) {
			m.packet(testPMT, true, nil, append([]byte{0}, pmt[:2]...))
			m.packet(testPMT, false, nil, pmt[2:])
		},
		"ended by the pointer": func(m *mux) {
			m.packet(testPMT, true, nil, append([]byte{0}, pmt[:9]...))
			m.packet(testPMT, true, nil, slices.Concat([]byte{byte(len(pmt) - 9)}, pmt[9:], other))
		},
		"duplicate packets": func(m *mux) {
			p := bytes.Clone(m.packet(testPMT, true, nil, append([]byte{0}, pmt[:9]...)))
			m.out = append(m.out, p...)
			p = bytes.Clone(m.packet(testPMT, false, nil, pmt[9:12]))
			m.out = append(m.out, p...)
			m.packet(testPMT, false, nil, pmt[12:])
		},
	} {
		t.Run(name, func(t *testing.T) {
			var m mux
			m.section(0, pat)
			write(&m)
			s := scanAll(m.out)
			if s.Codec() != "hevc" {
				t.Fatalf("codec: got %q, want hevc", s.Codec())
			}
			again := scanAll(s.AppendTables(nil))
			if again.Codec() != "hevc" {
				t.Errorf("codec as read from the tables handed out: got %q, want hevc", again.Codec())
			}
		})
	}
}

func TestScanner_badTables(t *testing.T) {
	pat, pmt := patSection(0, program{1, testPMT}), pmtSection(1, 0, es{typeH264, testVideo})
	spoil := func(b []byte, at int, bits byte) []byte {
		b = bytes.Clone(b)
		b[at] ^= bits
		return b
	}
	resum := func(b []byte) []byte {
		n := len(b) - sectionCRCSize
		c := slowCRC(b[:n])
		return append(b[:n], byte(c>>24), byte(c>>16), byte(c>>8), byte(c))
	}
	two := pmtSection(1, 200, es{typeH264, testVideo})
	for name, write := range map[string]func(m *mux){
		"PAT checksum":       func(m *mux) { m.section(0, spoil(pat, 10, 1)); m.section(testPMT, pmt) },
		"PMT checksum":       func(m *mux) { m.section(0, pat); m.section(testPMT, spoil(pmt, 13, 1)) },
		"PMT of another":     func(m *mux) { m.section(0, pat); m.section(testPMT, pmtSection(2, 0, es{typeH264, testVideo})) },
		"PMT not yet valid":  func(m *mux) { m.section(0, pat); m.section(testPMT, resum(spoil(pmt, 5, 1))) },
		"PMT lengths lie":    func(m *mux) { m.section(0, pat); m.section(testPMT, resum(spoil(pmt, 11, 1))) },
		"PAT table_id":       func(m *mux) { m.section(0, resum(spoil(pat, 0, 1))); m.section(testPMT, pmt) },
		"network entry only": func(m *mux) { m.section(0, patSection(0, program{0, testPMT})); m.section(testPMT, pmt) },
		"PMT on a fixed PID": func(m *mux) { m.section(0, patSection(0, program{1, 1})); m.section(1, pmt) },
		"pointer beyond":     func(m *mux) { m.section(0, pat); m.section(testPMT, pmt); m.last()[headerSize] = 184 },
		"scrambled PMT":      func(m *mux) { m.section(0, pat); m.section(testPMT, pmt); m.last()[3] |= 0x80 },
		"damaged PMT":        func(m *mux) { m.section(0, pat); m.section(testPMT, pmt); m.last()[1] |= errorBit },
		"PMT with a hole": func(m *mux) {
			m.section(0, pat)
			m.section(testPMT, two)
			m.last().setContinuity(m.last().Continuity() + 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var m mux
			write(&m)
			m.pes(h264IDR)
			s := scanAll(m.out)
			if s.Rule() != Unknown {
				t.Errorf("rule: got %q, want %q", s.Rule(), Unknown)
			}
			wantPoint(t, s, -1)
		})
	}
}

func TestScanner_tablesChange(t *testing.T) {
	var m mux
	m.tables(typeH264)
	m.pes(h264IDR)
	m.section(testPMT, pmtSection(1, 0, es{typeHEVC, testVideo + 1}))
	want := m.pos()
	m.unit(testVideo+1, pesPacket(hevcCRA), PacketSize)
	m.pes(h264IDR) // left over, no longer of the program
	s := scanAll(m.out)
	wantPoint(t, s, want)
	if s.Codec() != "hevc" {
		t.Errorf("codec after the PMT changed: got %q, want hevc", s.Codec())
	}

	m.section(0, patSection(1, program{1, testPMT + 1}))
	s = scanAll(m.out)
	if got := s.AppendTables(nil); s.Rule() != Unknown || len(got) != PacketSize {
		t.Errorf("while the new PMT is awaited: got rule %q and %d bytes of tables, want %q and the PAT", s.Rule(), len(got), Unknown)
	}
	m.section(testPMT+1, pmtSection(1, 0, es{typeAVS, testVideo}))
	if s = scanAll(m.out); s.Codec() != "avs+" {
		t.Errorf("codec after the PAT changed: got %q, want avs+", s.Codec())
	}
}

func TestScanner_severalPrograms(t *testing.T) {
	pat := patSection(0, program{1, 0x101}, program{2, 0x102}, program{3, 0x103})
	radio := func(n uint16) []byte { return pmtSection(n, 0, es{typeAudio, testAudio}) }
	for _, c := range []struct {
		name  string
		pmts  map[uint16][]byte
		codec string
		pmt   uint16
	}{
		{"third has video", map[uint16][]byte{0x101: radio(1), 0x102: radio(2), 0x103: pmtSection(3, 0, es{typeAVS2, testVideo})}, "avs2", 0x103},
		{"first has video", map[uint16][]byte{0x101: pmtSection(1, 0, es{typeH264, testVideo}), 0x102: pmtSection(2, 0, es{typeHEVC, testVideo})}, "h264", 0x101},
		{"none has video", map[uint16][]byte{0x101: radio(1), 0x102: radio(2), 0x103: radio(3)}, "audio", 0x101},
		{"first has no PMT", map[uint16][]byte{0x102: pmtSection(2, 0, es{typeHEVC, testVideo})}, "hevc", 0x102},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m mux
			for range 10 {
				m.section(0, pat)
				for range 3 {
					for _, pid := range []uint16{0x101, 0x102, 0x103} {
						if pmt := c.pmts[pid]; pmt != nil {
							m.section(pid, pmt)
						}
					}
				}
			}
			s := scanAll(m.out)
			if s.Codec() != c.codec {
				t.Errorf("codec: got %q, want %q", s.Codec(), c.codec)
			}
			if tables := s.AppendTables(nil); len(tables) != 2*PacketSize || Packet(tables[PacketSize:]).PID() != c.pmt {
				t.Errorf("tables: got %d bytes, want a PAT and a PMT on PID %d", len(tables), c.pmt)
			}
		})
	}
}

func TestScanner_rules(t *testing.T) {
	for _, c := range []struct {
		name  string
		types []es
		write func(m *mux)
		want  StartRule
		codec string
		point bool
	}{
		{"radio", []es{{typeAudio, testAudio}}, func(m *mux) { m.audio() }, AtOnce, "audio", false},
		{"unknown stream type", []es{{0x99, testVideo}}, func(m *mux) { m.pes(h264IDR) }, AtOnce, "audio", false},
		{"VVC", []es{{typeVVC, testVideo}}, func(m *mux) { m.pes(h264IDR) }, AtOnce, "vvc", false},
		{"AVS3 with indicator", []es{{typeAVS3, testVideo}}, func(m *mux) {
			m.packet(testVideo, true, []byte{randomAccessBit}, pesPacket(nil))
		}, AtOnce, "avs3", true},
		{"H.264, indicator set wrongly", []es{{typeH264, testVideo}}, func(m *mux) {
			m.packet(testVideo, true, []byte{randomAccessBit}, pesPacket(h264Inter))
		}, AtRandomAccess, "h264", false},
		{"scrambled video", []es{{typeH264, testVideo}}, func(m *mux) { m.pes(h264IDR); m.last()[3] |= 0x80 }, AtOnce, "h264", false},
		{"scrambled video with indicator", []es{{typeH264, testVideo}}, func(m *mux) {
			m.packet(testVideo, true, []byte{randomAccessBit}, pesPacket(h264IDR))[3] |= 0xC0
		}, AtOnce, "h264", true},
		{"scrambled, then clear", []es{{typeH264, testVideo}}, func(m *mux) { m.pes(nil); m.last()[3] |= 0x80; m.pes(h264Inter) }, AtRandomAccess, "h264", false},
		{"scrambled audio", []es{{typeH264, testVideo}, {typeAudio, testAudio}}, func(m *mux) { m.audio(); m.last()[3] |= 0x80 }, AtRandomAccess, "h264", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m mux
			m.section(0, patSection(0, program{1, testPMT}))
			m.section(testPMT, pmtSection(1, 0, c.types...))
			want := int64(-1)
			if c.point {
				want = m.pos()
			}
			c.write(&m)
			s := scanAll(m.out)
			if s.Rule() != c.want || s.Codec() != c.codec {
				t.Errorf("got rule %q, codec %q, want %q, %q", s.Rule(), s.Codec(), c.want, c.codec)
			}
			wantPoint(t, s, want)
		})
	}
}
