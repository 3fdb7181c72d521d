package mpegts

import "encoding/binary"

// maxSearchPackets is how many packets of the video PID are examined before a
// candidate is given up. The slice usually stands in the first (byte 88 and 119
// in captures), but parameter sets with scaling lists and SEI lists push it out:
// captions and HDR metadata take some hundred bytes, and an encoder that writes
// its settings into the stream takes over 2000. 16 packets are 2.9 KB, and the
// search costs nothing once the first slice has ended it.
const maxSearchPackets = 16

// noteworthy are the header bits for which a video packet gets a closer look
// while no candidate is open: error, unit start, scrambling.
const noteworthy = errorBit<<16 | unitStartBit<<16 | scrambledBits

// Scanner follows one transport stream with one program of interest: it finds
// PAT and PMT, and the random-access points of the video by looking into the
// bitstream. The zero value is ready. It is not safe for concurrent use, and
// Scan does not allocate once its buffers have grown to the stream's tables.
//
// The random_access_indicator is asked only where the bitstream cannot be: in
// scrambled video and for codecs not parsed here. There it gives RandomAccess a
// position, but Rule stays AtOnce, so that nobody waits for an encoder that
// never sets it. For the other codecs it is ignored, set or not.
type Scanner struct {
	next int64 // position behind the last packet scanned

	pat, pmt table
	patCRC   uint32
	program  program // the one chosen
	programs int     // how many the PAT lists
	tried    int     // programs found unfit; see programTable
	waited   int     // PATs seen since the chosen program's PMT is awaited

	streams   streams // of the chosen program
	scrambled bool    // the video is, as last seen

	newest    point // the newest random-access point
	candidate point // the PES packet under examination
	search    search
	packets   int   // packets of the candidate examined
	cc        uint8 // counter of the last of them
}

// point is the start of a PES packet.
type point struct {
	valid  bool
	pos    int64  // of its first packet
	pid    uint16 // of the video
	cc     uint8  // of its first packet
	tables []byte // PAT and PMT as they stood there
}

// Scan looks at ts, which must be whole packets (see Whole) and is not kept.
// The first of them stands at byte pos of the stream. Positions ascend from call
// to call; where one does not continue the last, something was lost.
func (s *Scanner) Scan(ts []byte, pos int64) {
	if pos != s.next {
		s.candidate.valid = false
		s.pat.active = false
		s.pmt.active = false
	}
	s.next = pos + int64(len(ts))
	for len(ts) >= PacketSize {
		p := ts[:PacketSize]
		header := binary.BigEndian.Uint32(p)
		switch pid := uint16(header>>8) & 0x1FFF; pid {
		case 0: // before the others, whose PIDs are 0 while unknown
			s.tablePacket(&s.pat, p)
		case s.pmt.pid:
			s.tablePacket(&s.pmt, p)
		case s.streams.videoPID:
			if header&noteworthy != 0 || s.candidate.valid {
				s.videoPacket(p, pos)
			}
		}
		ts = ts[PacketSize:]
		pos += PacketSize
	}
}

// videoPacket looks into a packet of the video PID that begins a PES packet,
// belongs to the candidate, is scrambled or is marked as damaged.
func (s *Scanner) videoPacket(p Packet, pos int64) {
	if p.Error() {
		s.candidate.valid = false
		return
	}
	if !p.HasPayload() {
		return
	}
	if p.Scrambled() {
		s.scrambled = true
		s.candidate.valid = false
	} else if p.UnitStart() {
		s.scrambled = false
	}
	switch {
	case p.UnitStart() && (s.scrambled || !s.streams.codec.parsed()):
		if p.RandomAccess() {
			s.begin(p, pos)
			s.confirm()
		}
		return
	case p.UnitStart():
		s.begin(p, pos)
	case !s.candidate.valid:
		return
	case p.Continuity() == s.cc: // a duplicate
		return
	case p.Continuity() != (s.cc+1)&counterBits:
		s.candidate.valid = false
		return
	}
	s.cc = p.Continuity()
	s.packets++
	switch s.search.feed(p.Payload()) {
	case accepted:
		s.confirm()
	case rejected:
		s.candidate.valid = false
	case undecided:
		if s.packets >= maxSearchPackets {
			s.candidate.valid = false
		}
	}
}

// begin makes the PES packet that starts with p the candidate.
func (s *Scanner) begin(p Packet, pos int64) {
	s.candidate = point{
		valid:  true,
		pos:    pos,
		pid:    p.PID(),
		cc:     p.Continuity(),
		tables: s.AppendTables(s.candidate.tables[:0]),
	}
	s.search.begin()
	s.packets = 0
}

// confirm makes the candidate the newest random-access point.
func (s *Scanner) confirm() {
	s.newest, s.candidate = s.candidate, s.newest
	s.candidate.valid = false
}

// setStreams takes over what a PMT says, or forgets it.
func (s *Scanner) setStreams(st streams) {
	if st == s.streams {
		return
	}
	s.streams = st
	s.scrambled = false
	s.candidate.valid = false
	s.search = search{codec: st.codec}
}

// RandomAccess returns the position of the packet that starts the newest
// confirmed random-access point.
func (s *Scanner) RandomAccess() (pos int64, ok bool) { return s.newest.pos, s.newest.valid }

// Candidate returns the position of the packet that starts the video PES packet
// under examination, which may yet turn out to be a random-access point.
func (s *Scanner) Candidate() (pos int64, ok bool) { return s.candidate.pos, s.candidate.valid }

// Rule returns where a viewer may begin, as far as is known by now.
func (s *Scanner) Rule() StartRule {
	switch {
	case s.streams.codec == codecUnknown:
		return Unknown
	case s.streams.codec.parsed() && !s.scrambled:
		return AtRandomAccess
	}
	return AtOnce
}

// Codec returns the codec of the video in lower case ("h264", "hevc", "mpeg2",
// "avs+", "avs2", …), "audio" for a program without video, "" while unknown.
func (s *Scanner) Codec() string { return codecNames[s.streams.codec] }

// AppendTables appends the packets of the newest PAT and PMT, whichever of them
// are known, and returns the extended slice. Their continuity counters lead up
// to the stream's newest packets of those PIDs, so that what follows in the
// stream continues the count.
func (s *Scanner) AppendTables(dst []byte) []byte {
	return s.pmt.appendTo(s.pat.appendTo(dst))
}

// AppendRandomAccessTables is AppendTables as it was at the position that
// RandomAccess returns.
func (s *Scanner) AppendRandomAccessTables(dst []byte) []byte {
	if !s.newest.valid {
		return dst
	}
	return append(dst, s.newest.tables...)
}

// AppendDiscontinuity appends a packet without payload that announces, on the
// video PID, that the continuity counter jumps to that of the packet at the
// newest random-access point: for a viewer who is sent on from an older place.
// It appends nothing when there is no such point.
func (s *Scanner) AppendDiscontinuity(dst []byte) []byte {
	if !s.newest.valid {
		return dst
	}
	// ISO/IEC 13818-1 §2.4.3.4 and §2.4.3.5: the adaptation field fills the
	// packet. The counter does not advance in a packet without payload, so it
	// is the one before.
	at := len(dst)
	dst = append(dst, SyncByte, byte(s.newest.pid>>8), byte(s.newest.pid),
		adaptationBit|(s.newest.cc-1)&counterBits, PacketSize-headerSize-1, discontinuityBit)
	for len(dst) < at+PacketSize {
		dst = append(dst, 0xFF)
	}
	return dst
}

// Reset forgets everything: the source has begun anew.
func (s *Scanner) Reset() { *s = Scanner{} }
