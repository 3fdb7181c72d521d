package mpegts

import "encoding/binary"

const (
	tablePAT = 0
	tablePMT = 2

	// firstFreePID: the PIDs below are assigned to tables of their own.
	firstFreePID = 0x10

	// pmtPatience is how many repetitions of the PAT a program's PMT may take,
	// where there are other programs to try. Both tables come about equally
	// often, so this allows for some loss.
	pmtPatience = 4

	psiHeaderSize = 8  // table_id to last_section_number
	pmtHeaderSize = 12 // psiHeaderSize, PCR PID, program_info_length
)

// validSection checks what PAT and PMT have in common: table_id, long syntax,
// in force now, first section, checksum.
func validSection(b []byte, tableID byte) bool {
	return len(b) >= psiHeaderSize+sectionCRCSize &&
		b[0] == tableID && b[1]&0x80 != 0 && b[5]&1 != 0 && b[6] == 0 &&
		crc32MPEG(b) == 0
}

func sectionCRC(b []byte) uint32 { return binary.BigEndian.Uint32(b[len(b)-sectionCRCSize:]) }

// program is an entry of the PAT.
type program struct{ number, pmtPID uint16 }

// nthProgram returns the program of that index in a valid PAT section and how
// many there are. Program 0 is the network table, not a program.
func nthProgram(b []byte, index int) (p program, count int) {
	for e := b[psiHeaderSize : len(b)-sectionCRCSize]; len(e) >= 4; e = e[4:] {
		number, pid := binary.BigEndian.Uint16(e), pid13(e[2:])
		if number == 0 || pid < firstFreePID || pid == NullPID {
			continue
		}
		if count == index {
			p = program{number, pid}
		}
		count++
	}
	return p, count
}

// streams is what a PMT says that matters here.
type streams struct {
	program  uint16
	pcrPID   uint16
	videoPID uint16 // 0 without video
	codec    codec  // of the video, or codecAudio
}

// parsePMT reads a valid PMT section; ok is false when its lengths lie.
func parsePMT(b []byte) (st streams, ok bool) {
	end := len(b) - sectionCRCSize
	if end < pmtHeaderSize {
		return st, false
	}
	st = streams{program: binary.BigEndian.Uint16(b[3:]), pcrPID: pid13(b[8:]), codec: codecAudio}
	at := pmtHeaderSize + length12(b[10:])
	for at+5 <= end {
		pid := pid13(b[at+1:])
		if c := videoCodec(b[at]); c != codecUnknown && st.videoPID == 0 && pid >= firstFreePID && pid != NullPID {
			st.videoPID, st.codec = pid, c
		}
		at += 5 + length12(b[at+3:])
	}
	return st, at == end
}

func pid13(b []byte) uint16 { return binary.BigEndian.Uint16(b) & 0x1FFF }
func length12(b []byte) int { return int(binary.BigEndian.Uint16(b) & 0x0FFF) }

// tablePacket takes a packet of the PAT's or the PMT's PID, §2.4.4.
func (s *Scanner) tablePacket(t *table, p Packet) {
	if p.Error() || p.Scrambled() || !p.HasPayload() {
		return
	}
	continues, repeats := t.advance(p.Continuity())
	payload := p.Payload()
	if !p.UnitStart() {
		switch {
		case t.active && continues:
			if t.extend(p); t.active {
				if _, complete := t.fill(payload); complete {
					s.section(t)
				}
			}
		case !repeats:
			t.active = false
		}
		return
	}

	// The payload begins with a pointer: so many bytes still belong to the
	// section before. A packet whose counter repeats is taken as new here: that
	// does no harm to a duplicate, and there are encoders whose tables never
	// count.
	if len(payload) == 0 || 1+int(payload[0]) > len(payload) {
		t.active = false
		return
	}
	tail, rest := payload[1:1+int(payload[0])], payload[1+int(payload[0]):]
	if t.active && continues {
		if t.extend(p); t.active {
			if _, complete := t.fill(tail); complete {
				s.section(t)
			}
		}
	}
	t.active = false
	for len(rest) > 0 && rest[0] != 0xFF {
		t.begin(p)
		var complete bool
		if rest, complete = t.fill(rest); complete {
			s.section(t)
		}
	}
}

// section takes a complete section.
func (s *Scanner) section(t *table) {
	if t == &s.pat {
		s.programTable(t.section)
	} else {
		s.streamTable(t.section)
	}
}

// programTable takes a section of PID 0. Of several programs it tries one after
// the other, in the order of the table, until one has video; if none has, the
// first is taken. A program whose PMT does not come is left for the next.
func (s *Scanner) programTable(b []byte) {
	if !validSection(b, tablePAT) {
		return
	}
	if crc := sectionCRC(b); crc != s.patCRC {
		s.patCRC, s.tried, s.waited = crc, 0, 0
	}
	if s.streams.codec == codecUnknown && s.programs > 1 && s.tried < s.programs {
		if s.waited++; s.waited > pmtPatience {
			s.tried++
		}
	}
	p, count := nthProgram(b, s.tried)
	if s.tried >= count {
		p, count = nthProgram(b, 0)
	}
	s.programs = count
	s.pat.accept()
	if count > 0 && p != s.program {
		s.program = p
		s.waited = 0
		s.pmt.restart(p.pmtPID)
		s.setStreams(streams{})
	}
}

// streamTable takes a section of the chosen program's PMT PID.
func (s *Scanner) streamTable(b []byte) {
	if !validSection(b, tablePMT) {
		return
	}
	st, ok := parsePMT(b)
	if !ok || st.program != s.program.number {
		return
	}
	if st.videoPID == 0 && s.programs > 1 && s.tried < s.programs {
		// Without video: the next PAT shall give the next program a try.
		s.waited = pmtPatience
		s.setStreams(streams{})
		return
	}
	s.pmt.accept()
	s.setStreams(st)
}
