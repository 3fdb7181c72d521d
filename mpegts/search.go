package mpegts

// verdict is the outcome of looking at a piece of video.
type verdict uint8

const (
	undecided verdict = iota
	accepted          // a decoder can begin with this access unit
	rejected
)

const (
	pesHeaderSize = 9 // up to and with PES_header_data_length, §2.4.3.6

	noStartCode = ^uint32(0)

	seiRecoveryPoint = 6 // H.264 table D.1
)

// search reads the payload of a video PES packet byte by byte, in pieces that
// may break anywhere, up to the first slice or picture that tells whether a
// decoder can begin there.
type search struct {
	codec codec

	// hasSequences: the MPEG-2 stream was seen to put sequence headers before
	// its I pictures. It outlives begin.
	hasSequences bool

	header int    // bytes of the PES header read
	skip   int    // bytes of the PES header's variable part still to come
	code   uint32 // the last four bytes of the elementary stream

	sequence bool // sequence header seen (AVS), or SPS (H.264)
	pps      bool // PPS seen (H.264)
	recovery bool // recovery point SEI seen (H.264)

	picture int // bytes to go to an MPEG-1/2 picture_coding_type
	sei     seiState
	seiType int // sum of the payload type's bytes so far
	seiSize int // sum of the size's bytes so far, then bytes left to skip
}

// seiState is the place inside an H.264 SEI NAL unit.
type seiState uint8

const (
	seiNone seiState = iota // not inside one
	seiTypeBytes
	seiSizeBytes
	seiBody
)

// begin makes f ready for the first byte of a PES packet.
func (f *search) begin() {
	*f = search{codec: f.codec, hasSequences: f.hasSequences, code: noStartCode}
}

// feed takes the next piece of the PES packet. After a verdict the search is
// over.
func (f *search) feed(b []byte) verdict {
	for f.header < pesHeaderSize {
		if len(b) == 0 {
			return undecided
		}
		if !f.headerByte(b[0]) {
			return rejected
		}
		b = b[1:]
	}
	n := min(f.skip, len(b))
	f.skip -= n
	for _, c := range b[n:] {
		f.code = f.code<<8 | uint32(c)
		v := undecided
		switch {
		case f.code>>8 == 1: // 00 00 01 c
			f.picture, f.sei = 0, seiNone
			v = f.unit(c)
		case f.picture > 0:
			v = f.pictureByte(c)
		case f.sei != seiNone && f.code&0xFFFFFF != 3: // not an emulation prevention byte
			f.seiByte(c)
		}
		if v != undecided {
			return v
		}
	}
	return undecided
}

// headerByte reads the fixed part of the PES header: 00 00 01, a stream_id of
// video (E0 to EF), lengths and flags.
func (f *search) headerByte(c byte) bool {
	switch f.header {
	case 0, 1:
		if c != 0 {
			return false
		}
	case 2:
		if c != 1 {
			return false
		}
	case 3:
		if c&0xF0 != 0xE0 {
			return false
		}
	case pesHeaderSize - 1:
		f.skip = int(c)
	}
	f.header++
	return true
}

// unit judges a unit of the elementary stream by the byte behind its start code.
func (f *search) unit(c byte) verdict {
	switch f.codec {
	case codecMPEG1, codecMPEG2:
		return f.mpegUnit(c)
	case codecH264:
		return f.h264Unit(c)
	case codecHEVC:
		return hevcUnit(c)
	case codecAVS, codecAVS2:
		return f.avsUnit(c)
	}
	return rejected
}

// mpegUnit: ISO/IEC 13818-2 table 6-1. A decoder needs the sequence header. An I
// picture alone counts only as long as no sequence header was seen where it
// belongs, at the start of a PES packet.
func (f *search) mpegUnit(c byte) verdict {
	switch {
	case c == 0xB3: // sequence_header
		f.hasSequences = true
		return accepted
	case c == 0x00: // picture
		f.picture = 2
	case c <= 0xAF: // slice
		return rejected
	}
	return undecided
}

// pictureByte reads the picture header: 10 bits of temporal_reference, then 3
// bits of picture_coding_type, of which 1 is an I picture.
func (f *search) pictureByte(c byte) verdict {
	if f.picture--; f.picture > 0 {
		return undecided
	}
	if c>>3&7 == 1 && !f.hasSequences {
		return accepted
	}
	return rejected
}

// h264Unit: ITU-T H.264 table 7-1. An open-GOP stream has no IDR pictures; its
// recovery point with both parameter sets before the first slice does as well.
// Of two fields the first decides: the second one of an IDR picture is not IDR.
func (f *search) h264Unit(c byte) verdict {
	switch c & 0x1F {
	case 5: // IDR slice
		return accepted
	case 1, 2, 3, 4: // other slice, or data partition
		if f.recovery && f.sequence && f.pps {
			return accepted
		}
		return rejected
	case 6:
		f.sei, f.seiType, f.seiSize = seiTypeBytes, 0, 0
	case 7:
		f.sequence = true
	case 8:
		f.pps = true
	}
	return undecided
}

// seiByte walks the messages of an SEI NAL unit, §7.3.2.3.1. Its trailing bits
// read like one more message, which the next start code ends.
func (f *search) seiByte(c byte) {
	switch f.sei {
	case seiTypeBytes:
		f.seiType += int(c)
		if c == 0xFF {
			return
		}
		if f.seiType == seiRecoveryPoint {
			f.recovery = true
		}
		f.sei, f.seiSize = seiSizeBytes, 0
	case seiSizeBytes:
		f.seiSize += int(c)
		if c == 0xFF {
			return
		}
		f.sei = seiBody
		if f.seiSize == 0 {
			f.sei, f.seiType = seiTypeBytes, 0
		}
	case seiBody:
		if f.seiSize--; f.seiSize == 0 {
			f.sei, f.seiType = seiTypeBytes, 0
		}
	}
}

// hevcUnit: ITU-T H.265 table 7-1. The first slice decides: 16 to 18 are BLA, 19
// and 20 IDR, 21 CRA pictures; types below 32 are slices.
func hevcUnit(c byte) verdict {
	switch t := c >> 1 & 0x3F; {
	case t >= 16 && t <= 21:
		return accepted
	case t < 32:
		return rejected
	}
	return undecided
}

// avsUnit: GB/T 20090.2 and GB/T 33475.2 share their start codes. A sequence
// header and then an intra picture.
func (f *search) avsUnit(c byte) verdict {
	switch {
	case c == 0xB0: // sequence header
		f.sequence = true
	case c == 0xB3 && f.sequence: // intra picture
		return accepted
	case c == 0xB3, c == 0xB6, c <= 0xAF: // picture, inter picture, slice
		return rejected
	}
	return undecided
}
