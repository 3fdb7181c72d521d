package ingest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// line is a sender's end of a network that ends in a window: each packet takes
// tick, and what goes out is noted by sequence number.
type line struct {
	window *Window
	base   uint16 // added to every number pushed, taken off every one noted
	now    time.Time
	tick   time.Duration
	out    [][]byte
	order  []int
}

// newLine returns a line of 1000 packets/s.
func newLine(config WindowConfig, base uint16) *line {
	return &line{window: NewWindow(config), base: base, now: epoch, tick: time.Millisecond}
}

func (l *line) push(ssrc uint32, numbers ...int) {
	for _, n := range numbers {
		seq := l.base + uint16(n)
		l.out = l.window.Push(Packet{Seq: seq, SSRC: ssrc, Payload: binary.BigEndian.AppendUint16(nil, seq)}, l.now, l.out)
		l.wait(l.tick)
	}
}

func (l *line) keepAlive(ssrc uint32, n int) {
	l.out = l.window.Push(Packet{Seq: l.base + uint16(n), SSRC: ssrc}, l.now, l.out)
	l.wait(l.tick)
}

func (l *line) wait(d time.Duration) {
	l.now = l.now.Add(d)
	l.out = l.window.Expire(l.now, l.out)
	for _, b := range l.out {
		l.order = append(l.order, int(int16(binary.BigEndian.Uint16(b)-l.base)))
	}
	l.out = l.out[:0]
	l.window.Recycle()
}

// take returns the numbers that have gone out since the last take.
func (l *line) take() []int {
	order := l.order
	l.order = nil
	return order
}

