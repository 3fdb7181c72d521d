package mpegts

import (
	"bytes"
	"slices"
	"testing"
)

// frame27M is the time between two pictures of clip: five seconds, so that a day
// passes quickly.
const frame27M = 5 * 27_000_000

// clip is a file of pictures: PCR and OPCR with each of them, PTS a second
// later, DTS half a second.
func clip(pictures int, start27M int64) []byte {
	var m mux
	for i := range int64(pictures) {
		m.tables(typeH264)
		pcr := (start27M + i*frame27M) % ClockWrap27M
		fields := make([]byte, 13)
		fields[0] = pcrBit | opcrBit
		putClock27M(fields[1:], pcr)
		putClock27M(fields[7:], pcr)
		m.packet(testVideo, false, fields, nil)
		pes := pesPacket(h264IDR)
		putStamp90k(pes[9:], (pcr/300+90_000)%ClockWrap90k)
		putStamp90k(pes[14:], (pcr/300+45_000)%ClockWrap90k)
		m.unit(testVideo, pes, 40)
		m.out = append(m.out, bytes.Clone(m.last())...) // sent twice
		audio := []byte{0, 0, 1, 0xC0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1}
		putStamp90k(audio[9:], (pcr/300+90_000)%ClockWrap90k)
		m.packet(testAudio, true, nil, append(audio, make([]byte, 100)...))
		m.null()
	}
	return m.out
}

// Longer than the 26.5 hours after which the 33-bit clocks begin again,
// played from a file of some minutes that has the wrap inside as well.
func TestRestamper_noSeamOverADay(t *testing.T) {
	const pictures = 250
	file := clip(pictures, ClockWrap27M-100*frame27M)
	info, err := Measure(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(pictures * frame27M); info.Duration27M != want {
		t.Fatalf("duration: got %d, want %d", info.Duration27M, want)
	}
	var (
		r      Restamper
		c      Continuity
		played int64
		last   = int64(ClockWrap27M - 101*frame27M)
	)
	ahead := func(b []byte) int64 { return (stamp90k(b) - last/300 + ClockWrap90k) % ClockWrap90k }
	for pass := 0; played < ClockWrap27M*5/4; pass++ {
		if pass > 0 {
			r.Loop(info.Duration27M)
		}
		for i := range len(file) / PacketSize {
			p := Packet(slices.Clone(packets(file, i, i+1)))
			r.Packet(p)
			if !c.Check(p) {
				t.Fatalf("pass %d, packet %d: counter %d of PID %d does not continue", pass, i, p.Continuity(), p.PID())
			}
			if pcr, ok := p.PCR(); ok {
				if step := (pcr - last + ClockWrap27M) % ClockWrap27M; step != frame27M {
					t.Fatalf("pass %d, packet %d: PCR goes on by %d, want %d", pass, i, step, frame27M)
				}
				if opcr := clock27M(p.clock(opcrBit)); opcr != pcr {
					t.Fatalf("pass %d, packet %d: OPCR %d, want %d", pass, i, opcr, pcr)
				}
				last = pcr
				played += frame27M
			}
			b := p.Payload()
			if !p.UnitStart() || p.PID() < testVideo {
				continue
			}
			if got := ahead(b[9:]); got != 90_000 {
				t.Fatalf("pass %d, packet %d: PTS is %d ahead of the PCR, want 90000", pass, i, got)
			}
			if p.PID() == testAudio {
				continue
			}
			if got := ahead(b[14:]); got != 45_000 {
				t.Fatalf("pass %d, packet %d: DTS is %d ahead of the PCR, want 45000", pass, i, got)
			}
		}
	}
}

func TestRestamper_firstPassIsUnchanged(t *testing.T) {
	file := clip(5, 12345)
	var r Restamper
	for i := range len(file) / PacketSize {
		p := Packet(slices.Clone(packets(file, i, i+1)))
		r.Packet(p)
		if !bytes.Equal(p, packets(file, i, i+1)) {
			t.Fatalf("packet %d changed in the first pass", i)
		}
	}
}

// What is wrong in the file stays as it is, so that the file's faults can be
// played: gaps, and jumps that are announced.
func TestRestamper_keepsGapsAndAnnouncedJumps(t *testing.T) {
	var m mux
	for _, cc := range []uint8{3, 4, 6, 6, 7} {
		m.cc[9] = cc
		m.packet(9, false, nil, make([]byte, 184))
	}
	m.packet(9, false, []byte{discontinuityBit}, nil)
	var (
		r    Restamper
		got  []uint8
		want = []uint8{3, 4, 6, 6, 7, 7, 8, 9, 11, 11, 12, 12}
	)
	for pass := range 2 {
		if pass > 0 {
			r.Loop(1000)
		}
		for i := range len(m.out) / PacketSize {
			p := Packet(slices.Clone(packets(m.out, i, i+1)))
			r.Packet(p)
			got = append(got, p.Continuity())
			if want := i == len(m.out)/PacketSize-1; p.Discontinuity() != want {
				t.Errorf("packet %d: discontinuity %v, want %v", i, !want, want)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("counters: got %v, want %v", got, want)
	}
}

func TestRestamper_leavesAlone(t *testing.T) {
	pes := func(change func(b []byte)) []byte {
		b := pesPacket(make([]byte, 165))
		change(b)
		return b
	}
	for name, c := range map[string]struct {
		payload []byte
		spoil   func(p Packet)
	}{
		"padding stream":         {payload: pes(func(b []byte) { b[3] = 0xBE })},
		"private_stream_2":       {payload: pes(func(b []byte) { b[3] = 0xBF })},
		"no stamps":              {payload: pes(func(b []byte) { b[7] = 0 })},
		"header too short":       {payload: pes(func(b []byte) { b[8] = 4 })},
		"no PES header":          {payload: pes(func(b []byte) { b[2] = 2 })},
		"MPEG-1 header":          {payload: pes(func(b []byte) { b[6] = 0x0F })},
		"stamp beyond packet":    {payload: pesPacket(nil)[:13]},
		"header beyond packet":   {payload: pesPacket(nil)[:8]},
		"scrambled":              {pesPacket(nil), func(p Packet) { p[3] |= 0x80 }},
		"not the start":          {pesPacket(nil), func(p Packet) { p[1] &^= unitStartBit }},
		"adaptation field lying": {pesPacket(nil), func(p Packet) { p[4] = 200 }},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				m mux
				r Restamper
			)
			p := m.packet(testVideo, true, nil, c.payload)
			if c.spoil != nil {
				c.spoil(p)
			}
			want := bytes.Clone(p)
			r.Loop(12345678)
			r.Packet(p)
			if !bytes.Equal(p, want) {
				t.Errorf("changed:\n got % x\nwant % x", p, want)
			}
		})
	}
}

