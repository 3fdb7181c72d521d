package mpegts

import (
	"bytes"
	"testing"
)

// channel builds a stream with all there is between two pictures: tables in
// several packets, other sections on the PMT's PID, tables inside the candidate.
func channel() *mux {
	m := &mux{}
	m.cc[0], m.cc[testPMT], m.cc[testVideo] = 14, 9, 7
	pmt := pmtSection(1, 300, es{typeH264, testVideo}, es{typeAudio, testAudio})
	for range 12 {
		m.section(0, patSection(0, program{0, 0x10}, program{1, testPMT}))
		m.section(testPMT, pmt)
		m.audio()
		m.section(testPMT, longSection(0xC0, 7, 0, make([]byte, 250)))
		idr := pesPacket(units(h264Delimiter, h264SPS, nal(0x06), h264PPS, append(nal(0x65), make([]byte, 600)...)))
		m.packet(testVideo, true, nil, idr[:50])
		m.section(0, patSection(0, program{0, 0x10}, program{1, testPMT}))
		m.section(testPMT, pmt)
		m.more(testVideo, idr[50:])
		m.null()
		m.pes(h264Inter)
	}
	return m
}

// checkJoin plays tables and then the rest of the stream to a viewer.
func checkJoin(t *testing.T, what string, tables, rest []byte) {
	t.Helper()
	if len(tables) > 0 && !Whole(tables) {
		t.Fatalf("%s: tables are not whole packets", what)
	}
	var c Continuity
	for i, stream := range [][]byte{tables, rest} {
		for at := 0; at < len(stream); at += PacketSize {
			if p := Packet(stream[at : at+PacketSize]); !c.Check(p) {
				t.Fatalf("%s: part %d, byte %d: counter %d of PID %#x does not continue", what, i, at, p.Continuity(), p.PID())
			}
		}
	}
}

func TestScanner_tablesContinueTheCount(t *testing.T) {
	m := channel()
	var s Scanner
	points := 0
	last := int64(-1)
	for at := int64(0); at < m.pos(); at += PacketSize {
		s.Scan(m.out[at:at+PacketSize], at)
		checkJoin(t, "live", s.AppendTables(nil), m.out[at+PacketSize:])
		pos, ok := s.RandomAccess()
		if !ok || pos == last {
			continue
		}
		points++
		last = pos
		tables := s.AppendRandomAccessTables(nil)
		checkJoin(t, "random access", tables, m.out[pos:])
		if want := 3; len(tables) != want*PacketSize {
			t.Errorf("at %d: got %d bytes of tables, want %d packets", pos, len(tables), want)
		}
		if joined := scanAll(append(tables, m.out[pos:at+PacketSize]...)); joined.Codec() != "h264" {
			t.Errorf("at %d: a viewer reads codec %q", pos, joined.Codec())
		} else {
			wantPoint(t, joined, int64(len(tables)))
		}
	}
	if points != 12 {
		t.Errorf("random-access points: got %d, want 12", points)
	}
}

func TestScanner_discontinuityContinuesTheCount(t *testing.T) {
	var s Scanner
	if got := s.AppendDiscontinuity([]byte("x")); string(got) != "x" {
		t.Errorf("without a random-access point: got %q, want nothing appended", got)
	}
	m := channel()
	s.Scan(m.out, 0)
	pos, _ := s.RandomAccess()
	got := s.AppendDiscontinuity(nil)
	if !Whole(got) || len(got) != PacketSize {
		t.Fatalf("got %d bytes, want one packet", len(got))
	}
	p := Packet(got)
	if p.PID() != testVideo || !p.Discontinuity() || p.HasPayload() || p.RandomAccess() || p.UnitStart() {
		t.Errorf("not a packet without payload that announces a jump: % x", got[:8])
	}
	for cc := range uint8(16) {
		// A viewer whose last video packet had counter cc.
		var c Continuity
		old := mux{}
		old.cc[testVideo] = cc
		c.Check(old.packet(testVideo, false, nil, bytes.Repeat([]byte{1}, 184)))
		if !c.Check(p) {
			t.Errorf("viewer at counter %d: the announced jump is an error", cc)
		}
		if !c.Check(m.out[pos : pos+PacketSize]) {
			t.Errorf("viewer at counter %d: the packet behind the jump does not continue", cc)
		}
	}
}
