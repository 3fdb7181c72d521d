package playout

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"zapcast/mpegts"
)

// errStop ends a timeline that loops.
var errStop = errors.New("enough")

// played is a packet that a timeline handed out.
type played struct {
	packet mpegts.Packet
	at     time.Duration
}

// playAll runs a timeline until it ends or limit packets have come.
func playAll(t *testing.T, rate Rate, loop bool, limit int, files ...File) (out []played, err error) {
	t.Helper()
	tl := &timeline{rate: rate, emit: func(p []byte, at time.Duration) error {
		if n := len(out); n > 0 && at < out[n-1].at {
			t.Fatalf("packet %d is due at %v, after one at %v", n, at, out[n-1].at)
		}
		out = append(out, played{bytes.Clone(p), at})
		if len(out) == limit {
			return errStop
		}
		return nil
	}}
	if err = tl.run(files, loop); errors.Is(err, errStop) {
		err = nil
	}
	return out, err
}

// build makes a file by hand.
type build struct {
	bytes.Buffer
	counters map[uint16]byte
}

// packet adds a packet; pcr27M and dts90k are left out if negative.
func (b *build) packet(pid uint16, pcr27M, dts90k int64) *build {
	if b.counters == nil {
		b.counters = map[uint16]byte{}
	}
	p := bytes.Repeat([]byte{0xFF}, packetSize)
	p[0], p[1], p[2], p[3] = syncByte, byte(pid>>8), byte(pid), 0x30|b.counters[pid]
	b.counters[pid] = (b.counters[pid] + 1) & 15
	p[4], p[5] = 7, 0
	if pcr27M >= 0 {
		base, ext := pcr27M/300, pcr27M%300
		p[5] = 0x10
		copy(p[6:], []byte{byte(base >> 25), byte(base >> 17), byte(base >> 9), byte(base >> 1), byte(base<<7) | 0x7E | byte(ext>>8), byte(ext)})
	}
	if t := dts90k; t >= 0 {
		p[1] |= 0x40
		copy(p[12:], []byte{
			0, 0, 1, 0xE0, 0, 0, 0x80, 0x80, 5,
			0x21 | byte(t>>29)&0x0E, byte(t >> 22), 1 | byte(t>>14), byte(t >> 7), 1 | byte(t<<1),
		})
	}
	b.Write(p)
	return b
}

func (b *build) file() File { return BytesFile("built.ts", b.Bytes()) }

const none = -1

// steady makes count pictures at 25 Hz of ten packets each, with a PCR at the
// first of them, beginning at the given PCR; the DTS is half a second later.
func steady(pid uint16, from27M int64, count int) *build {
	b := &build{}
	for i := range count {
		pcr := (from27M + int64(i)*ticksPerSecond/25) % mpegts.ClockWrap27M
		b.packet(pid, pcr, (pcr/300+45_000)%mpegts.ClockWrap90k)
		for range 9 {
			b.packet(pid, none, none)
		}
	}
	return b
}

func TestTimeline_spreadsPacketsBetweenPCRs(t *testing.T) {
	b := &build{}
	b.packet(50, none, none)                              // before the first PCR, at the rate of what follows
	b.packet(7, 1000*27_000, none)                        // 10 ms a packet
	b.packet(50, none, none).packet(8, 999, none)         // not the clock in use
	b.packet(7, 1030*27_000, none).packet(50, none, none) // 50 ms a packet
	b.packet(7, 1130*27_000, none)                        // the last one, at the mean rate: 130 ms for 5
	b.packet(50, none, none)

	out, err := playAll(t, Rate{}, false, 0, b.file())
	if err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{0, 10, 20, 30, 40, 90, 140, 166}
	if len(out) != len(want) {
		t.Fatalf("%d packets, want %d", len(out), len(want))
	}
	for i, p := range out {
		if p.at != want[i]*time.Millisecond {
			t.Errorf("packet %d at %v, want %v", i, p.at, want[i]*time.Millisecond)
		}
		if !bytes.Equal(p.packet, b.Bytes()[i*packetSize:(i+1)*packetSize]) {
			t.Errorf("packet %d was changed", i)
		}
	}
}

func TestTimeline_factor(t *testing.T) {
	file := steady(7, 0, 50).file()
	for _, factor := range []float64{0.5, 1, 4} {
		out, err := playAll(t, Rate{Factor: factor}, false, 0, file)
		if err != nil {
			t.Fatal(err)
		}
		want := time.Duration(float64(1996*time.Millisecond) / factor)
		if got := out[len(out)-1].at; got != want {
			t.Errorf("factor %v: the last packet at %v, want %v", factor, got, want)
		}
	}
}

