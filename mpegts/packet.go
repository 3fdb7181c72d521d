package mpegts

const (
	// PacketSize is the length of a transport packet in bytes.
	PacketSize = 188

	// SyncByte begins every transport packet.
	SyncByte = 0x47

	// NullPID carries stuffing packets, whose counters mean nothing.
	NullPID = 0x1FFF

	numPIDs = 1 << 13
)

// Bits of the packet header, ISO/IEC 13818-1 §2.4.3.2:
//
//	 0        1                 2        3
//	+--------+-+-+-+-----------+--------+--+--+----+
//	|  0x47  |E|S|P|        PID         |TS|AF| CC |
//	+--------+-+-+-+-----------+--------+--+--+----+
//
// E transport error, S payload unit start, P priority, TS scrambling control,
// AF adaptation field and payload present, CC continuity counter.
const (
	errorBit      = 0x80 // byte 1
	unitStartBit  = 0x40 // byte 1
	scrambledBits = 0xC0 // byte 3
	adaptationBit = 0x20 // byte 3
	payloadBit    = 0x10 // byte 3
	counterBits   = 0x0F // byte 3

	headerSize = 4
)

// Bits of the adaptation field's first byte, §2.4.3.4. The optional fields
// follow in this order: PCR (6 bytes), OPCR (6 bytes), others.
const (
	discontinuityBit = 0x80
	randomAccessBit  = 0x40
	pcrBit           = 0x10
	opcrBit          = 0x08

	clockSize = 6 // bytes of a PCR or OPCR
)

// Packet is a view of one transport packet of exactly PacketSize bytes. Its
// methods return something sensible for any content of that length.
type Packet []byte

// PID returns the packet identifier, 0 to 0x1FFF.
func (p Packet) PID() uint16 { return uint16(p[1]&0x1F)<<8 | uint16(p[2]) }

// Error reports whether a demodulator marked the packet as damaged.
func (p Packet) Error() bool { return p[1]&errorBit != 0 }

// UnitStart reports whether a PES packet or a section begins in the payload.
func (p Packet) UnitStart() bool { return p[1]&unitStartBit != 0 }

// Scrambled reports whether the payload is scrambled.
func (p Packet) Scrambled() bool { return p[3]&scrambledBits != 0 }

// HasPayload reports whether the header announces a payload, which is what
// makes the continuity counter advance.
func (p Packet) HasPayload() bool { return p[3]&payloadBit != 0 }

// Continuity returns the continuity counter, 0 to 15.
func (p Packet) Continuity() uint8 { return p[3] & counterBits }

// setContinuity writes the continuity counter modulo 16.
func (p Packet) setContinuity(cc uint8) { p[3] = p[3]&^counterBits | cc&counterBits }

// Payload returns the payload as a part of p. It is nil when there is none or
// when the adaptation field claims to be longer than the packet.
func (p Packet) Payload() []byte {
	switch p[3] & (adaptationBit | payloadBit) {
	case payloadBit:
		return p[headerSize:]
	case adaptationBit | payloadBit:
		if start := headerSize + 1 + int(p[4]); start < PacketSize {
			return p[start:]
		}
	}
	return nil
}

// adaptation returns the adaptation field from its flags on, or nil when there
// is none, it is empty, or its length lies.
func (p Packet) adaptation() []byte {
	if p[3]&adaptationBit == 0 {
		return nil
	}
	end := headerSize + 1 + int(p[4])
	if p[4] == 0 || end > PacketSize {
		return nil
	}
	return p[headerSize+1 : end]
}

func (p Packet) adaptationFlag(bit byte) bool {
	a := p.adaptation()
	return a != nil && a[0]&bit != 0
}

// Discontinuity reports whether the discontinuity_indicator is set.
func (p Packet) Discontinuity() bool { return p.adaptationFlag(discontinuityBit) }

// RandomAccess reports whether the random_access_indicator is set. Many
// encoders never set it, and some set it wrongly.
func (p Packet) RandomAccess() bool { return p.adaptationFlag(randomAccessBit) }

// PCR returns the program clock reference in 27 MHz ticks, 0 to
// ClockWrap27M-1, and whether the packet carries one.
func (p Packet) PCR() (pcr27M int64, ok bool) {
	if field := p.clock(pcrBit); field != nil {
		return clock27M(field), true
	}
	return 0, false
}

// clock returns the bytes of the PCR or OPCR, whichever bit names, or nil.
func (p Packet) clock(bit byte) []byte {
	a := p.adaptation()
	if a == nil || a[0]&bit == 0 {
		return nil
	}
	at := 1
	if bit == opcrBit && a[0]&pcrBit != 0 {
		at += clockSize
	}
	if len(a) < at+clockSize {
		return nil
	}
	return a[at : at+clockSize]
}

// Whole reports whether b is one or more whole packets and nothing else: its
// length is a multiple of PacketSize and a sync byte stands at each step.
func Whole(b []byte) bool {
	if len(b) == 0 || len(b)%PacketSize != 0 {
		return false
	}
	for i := 0; i < len(b); i += PacketSize {
		if b[i] != SyncByte {
			return false
		}
	}
	return true
}
