package mpegts

const (
	// ClockWrap90k is where PTS, DTS and the base of the PCR begin again: they
	// have 33 bits of 90 kHz ticks (about 26.5 hours).
	ClockWrap90k = 1 << 33

	// ClockWrap27M is where the whole PCR begins again, in 27 MHz ticks.
	ClockWrap27M = ClockWrap90k * ticksPer90k

	ticksPer90k = 300 // 27 MHz ticks in one 90 kHz tick
)

// clock27M reads a PCR or OPCR, ISO/IEC 13818-1 §2.4.3.5: 33 bits of base at
// 90 kHz, 6 reserved bits, 9 bits of extension at 27 MHz.
func clock27M(b []byte) int64 {
	base := int64(b[0])<<25 | int64(b[1])<<17 | int64(b[2])<<9 | int64(b[3])<<1 | int64(b[4])>>7
	return (base*ticksPer90k + int64(b[4]&1)<<8 + int64(b[5])) % ClockWrap27M
}

// putClock27M writes a PCR or OPCR and leaves the reserved bits alone.
func putClock27M(b []byte, t int64) {
	base, ext := t/ticksPer90k, t%ticksPer90k
	b[0], b[1], b[2], b[3] = byte(base>>25), byte(base>>17), byte(base>>9), byte(base>>1)
	b[4] = b[4]&0x7E | byte(base&1)<<7 | byte(ext>>8)
	b[5] = byte(ext)
}

// stamp90k reads a PTS or DTS of a PES header, §2.4.3.7: four bits of prefix,
// then 3, 15 and 15 bits, each group followed by a marker bit.
func stamp90k(b []byte) int64 {
	return int64(b[0]&0x0E)<<29 | int64(b[1])<<22 | int64(b[2]&0xFE)<<14 | int64(b[3])<<7 | int64(b[4])>>1
}

// putStamp90k writes a PTS or DTS and leaves prefix and marker bits alone.
func putStamp90k(b []byte, t int64) {
	b[0] = b[0]&^0x0E | byte(t>>29)&0x0E
	b[1] = byte(t >> 22)
	b[2] = b[2]&^0xFE | byte(t>>14)&0xFE
	b[3] = byte(t >> 7)
	b[4] = b[4]&^0xFE | byte(t<<1)
}
