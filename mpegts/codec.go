package mpegts

// StartRule says where a viewer of a stream may begin.
type StartRule uint8

const (
	// Unknown: the tables have not been seen yet.
	Unknown StartRule = iota
	// AtRandomAccess: pictures appear only from a random-access point on.
	AtRandomAccess
	// AtOnce: there is nothing to wait for (no video), or no way to tell a
	// random-access point (scrambled video, or a codec not parsed here).
	AtOnce
)

// String returns the rule in lower-case words.
func (r StartRule) String() string {
	switch r {
	case AtRandomAccess:
		return "at random access"
	case AtOnce:
		return "at once"
	}
	return "unknown"
}

// codec is what a program's picture is coded in.
type codec uint8

const (
	codecUnknown codec = iota // no PMT yet
	codecAudio                // a program without video
	codecMPEG1
	codecMPEG2
	codecH264
	codecHEVC
	codecAVS
	codecAVS2
	// The codecs from here on are known by name only. Their access units are
	// not parsed: no operator's stream was at hand to prove the rules.
	codecMPEG4
	codecVVC
	codecEVC
	codecAVS3
	codecVC1
)

// codecNames holds what Scanner.Codec returns.
var codecNames = [...]string{
	codecUnknown: "",
	codecAudio:   "audio",
	codecMPEG1:   "mpeg1",
	codecMPEG2:   "mpeg2",
	codecH264:    "h264",
	codecHEVC:    "hevc",
	codecAVS:     "avs+",
	codecAVS2:    "avs2",
	codecMPEG4:   "mpeg4",
	codecVVC:     "vvc",
	codecEVC:     "evc",
	codecAVS3:    "avs3",
	codecVC1:     "vc1",
}

// videoCodec returns the codec of a stream_type (ISO/IEC 13818-1 table 2-34 and
// the AVS assignments), or codecUnknown when it is not video.
func videoCodec(streamType byte) codec {
	switch streamType {
	case 0x01:
		return codecMPEG1
	case 0x02:
		return codecMPEG2
	case 0x10:
		return codecMPEG4
	case 0x1B:
		return codecH264
	case 0x24:
		return codecHEVC
	case 0x33:
		return codecVVC
	case 0x35:
		return codecEVC
	case 0x42:
		return codecAVS
	case 0xD2:
		return codecAVS2
	case 0xD4:
		return codecAVS3
	case 0xEA:
		return codecVC1
	}
	return codecUnknown
}

// parsed reports whether random-access points of the codec are found in its
// bitstream.
func (c codec) parsed() bool { return c >= codecMPEG1 && c <= codecAVS2 }
