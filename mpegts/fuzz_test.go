package mpegts

import (
	"bytes"
	"slices"
	"testing"
)

// scanState is everything that a Scanner tells.
type scanState struct {
	point, candidate     int64
	hasPoint, isOpen     bool
	rule                 StartRule
	codec                string
	tables, old, skipped string
}

func stateOf(s *Scanner) (st scanState) {
	st.point, st.hasPoint = s.RandomAccess()
	st.candidate, st.isOpen = s.Candidate()
	st.rule, st.codec = s.Rule(), s.Codec()
	st.tables = string(s.AppendTables(nil))
	st.old = string(s.AppendRandomAccessTables(nil))
	st.skipped = string(s.AppendDiscontinuity(nil))
	return st
}

// FuzzScanner makes whole packets of arbitrary bytes and scans them in calls of
// the length that cut gives, with a gap after every gap-th call.
func FuzzScanner(f *testing.F) {
	f.Add(channel().out[:40*PacketSize], uint8(7), uint8(0))
	f.Add(channel().out[:40*PacketSize], uint8(1), uint8(5))
	for _, a := range accessUnits() {
		var m mux
		m.tables(a.streamType)
		m.unit(testVideo, pesPacket(a.es), 30)
		f.Add(m.out, uint8(3), uint8(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, cut, gap uint8) {
		b = b[:len(b)/PacketSize*PacketSize]
		for i := 0; i < len(b); i += PacketSize {
			b[i] = SyncByte
		}
		input := bytes.Clone(b)
		step := (int(cut)%16 + 1) * PacketSize
		var (
			whole, single Scanner
			given         = map[int64]bool{}
			last          = int64(-1)
			pos           int64
		)
		for calls := 1; len(b) > 0; calls++ {
			n := min(step, len(b))
			whole.Scan(b[:n], pos)
			for at := 0; at < n; at += PacketSize {
				given[pos+int64(at)] = true
				single.Scan(b[at:at+PacketSize], pos+int64(at))
			}
			b = b[n:]
			pos += int64(n)
			if gap > 0 && calls%int(gap) == 0 {
				pos += PacketSize
			}

			st := stateOf(&whole)
			if one := stateOf(&single); one != st {
				t.Fatalf("one call: %+v, a call for each packet: %+v", st, one)
			}
			if st.hasPoint {
				if !given[st.point] || st.point < last {
					t.Fatalf("random-access point %d after %d, which is a position given: %v", st.point, last, given[st.point])
				}
				last = st.point
			}
			if st.isOpen && (!given[st.candidate] || st.candidate < last) {
				t.Fatalf("candidate %d with the newest point at %d", st.candidate, last)
			}
			for _, out := range []string{st.tables, st.old, st.skipped} {
				if out != "" && !Whole([]byte(out)) {
					t.Fatalf("%d bytes handed out are not whole packets", len(out))
				}
			}
			if st.hasPoint != (len(st.skipped) == PacketSize) {
				t.Fatalf("point %v, but %d bytes announce a jump to it", st.hasPoint, len(st.skipped))
			}
		}
		var again Scanner
		again.Scan(input, 0)
		for i := 0; i < len(input); i += PacketSize {
			if input[i] != SyncByte {
				t.Fatal("Scan wrote to its input")
			}
		}
	})
}

// FuzzSearch feeds an access unit whole and in two pieces.
func FuzzSearch(f *testing.F) {
	for _, a := range accessUnits() {
		f.Add(a.es, byte(videoCodec(a.streamType)), uint16(20))
	}
	f.Fuzz(func(t *testing.T, b []byte, c byte, cut uint16) {
		b = pesPacket(b)
		at := int(cut) % (len(b) + 1)
		one := search{codec: codec(c % byte(len(codecNames)))}
		two := one
		one.begin()
		two.begin()
		want := one.feed(b)
		got := two.feed(b[:at])
		if got == undecided {
			got = two.feed(b[at:])
		}
		if got != want {
			t.Fatalf("in pieces of %d and %d bytes: got verdict %d, want %d", at, len(b)-at, got, want)
		}
	})
}

func TestCRC_againstBitByBit(t *testing.T) {
	b := []byte("123456789")
	if got, want := crc32MPEG(b), uint32(0x0376E6E7); got != want {
		t.Errorf("check value: got %#x, want %#x", got, want)
	}
	for n := range 300 {
		b := bytes.Repeat([]byte{byte(n), 0x5A, byte(n >> 3)}, n)
		if got, want := crc32MPEG(b), slowCRC(b); got != want {
			t.Errorf("%d bytes: got %#x, want %#x", len(b), got, want)
		}
	}
}

func TestScanner_doesNotAllocate(t *testing.T) {
	m := channel()
	var s Scanner
	var pos int64
	pass := func() {
		for ts := range slices.Chunk(m.out, 7*PacketSize) {
			s.Scan(ts, pos)
			pos += int64(len(ts))
		}
	}
	pass()
	if n := testing.AllocsPerRun(100, pass); n != 0 {
		t.Errorf("allocations per pass: got %v, want 0", n)
	}
	if point, ok := s.RandomAccess(); !ok || point < pos-m.pos() {
		t.Errorf("the last pass found no random-access point: got %d, %v", point, ok)
	}
}

// benchmarkScan scans datagrams of seven packets from a stream that is scanned
// again and again.
func benchmarkScan(b *testing.B, ts []byte) {
	const datagram = 7 * PacketSize
	ts = ts[:len(ts)/datagram*datagram]
	if len(ts) == 0 {
		b.Fatal("stream too short")
	}
	var s Scanner
	s.Scan(channel().out, 0)
	b.ReportAllocs()
	b.SetBytes(datagram)
	at, pos := 0, int64(0)
	for b.Loop() {
		s.Scan(ts[at:at+datagram], pos)
		pos += datagram
		if at += datagram; at == len(ts) {
			at = 0
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/datagram")
}

func BenchmarkScan_insidePicture(b *testing.B) {
	var m mux
	m.more(testVideo, make([]byte, 7*184))
	benchmarkScan(b, m.out)
}

func BenchmarkScan_nullPackets(b *testing.B) {
	var m mux
	for range 7 {
		m.null()
	}
	benchmarkScan(b, m.out)
}

// One second at 8 Mbit/s: 25 pictures, one of them random access, tables every
// 200 ms.
func BenchmarkScan_channel(b *testing.B) {
	var m mux
	for picture := range 25 {
		if picture%5 == 0 {
			m.tables(typeH264)
		}
		if picture == 0 {
			m.pes(append(h264IDR, make([]byte, 60_000)...))
		} else {
			m.pes(append(h264Inter, make([]byte, 38_000)...))
		}
		m.audio()
	}
	benchmarkScan(b, m.out)
}