func TestTimeline_constantRate(t *testing.T) {
	var noClock build
	for range 10_000 {
		noClock.packet(9, none, none)
	}
	for name, file := range map[string]File{"no PCR": noClock.file(), "PCR": steady(7, 0, 100).file()} {
		const rate = 7_654_321
		out, err := playAll(t, Rate{BitsPerSecond: rate}, true, 100_000, file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, p := range out {
			want := time.Duration(float64(i) * packetBits / rate * 1e9)
			if d := p.at - want; d < -200 || d > 200 {
				t.Fatalf("%s: packet %d at %v, want %v", name, i, p.at, want)
			}
		}
	}
}

// checkStream checks that packets go on like one stream: counters, PCR and the
// decoding times of each PID, with steps of PCR and DTS as wanted.
func checkStream(t *testing.T, out []played, pcrStep27M, dtsStep90k int64) {
	t.Helper()
	var (
		continuity mpegts.Continuity
		pcrs       = map[uint16]int64{}
		times      = map[uint16]int64{}
	)
	for i, p := range out {
		pid := p.packet.PID()
		if !continuity.Check(p.packet) {
			t.Fatalf("packet %d: counter of PID %d jumps", i, pid)
		}
		if pcr, ok := p.packet.PCR(); ok {
			if last, seen := pcrs[pid]; seen {
				step := (pcr - last + mpegts.ClockWrap27M) % mpegts.ClockWrap27M
				if step != pcrStep27M && pcrStep27M > 0 || step == 0 || step > ticksPerSecond/10 {
					t.Fatalf("packet %d: PCR goes on by %d, want %d", i, step, pcrStep27M)
				}
			}
			pcrs[pid] = pcr
		}
		if dts, video, ok := decodeTime(p.packet); ok {
			if last, seen := times[pid]; seen {
				step := (dts - last + mpegts.ClockWrap90k) % mpegts.ClockWrap90k
				if step != dtsStep90k && video || step == 0 || step > 90_000 {
					t.Fatalf("packet %d: DTS of PID %d goes on by %d, want %d", i, pid, step, dtsStep90k)
				}
			}
			times[pid] = dts
		}
	}
}

func TestTimeline_loopHasNoSeam(t *testing.T) {
	for _, from := range []int64{0, 12_345_678, mpegts.ClockWrap27M - 3*ticksPerSecond/25} {
		// 7 pictures and so 70 packets to a pass: counters do not fit by chance.
		out, err := playAll(t, Rate{}, true, 70*50, steady(7, from, 7).file())
		if err != nil {
			t.Fatal(err)
		}
		checkStream(t, out, ticksPerSecond/25, 3600)
		for i, p := range out {
			if want := time.Duration(i) * 4 * time.Millisecond; p.at != want {
				t.Fatalf("packet %d at %v, want %v", i, p.at, want)
			}
		}
	}
}

func TestTimeline_loopHasNoSeamWhereThePCRStandsAlone(t *testing.T) {
	b := &build{}
	for i := range int64(9) {
		b.packet(0x100, 27_000_000+i*ticksPerSecond/25, none)
		for range 4 {
			b.packet(0x101, none, none)
		}
		b.packet(0x101, none, 180_000+i*3600)
	}
	out, err := playAll(t, Rate{}, true, 6*9*20, b.file())
	if err != nil {
		t.Fatal(err)
	}
	checkStream(t, out, ticksPerSecond/25, 3600)
}

func TestTimeline_filesFollowEachOther(t *testing.T) {
	a, b := steady(7, 500*ticksPerSecond, 9), steady(7, 3*ticksPerSecond, 4)
	out, err := playAll(t, Rate{}, true, 130*20, File{"a.ts", a.file().Open}, File{"b.ts", b.file().Open})
	if err != nil {
		t.Fatal(err)
	}
	checkStream(t, out, ticksPerSecond/25, 3600)

	// Radio behind television: nothing says when its next frame is due but the
	// packets themselves. What counts is that PCR and time go on.
	var radio build
	for i := range int64(50) {
		radio.packet(9, i*ticksPerSecond/50, none).packet(9, none, none)
	}
	out, err = playAll(t, Rate{}, true, 190*20, a.file(), radio.file())
	if err != nil {
		t.Fatal(err)
	}
	var last int64 = -1
	for i, p := range out {
		if pcr, ok := p.packet.PCR(); ok {
			if step := (pcr - last + mpegts.ClockWrap27M) % mpegts.ClockWrap27M; last >= 0 && (step == 0 || step > ticksPerSecond/10) {
				t.Fatalf("packet %d: PCR goes on by %d", i, step)
			}
			last = pcr
		}
	}
}

func TestTimeline_clockJumps(t *testing.T) {
	joined := &build{}
	joined.Write(steady(7, 900*ticksPerSecond, 25).Bytes())
	joined.Write(steady(7, 100*ticksPerSecond, 25).Bytes())
	joined.Write(steady(7, 5000*ticksPerSecond, 25).Bytes())
	out, err := playAll(t, Rate{}, false, 0, joined.file())
	if err != nil {
		t.Fatal(err)
	}
	// The last picture before a jump has the mean rate, that of the others.
	for i, p := range out {
		if want := time.Duration(i) * 4 * time.Millisecond; p.at != want {
			t.Fatalf("packet %d at %v, want %v", i, p.at, want)
		}
	}
}

func TestTimeline_repeatedPCR(t *testing.T) {
	b := &build{}
	b.packet(7, 0, none).packet(7, 0, none).packet(7, 27_000*30, none).packet(7, 27_000*40, none)
	out, err := playAll(t, Rate{}, false, 0, b.file())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{0, 15, 30, 40} {
		if got := out[i].at; got != want*time.Millisecond {
			t.Errorf("packet %d at %v, want %v", i, got, want*time.Millisecond)
		}
	}
}

func TestTimeline_clockMovesToAnotherPID(t *testing.T) {
	b := steady(7, 0, 3)
	for range maxWait {
		b.packet(50, none, none)
	}
	b.Write(steady(8, 77*ticksPerSecond, 50).Bytes())
	out, err := playAll(t, Rate{}, false, 0, b.file())
	if err != nil {
		t.Fatal(err)
	}
	n := len(out)
	if got := out[n-1].at - out[n-491].at; got != 1960*time.Millisecond {
		t.Errorf("the last 491 packets take %v, want 1.96s by the new clock", got)
	}
}

func TestTimeline_noPCR(t *testing.T) {
	var nothing, one, late build
	nothing.packet(9, none, none).packet(9, none, none)
	one.packet(9, none, none).packet(9, 1000, none)
	for range maxWait + 1 {
		late.packet(9, none, none)
	}
	late.Write(steady(7, 0, 2).Bytes())
	for want, file := range map[string]File{
		"playout: read x.ts: no PCR in the whole file: say how fast to play it, as in --rate 8M":       nothing.file(),
		"playout: read x.ts: only one PCR in the whole file: say how fast to play it, as in --rate 8M": one.file(),
		"playout: read x.ts: no PCR in its first 16 MiB: say how fast to play it, as in --rate 8M":     late.file(),
	} {
		file.Name = "x.ts"
		if out, err := playAll(t, Rate{}, true, 0, file); err == nil || err.Error() != want || len(out) > 0 {
			t.Errorf("after %d packets: error %v, want %s", len(out), err, want)
		}
		if _, err := playAll(t, Rate{BitsPerSecond: 1e6}, true, 5000, file); err != nil {
			t.Errorf("%s, but played at 1 Mbit/s: %v", want, err)
		}
	}
}

func TestTimeline_clipsLoopWithoutSeam(t *testing.T) {
	for _, name := range clips {
		t.Run(name, func(t *testing.T) {
			file := clip(t, name)
			out, err := playAll(t, Rate{}, true, 8000, file)
			if err != nil {
				t.Fatal(err)
			}
			checkStream(t, out, 0, 3600)
		})
	}
}

// clips are those of the demo.
var clips = []string{"one.ts", "two.ts", "three.ts"}

func clip(t testing.TB, name string) File {
	t.Helper()
	b, err := os.ReadFile("../cmd/zapcast/clips/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return BytesFile(name, b)
}

func TestTimeline_doesNotAllocatePerPacket(t *testing.T) {
	n := 0
	pack := newPacker(1, func(datagram) error { return nil })
	tl := &timeline{emit: func(p []byte, at time.Duration) error {
		n++
		return pack.add(p, at)
	}}
	file := steady(7, 0, 3000).file()
	allocs := testing.AllocsPerRun(1, func() {
		if err := tl.run([]File{file}, false); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 50 {
		t.Errorf("%v allocations for %d packets, want only those of opening the file", allocs, n/2)
	}
}

// FuzzTimeline plays any bytes: as two files, in a loop, by PCR and at a
// constant rate. It must end with an error or go on, in order, with packets
// that differ from the file's in times and counters alone.
func FuzzTimeline(f *testing.F) {
	f.Add(steady(7, 0, 3).Bytes(), steady(7, mpegts.ClockWrap27M-1, 2).Bytes(), false)
	f.Add(steady(7, 100, 3).Bytes(), (&build{}).packet(9, none, 5).packet(9, 7, 6).packet(9, 8, 9).Bytes(), true)
	f.Add([]byte("G"), []byte{}, false)
	f.Fuzz(func(t *testing.T, a, b []byte, constant bool) {
		rate := Rate{}
		if constant {
			rate.BitsPerSecond = 1_000_000
		}
		const limit = 400
		out, err := playAll(t, rate, true, limit, BytesFile("a", a), BytesFile("b", b))
		if err == nil && len(out) != limit {
			t.Fatalf("%d packets and no error", len(out))
		}
		whole := append(bytes.Clone(a[:len(a)/packetSize*packetSize]), b[:len(b)/packetSize*packetSize]...)
		for i, p := range out {
			at := i * packetSize % len(whole)
			if got, want := p.packet.PID(), mpegts.Packet(whole[at:]).PID(); got != want {
				t.Fatalf("packet %d has PID %d, want %d", i, got, want)
			}
		}
	})
}
