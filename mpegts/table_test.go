package mpegts

import (
	"bytes"
	"slices"
	"testing"
)

// There are encoders whose tables always carry the same counter.
func TestScanner_tablesThatNeverCount(t *testing.T) {
	var m mux
	for _, streamType := range []byte{typeH264, typeHEVC} {
		m.cc[0], m.cc[testPMT] = 0, 0
		m.tables(streamType)
	}
	s := scanAll(m.out)
	if s.Codec() != "hevc" {
		t.Errorf("codec after the PMT changed: got %q, want hevc", s.Codec())
	}
	if got, want := s.AppendTables(nil), m.out[len(m.out)-2*PacketSize:]; !bytes.Equal(got, want) {
		t.Errorf("tables differ from the stream's packets")
	}
}

func TestTable_sectionInTooManyPackets(t *testing.T) {
	var m mux
	m.section(0, patSection(0, program{1, testPMT}))
	section := append([]byte{0}, longSection(0xC0, 1, 0, make([]byte, 500))...)
	for i, b := range section {
		m.packet(testPMT, i == 0, nil, []byte{b})
	}
	s := scanAll(m.out)
	if s.pmt.active || len(s.pmt.packets) > maxTablePackets*PacketSize {
		t.Errorf("active %v with %d packets held, want it given up after %d", s.pmt.active, len(s.pmt.packets)/PacketSize, maxTablePackets)
	}
	m.section(testPMT, pmtSection(1, 0, es{typeH264, testVideo}))
	if s = scanAll(m.out); s.Codec() != "h264" {
		t.Errorf("codec from the section behind it: got %q, want h264", s.Codec())
	}
}

func TestParsePMT_streamTypes(t *testing.T) {
	for streamType, want := range map[byte]string{
		0x01: "mpeg1", 0x02: "mpeg2", 0x10: "mpeg4", 0x1B: "h264", 0x24: "hevc", 0x33: "vvc", 0x35: "evc",
		0x42: "avs+", 0xD2: "avs2", 0xD4: "avs3", 0xEA: "vc1", 0x03: "audio", 0x0F: "audio", 0x06: "audio",
	} {
		b := pmtSection(1, 5, es{typeAudio, testAudio}, es{streamType, testVideo}, es{typeMPEG2, testVideo + 1})
		if want == "audio" {
			b = pmtSection(1, 5, es{streamType, testVideo})
		}
		st, ok := parsePMT(b)
		if got := codecNames[st.codec]; !ok || got != want {
			t.Errorf("stream type %#x: got %q, %v, want %q", streamType, got, ok, want)
		}
		if (st.videoPID == testVideo) != (want != "audio") {
			t.Errorf("stream type %#x: video PID %#x", streamType, st.videoPID)
		}
	}
}

func TestParsePMT_truncated(t *testing.T) {
	whole := pmtSection(1, 5, es{typeH264, testVideo}, es{typeAudio, testAudio})
	end := len(whole) - sectionCRCSize
	for n := range end {
		// Cut, with four bytes in the place of the checksum.
		b := slices.Concat(whole[:n], make([]byte, sectionCRCSize))
		_, ok := parsePMT(b)
		atBoundary := n == 17 || n == 22 // behind the descriptors, and behind the first stream
		if ok != atBoundary {
			t.Errorf("first %d of %d bytes: got %v, want %v", n, end, ok, atBoundary)
		}
	}
}

func TestStartRule_String(t *testing.T) {
	for rule, want := range map[StartRule]string{Unknown: "unknown", AtRandomAccess: "at random access", AtOnce: "at once"} {
		if got := rule.String(); got != want {
			t.Errorf("rule %d: got %q, want %q", rule, got, want)
		}
	}
}
