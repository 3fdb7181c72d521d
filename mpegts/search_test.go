package mpegts

import (
	"bytes"
	"slices"
	"testing"
)

// access is an access unit and whether a decoder can begin with it.
type access struct {
	name       string
	streamType byte
	es         []byte
	want       bool
}

func accessUnits() []access {
	filler := func(n int) []byte { return append([]byte{0x06, 0x05, byte(n)}, bytes.Repeat([]byte{0xA5}, n)...) }
	longSEI := append([]byte{0x06, 0x05, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x00}, bytes.Repeat([]byte{0xA5}, 8*255)...)
	return []access{
		{"IDR", typeH264, h264IDR, true},
		{"IDR behind a long SEI", typeH264, units(h264Delimiter, h264SPS, h264PPS, longSEI, nal(0x65)), true},
		{"IDR field, then inter field", typeH264, append(slices.Clone(h264IDR), h264Inter...), true},
		{"inter picture", typeH264, h264Inter, false},
		{"inter picture, then IDR", typeH264, append(slices.Clone(h264Inter), h264IDR...), false},
		{"parameter sets only", typeH264, units(h264Delimiter, h264SPS, h264PPS, nal(0x41)), false},
		{"recovery point", typeH264, h264Recovery, true},
		{"recovery point without parameter sets", typeH264, units(h264Delimiter, []byte{0x06, 0x06, 0x01, 0xC4, 0x80}, nal(0x41)), false},
		{"recovery point without PPS", typeH264, units(h264SPS, []byte{0x06, 0x06, 0x01, 0xC4, 0x80}, nal(0x41)), false},
		{"recovery point as the third message", typeH264, units(h264SPS, h264PPS, append(filler(3), 0x01, 0x00, 0x06, 0x01, 0xC4, 0x80), nal(0x41)), true},
		{"six inside an SEI message", typeH264, units(h264SPS, h264PPS, []byte{0x06, 0x05, 0x03, 0x06, 0x06, 0x06, 0x80}, nal(0x41)), false},
		{"payload type 255+6", typeH264, units(h264SPS, h264PPS, []byte{0x06, 0xFF, 0x06, 0x01, 0xC4, 0x80}, nal(0x41)), false},
		{"four-byte start codes", typeH264, bytes.ReplaceAll(h264IDR, []byte{0, 0, 1}, []byte{0, 0, 0, 1}), true},
		{"CRA", typeHEVC, hevcCRA, true},
		{"BLA", typeHEVC, units(nal(16<<1, 1)), true},
		{"IDR", typeHEVC, units(nal(20<<1, 1)), true},
		{"reserved IRAP", typeHEVC, units(nal(22<<1, 1)), false},
		{"trailing picture", typeHEVC, hevcTrail, false},
		{"trailing picture, then CRA", typeHEVC, append(slices.Clone(hevcTrail), hevcCRA...), false},
		{"sequence header", typeMPEG2, mpeg2I, true},
		{"I picture without sequence header", typeMPEG2, units([]byte{0x00, 0x12, 0x0F, 0xFF}, nal(0x01)), true},
		{"P picture", typeMPEG2, mpeg2P, false},
		{"B picture", typeMPEG2, units([]byte{0x00, 0x00, 0x1F, 0xFF}, nal(0x01)), false},
		{"slices only", typeMPEG2, units(nal(0x01)), false},
		{"sequence header and I picture", typeAVS, avsI, true},
		{"I picture without sequence header", typeAVS, units(nal(0xB3), nal(0x00)), false},
		{"sequence header and inter picture", typeAVS, units(nal(0xB0), nal(0xB6), nal(0xB3)), false},
		{"inter picture", typeAVS, avsP, false},
		{"sequence header and intra picture", typeAVS2, avsI, true},
		{"inter picture", typeAVS2, avsP, false},
	}
}

func TestSearch_accessUnits(t *testing.T) {
	for _, a := range accessUnits() {
		want := rejected
		if a.want {
			want = accepted
		}
		f := search{codec: videoCodec(a.streamType)}
		f.begin()
		if got := f.feed(pesPacket(a.es)); got != want {
			t.Errorf("%s: %s: got verdict %d, want %d", codecNames[f.codec], a.name, got, want)
		}
		f.begin()
		got := undecided
		for _, b := range pesPacket(a.es) {
			if got = f.feed([]byte{b}); got != undecided {
				break
			}
		}
		if got != want && a.streamType != typeMPEG2 { // which has learnt from the first time
			t.Errorf("%s: %s: byte by byte: got verdict %d, want %d", codecNames[f.codec], a.name, got, want)
		}
	}
}

func TestSearch_truncated(t *testing.T) {
	for _, a := range accessUnits() {
		pes := pesPacket(a.es)
		whole := search{codec: videoCodec(a.streamType)}
		whole.begin()
		want := whole.feed(pes)
		for n := range pes {
			f := search{codec: videoCodec(a.streamType)}
			f.begin()
			if got := f.feed(pes[:n]); got != undecided && got != want {
				t.Errorf("%s: %s: first %d bytes: got verdict %d, want %d or none", codecNames[f.codec], a.name, n, got, want)
			}
		}
	}
}

func TestSearch_mpegPrefersSequenceHeaders(t *testing.T) {
	f := search{codec: codecMPEG2}
	lone := pesPacket(units([]byte{0x00, 0x12, 0x0F, 0xFF}, nal(0x01)))
	for i, step := range []struct {
		pes  []byte
		want verdict
	}{{lone, accepted}, {pesPacket(mpeg2I), accepted}, {lone, rejected}} {
		f.begin()
		if got := f.feed(step.pes); got != step.want {
			t.Errorf("step %d: got verdict %d, want %d", i, got, step.want)
		}
	}
}

func TestSearch_notVideo(t *testing.T) {
	for _, b := range [][]byte{
		{0, 0, 1, 0xC0, 0, 0, 0x80, 0, 0},
		{0, 0, 1, 0xBD, 0, 0, 0x80, 0, 0},
		{0, 0, 2, 0xE0, 0, 0, 0x80, 0, 0},
		{0, 1, 1, 0xE0, 0, 0, 0x80, 0, 0},
		{0, 0xB0, 0x0D},
	} {
		f := search{codec: codecH264}
		f.begin()
		if got := f.feed(append(b, h264IDR...)); got != rejected {
			t.Errorf("% x: got verdict %d, want %d", b, got, rejected)
		}
	}
}