// upTo returns the numbers from begin up to but not including end.
func upTo(begin, end int) []int {
	numbers := make([]int, 0, max(0, end-begin))
	for n := begin; n < end; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// bases put the wrap of the sequence numbers nowhere, and at places that the
// cases are about: number 0 and those around it are base, 65535 - base before.
var bases = []uint16{1000, 0, 65535, 65534, 65530, 65520, 65500, 65436, 65036, 32768}

// swapped exchanges numbers at distance d, block by block: d of each d+1 come
// after a higher one.
func swapped(numbers []int, d int) []int {
	numbers = slices.Clone(numbers)
	for i := 0; i+d < len(numbers); i += d + 1 {
		numbers[i], numbers[i+d] = numbers[i+d], numbers[i]
	}
	return numbers
}

func TestWindow_cases(t *testing.T) {
	stream := upTo(0, 120)
	without := func(gone ...int) []int {
		return slices.DeleteFunc(slices.Clone(stream), func(n int) bool { return slices.Contains(gone, n) })
	}
	tests := []struct {
		name  string
		run   func(l *line)
		want  []int
		stats WindowStats
	}{
		{"in order", func(l *line) { l.push(1, stream...) }, stream, WindowStats{}},

		{"swapped at distance 1", func(l *line) {
			l.push(1, upTo(0, 20)...)
			l.push(1, swapped(upTo(20, 120), 1)...)
		}, stream, WindowStats{Reordered: 50}},
		{"swapped at distance 8", func(l *line) {
			l.push(1, upTo(0, 20)...)
			l.push(1, swapped(upTo(20, 120), 8)...)
		}, stream, WindowStats{Reordered: 11 * 8}},
		{"swapped at distance 16", func(l *line) {
			l.push(1, upTo(0, 20)...)
			l.push(1, swapped(upTo(20, 120), 16)...)
		}, stream, WindowStats{Reordered: 5 * 16}},

		{"swapped around the wrap", func(l *line) { l.push(1, -3, -1, -2, 1, 0, 2) }, upTo(-3, 3), WindowStats{Reordered: 2}},
		{"after a start in order", func(l *line) {
			l.push(1, upTo(-20, -3)...)
			l.push(1, -3, -1, -2, 1, 0, 2)
		}, upTo(-20, 3), WindowStats{Reordered: 2}},

		{"restart ahead, another SSRC", func(l *line) {
			l.push(1, stream...)
			l.push(2, upTo(20000, 20100)...)
		}, append(upTo(0, 120), upTo(20000, 20100)...), WindowStats{Resyncs: 1}},
		{"restart behind, another SSRC", func(l *line) {
			l.push(1, stream...)
			l.push(2, upTo(-20000, -19900)...)
		}, append(upTo(0, 120), upTo(-20000, -19900)...), WindowStats{Resyncs: 1}},
		{"restart behind, the same SSRC", func(l *line) {
			l.push(1, stream...)
			l.push(1, upTo(-20000, -19900)...)
		}, append(upTo(0, 120), upTo(-20000, -19900)...), WindowStats{Resyncs: 1}},
		{"restart behind, reordered", func(l *line) {
			l.push(1, stream...)
			l.push(1, swapped(upTo(-20000, -19900), 1)...)
		}, append(upTo(0, 120), upTo(-20000, -19900)...), WindowStats{Resyncs: 1, Reordered: 50}},
		{"restart while a hole is open", func(l *line) {
			l.push(1, without(118)...)
			l.push(2, upTo(20000, 20100)...)
		}, append(without(118), upTo(20000, 20100)...), WindowStats{Resyncs: 1, Lost: 1}},

		{"jump ahead, the same SSRC", func(l *line) {
			l.push(1, stream...)
			l.push(1, upTo(120+3423, 120+3500)...)
		}, append(upTo(0, 120), upTo(120+3423, 120+3500)...), WindowStats{Resyncs: 1, Lost: 3423}},
		{"jump ahead, swapped at once", func(l *line) {
			l.push(1, stream...)
			l.push(1, swapped(upTo(4000, 4100), 1)...)
		}, append(upTo(0, 120), upTo(4000, 4100)...), WindowStats{Resyncs: 1, Lost: 4000 - 120, Reordered: 50}},

		{"keep-alive has a number of its own", func(l *line) {
			l.push(1, upTo(0, 60)...)
			l.keepAlive(1, 60)
			l.push(1, upTo(61, 120)...)
		}, without(60), WindowStats{}},
		{"keep-alive out of order", func(l *line) {
			l.push(1, upTo(0, 60)...)
			l.push(1, 61)
			l.keepAlive(1, 60)
			l.keepAlive(1, 63)
			l.push(1, 62)
			l.push(1, upTo(64, 120)...)
		}, without(60, 63), WindowStats{Reordered: 2}},
		{"keep-alives of another SSRC", func(l *line) {
			for _, n := range stream {
				l.push(1, n)
				l.keepAlive(2, 3*n)
			}
		}, stream, WindowStats{Foreign: 120}},

		{"every packet twice", func(l *line) {
			for _, n := range stream {
				l.push(1, n, n)
			}
		}, stream, WindowStats{Duplicates: 120}},
		{"the second one later", func(l *line) {
			for _, n := range stream {
				l.push(1, n)
				if n >= 20 {
					l.push(1, n-20)
				}
			}
		}, stream, WindowStats{Duplicates: 100}},
		{"duplicates while a hole is open", func(l *line) {
			l.push(1, upTo(0, 60)...)
			l.push(1, 62, 62, 61, 61, 60, 60)
			l.push(1, upTo(63, 120)...)
		}, stream, WindowStats{Duplicates: 3, Reordered: 2}},

		{"loss", func(l *line) { l.push(1, without(30, 31, 70)...); l.wait(time.Second) }, without(30, 31, 70), WindowStats{Lost: 3}},
		{"too late", func(l *line) {
			l.push(1, without(30)...)
			l.push(1, 30)
		}, without(30), WindowStats{Lost: 1, Late: 1}},

		{"outlier ahead", func(l *line) {
			l.push(1, upTo(0, 60)...)
			l.push(1, 12345)
			l.push(1, upTo(60, 120)...)
		}, stream, WindowStats{Foreign: 1}},
		{"outlier behind", func(l *line) {
			l.push(1, upTo(0, 60)...)
			l.push(1, -12345)
			l.push(1, upTo(60, 120)...)
		}, stream, WindowStats{Foreign: 1}},
		{"burst of late duplicates", func(l *line) {
			l.push(1, upTo(-1000, 0)...)
			l.take()
			l.push(1, upTo(-700, -660)...)
			l.push(1, stream...)
		}, stream, WindowStats{Foreign: 40}},
		{"burst of duplicates not so late", func(l *line) {
			l.push(1, upTo(-1000, 0)...)
			l.take()
			l.push(1, upTo(-400, 0)...)
			l.push(1, stream...)
		}, stream, WindowStats{Duplicates: 400}},

		{"another SSRC, the sequence goes on", func(l *line) {
			l.push(1, upTo(0, 60)...)
			l.push(2, upTo(60, 120)...)
		}, stream, WindowStats{}},
		{"another SSRC, overlap", func(l *line) {
			l.push(1, upTo(0, 60)...)
			l.push(2, upTo(40, 120)...)
		}, stream, WindowStats{Duplicates: 20}},
		{"another SSRC, both for a while", func(l *line) {
			l.push(1, upTo(0, 40)...)
			for n := 40; n < 80; n++ {
				l.push(1, n)
				l.push(2, n)
			}
			l.push(2, upTo(80, 120)...)
		}, stream, WindowStats{Foreign: 39, Duplicates: 1}},
		{"another SSRC, its first packet lost", func(l *line) {
			l.push(1, upTo(0, 60)...)
			l.push(2, upTo(61, 120)...)
		}, without(60), WindowStats{Lost: 1}},

		{"two senders in turn", func(l *line) {
			for _, n := range stream {
				l.push(1, n)
				if n < 119 {
					l.push(2, 5000+n)
				}
			}
		}, stream, WindowStats{Foreign: 119}},
		{"two senders, one with bursts", func(l *line) {
			for _, n := range stream {
				l.push(1, n)
				if n < 119 {
					l.push(2, upTo(5000+6*n, 5006+6*n)...)
				}
			}
		}, stream, WindowStats{Foreign: 6 * 119}},
		{"two senders of one SSRC", func(l *line) {
			for _, n := range stream {
				l.push(0, n)
				if n < 119 {
					l.push(0, 5000+n)
				}
			}
		}, stream, WindowStats{Foreign: 119}},
	}
	for _, test := range tests {
		for _, base := range bases {
			t.Run(fmt.Sprintf("%s/base %d", test.name, base), func(t *testing.T) {
				l := newLine(WindowConfig{}, base)
				test.run(l)
				l.wait(time.Second)
				if got := l.take(); !slices.Equal(got, test.want) {
					t.Errorf("order: got %v, want %v", got, test.want)
				}
				if diff := cmp.Diff(test.stats, l.window.Stats()); diff != "" {
					t.Errorf("stats (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A field report in its own numbers: 40000, then 0.
func TestWindow_restartAtZero(t *testing.T) {
	for _, ssrc := range []uint32{1, 2} {
		l := newLine(WindowConfig{}, 0)
		l.push(1, upTo(39000, 40001)...)
		l.take()
		l.push(ssrc, upTo(0, 50)...)
		if got, want := l.take(), upTo(0, 50); !slices.Equal(got, want) {
			t.Errorf("SSRC %d: got %v, want %v", ssrc, got, want)
		}
		if got := l.window.Stats().Resyncs; got != 1 {
			t.Errorf("SSRC %d: got %d resyncs, want 1", ssrc, got)
		}
	}
}

// A restart of any kind is over within 50 packets, however fast they come, and
// within 200 ms and two packets, however slowly.
func TestWindow_restartIsSoonOver(t *testing.T) {
	for _, ssrc := range []uint32{1, 2} {
		for _, begin := range []int{-30000, -500, 1500, 30000} {
			l := newLine(WindowConfig{}, 7)
			l.push(1, upTo(0, 1000)...)
			l.take()
			l.tick = 0
			l.push(ssrc, upTo(begin, begin+50)...)
			if got, want := l.take(), upTo(begin, begin+50); !slices.Equal(got, want) {
				t.Errorf("SSRC %d from %d, fast: got %v, want %v", ssrc, begin, got, want)
			}

			l = newLine(WindowConfig{}, 7)
			l.push(1, upTo(0, 1000)...)
			l.take()
			l.tick = 100 * time.Millisecond
			l.push(ssrc, begin, begin+1, begin+2)
			if got, want := l.take(), upTo(begin, begin+3); !slices.Equal(got, want) {
				t.Errorf("SSRC %d from %d, slow: got %v, want %v", ssrc, begin, got, want)
			}
		}
	}
}

func TestWindow_coldStart(t *testing.T) {
	tests := []struct {
		name   string
		config WindowConfig
		tick   time.Duration
		push   []int
		before int // packets that go out with the last one pushed
		want   []int
	}{
		{"eight packets", WindowConfig{}, time.Millisecond, []int{3, 2, 1, 0, 7, 6, 5, 4}, 8, upTo(0, 8)},
		{"seven packets wait", WindowConfig{}, time.Millisecond, []int{3, 2, 1, 0, 6, 5, 4}, 0, upTo(0, 7)},
		{"15 ms", WindowConfig{}, 8 * time.Millisecond, []int{1, 0}, 2, upTo(0, 2)},
		{"one packet", WindowConfig{Collect: 1}, time.Millisecond, []int{1, 0}, 1, []int{1}},
	}
	for _, test := range tests {
		for _, base := range bases {
			l := newLine(test.config, base)
			l.tick = test.tick
			l.push(1, test.push...)
			if got := len(l.order); got != test.before {
				t.Errorf("%s, base %d: got %d packets at once, want %d", test.name, base, got, test.before)
			}
			l.wait(15 * time.Millisecond)
			if got := l.take(); !slices.Equal(got, test.want) {
				t.Errorf("%s, base %d: got %v, want %v", test.name, base, got, test.want)
			}
			if _, waits := l.window.Deadline(); waits {
				t.Errorf("%s, base %d: waits after the start", test.name, base)
			}
		}
	}
}

// 3300 packets/s are 35 Mbit/s: a hole may still be filled until the last
// moment of the hold time.
func TestWindow_holdTimeOfUltraHD(t *testing.T) {
	l := newLine(WindowConfig{}, 0)
	l.tick = time.Second / 3300
	l.push(1, upTo(0, 100)...)
	held := int(defaultHold/l.tick) - 1
	l.push(1, upTo(101, 101+held)...)
	if got := len(l.order); got != 100 {
		t.Fatalf("got %d packets before the hole is filled, want 100", got)
	}
	l.push(1, 100)
	if got, want := l.take(), upTo(0, 101+held); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWindow_deadline(t *testing.T) {
	w := NewWindow(WindowConfig{Collect: 1})
	var out [][]byte
	check := func(now time.Duration, want time.Duration) {
		t.Helper()
		if got, ok := w.Deadline(); !ok || !got.Equal(epoch.Add(want)) {
			t.Errorf("at %v: got deadline %v, %t, want %v", now, got.Sub(epoch), ok, want)
		}
	}
	push := func(seq uint16, now time.Duration) {
		out = w.Push(Packet{Seq: seq, Payload: []byte{1}}, epoch.Add(now), out)
	}
	push(10, 0)
	push(13, 5*time.Millisecond)
	push(12, 9*time.Millisecond)
	check(9*time.Millisecond, 55*time.Millisecond)

	if out = w.Expire(epoch.Add(55*time.Millisecond-1), out); len(out) != 1 {
		t.Fatalf("before the deadline: got %d out, want 1", len(out))
	}
	if out = w.Expire(epoch.Add(55*time.Millisecond), out); len(out) != 3 {
		t.Fatalf("at the deadline: got %d out, want 3", len(out))
	}
	if _, ok := w.Deadline(); ok {
		t.Error("a deadline although nothing waits")
	}
}

func TestWindow_bounds(t *testing.T) {
	l := newLine(WindowConfig{Packets: 32, Hold: time.Hour}, 0)
	l.push(1, upTo(0, 10)...)
	l.push(1, upTo(11, 10+32)...)
	if got := len(l.order); got != 10 {
		t.Errorf("31 packets behind a hole: got %d out, want 10", got)
	}
	l.push(1, 10+32)
	if got := len(l.order); got != 10+32 {
		t.Errorf("32 packets behind a hole: got %d out, want %d", got, 10+32)
	}

	w := NewWindow(WindowConfig{Bytes: 10 * 1316, Hold: time.Hour, Collect: 1})
	out := w.Push(Packet{Seq: 0, Payload: make([]byte, 1316)}, epoch, nil)
	for seq := range uint16(11) {
		out = w.Push(Packet{Seq: seq + 2, Payload: make([]byte, 1316)}, epoch, out)
	}
	if s := w.Stats(); len(out) != 12 || s.Lost != 1 || s.Held != 0 {
		t.Errorf("11 packets where 10 may wait: got %d out, %+v, want 12, 1 lost, 0 held", len(out), s)
	}
}

// A day of a channel: the sequence wraps, 64-bit counters and times do not.
func TestWindow_aDay(t *testing.T) {
	w := NewWindow(WindowConfig{})
	const wraps = 10
	packets := wraps << 16
	step := 24 * time.Hour / time.Duration(packets)
	payload := []byte{1}
	var out [][]byte
	gone := 0
	for i := range packets {
		now := epoch.Add(time.Duration(i) * step)
		out = w.Push(Packet{Seq: uint16(i), SSRC: 9, Payload: payload}, now, out[:0])
		if i&0xff == 0 {
			out = w.Expire(now, out)
		}
		gone += len(out)
		w.Recycle()
	}
	if s := w.Stats(); gone != packets || s != (WindowStats{}) {
		t.Errorf("got %d of %d packets, %+v, want all and no event", gone, packets, s)
	}
}

// Nothing is allocated per packet, in order, reordered, doubled, with losses
// and with a second sender.
func TestWindow_allocatesNothing(t *testing.T) {
	payload := make([]byte, 1316)
	tests := []struct {
		name string
		push func(push func(ssrc uint32, seq uint16), seq uint16)
	}{
		{"in order", func(push func(uint32, uint16), seq uint16) { push(1, seq) }},
		{"reordered", func(push func(uint32, uint16), seq uint16) { push(1, seq^15) }},
		{"doubled", func(push func(uint32, uint16), seq uint16) { push(1, seq); push(1, seq) }},
		{"loss", func(push func(uint32, uint16), seq uint16) {
			if seq%100 != 0 {
				push(1, seq)
			}
		}},
		{"two senders", func(push func(uint32, uint16), seq uint16) { push(1, seq); push(2, seq+9999) }},
	}
	for _, test := range tests {
		w := NewWindow(WindowConfig{})
		var out [][]byte
		now, seq := epoch, uint16(0)
		push := func(ssrc uint32, seq uint16) {
			out = w.Push(Packet{Seq: seq, SSRC: ssrc, Payload: payload}, now, out)
		}
		batch := func() {
			out = out[:0]
			for range 64 {
				test.push(push, seq)
				seq++
			}
			now = now.Add(16 * time.Millisecond)
			out = w.Expire(now, out)
			w.Recycle()
		}
		for range 2000 { // past one wrap
			batch()
		}
		if got := testing.AllocsPerRun(1000, batch); got != 0 {
			t.Errorf("%s: got %v allocations a batch, want 0", test.name, got)
		}
	}
}

func BenchmarkWindow_inOrder(b *testing.B) {
	benchmarkWindow(b, func(seq uint16) uint16 { return seq })
}

func BenchmarkWindow_reordered(b *testing.B) {
	benchmarkWindow(b, func(seq uint16) uint16 { return seq ^ 1 })
}

func benchmarkWindow(b *testing.B, order func(uint16) uint16) {
	w := NewWindow(WindowConfig{})
	payload := make([]byte, 1316)
	var out [][]byte
	var seq uint16
	b.ReportAllocs()
	packets := 0
	for b.Loop() {
		out = out[:0]
		for range 64 {
			out = w.Push(Packet{Seq: order(seq), SSRC: 1, Payload: payload}, epoch, out)
			seq++
		}
		w.Recycle()
		packets += 64
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
}