func TestRestamper_doesNotAllocate(t *testing.T) {
	file := clip(5, 0)
	var r Restamper
	if n := testing.AllocsPerRun(20, func() {
		for i := range len(file) / PacketSize {
			r.Packet(packets(file, i, i+1))
		}
		r.Loop(5 * frame27M)
	}); n != 0 {
		t.Errorf("allocations per pass: got %v, want 0", n)
	}
}

func FuzzRestamper(f *testing.F) {
	f.Add(clip(2, ClockWrap27M-frame27M), int64(2*frame27M))
	f.Add(channel().out[:20*PacketSize], int64(-1))
	f.Fuzz(func(t *testing.T, b []byte, duration int64) {
		var (
			r      Restamper
			before [numPIDs]uint8 // last counter of each PID
		)
		n := len(b) / PacketSize
		for i := range n {
			p := Packet(slices.Clone(packets(b, i, i+1)))
			r.Packet(p)
			if !bytes.Equal(p, packets(b, i, i+1)) {
				t.Fatalf("packet %d changed in the first pass", i)
			}
			before[p.PID()] = p.Continuity()
		}
		r.Loop(duration)
		seen := map[uint16]bool{NullPID: true}
		for i := range n {
			from := Packet(packets(b, i, i+1))
			p := Packet(slices.Clone(from))
			r.Packet(p)
			if !bytes.Equal(p[:3], from[:3]) || p[3]&^counterBits != from[3]&^counterBits || !bytes.Equal(p[4:6], from[4:6]) && p.adaptation() != nil {
				t.Fatalf("packet %d: header changed: % x, was % x", i, p[:6], from[:6])
			}
			if !seen[p.PID()] {
				seen[p.PID()] = true
				want := before[p.PID()]
				if p.HasPayload() {
					want = (want + 1) & counterBits
				}
				if p.Continuity() != want {
					t.Fatalf("packet %d: counter %d at the seam, want %d", i, p.Continuity(), want)
				}
			}
			if was, ok := from.PCR(); ok && p.PID() != NullPID {
				got, _ := p.PCR()
				want := ((was+duration%ClockWrap27M)%ClockWrap27M + ClockWrap27M) % ClockWrap27M
				if got != want {
					t.Fatalf("packet %d: PCR %d, want %d", i, got, want)
				}
			}
		}
	})
}
