package httpout

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"zapcast/fanout"
	"zapcast/ingest/ingesttest"
)

// A bad line is what a network has been seen to make of a stream, and what a
// viewer must get of it.
type badLine struct {
	name      string
	base      uint16 // sequence number of the first packet
	datagrams [][]byte
	want      []byte           // the body, whole
	counts    map[string]int64 // fields of the channel's status; the others that count faults are 0
}

const lineNumber = 1000 // of the first TS packets that belong to a line

func lineTS(i int) []byte { return ingesttest.TS(lineNumber+uint32(i), 7) }

func lineRTP(base uint16, i int) []byte { return ingesttest.Datagram(base+uint16(i), 1, lineTS(i)) }

// numbers of a line of n packets.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// inOrder is the body of these packets.
func inOrder(list []int) (body []byte) {
	for _, i := range list {
		body = append(body, lineTS(i)...)
	}
	return body
}

// reordered is a line in whose middle each packet is exchanged with the one
// that is distance further on.
func reordered(base uint16, distance int) badLine {
	list := numbers(120)
	order := slices.Clone(list)
	moved := 0
	for i := 20; i+distance < 100; i += distance + 1 {
		order[i], order[i+distance] = order[i+distance], order[i]
		moved += distance
	}
	line := badLine{name: fmt.Sprintf("reordered by %d from %d", distance, base), base: base, want: inOrder(list), counts: map[string]int64{"reordered": int64(moved)}}
	for _, i := range order {
		line.datagrams = append(line.datagrams, lineRTP(base, i))
	}
	return line
}

// between is a line in order with others between its packets.
func between(name string, counts map[string]int64, others ...[]byte) badLine {
	line := badLine{name: name, base: 65500, want: inOrder(numbers(120)), counts: counts}
	for i := range 120 {
		line.datagrams = append(line.datagrams, lineRTP(line.base, i), others[i%len(others)])
	}
	return line
}

// changed is a line whose packets f changes; where it returns nil, they are lost.
func changed(name string, base uint16, counts map[string]int64, f func(i int, seq *uint16, ssrc *uint32, ts []byte) []byte) badLine {
	line := badLine{name: name, base: base, counts: counts}
	for i := range 120 {
		seq, ssrc := base+uint16(i), uint32(1)
		ts := f(i, &seq, &ssrc, lineTS(i))
		if ts != nil {
			line.datagrams = append(line.datagrams, ingesttest.Datagram(seq, ssrc, ts))
			line.want = append(line.want, ts...)
		}
	}
	return line
}

func badLines() []badLine {
	lines := []badLine{
		between("a set-top box's greeting", map[string]int64{"foreign": 120}, append([]byte("ZXV10STB"), make([]byte, 76)...)),
		between("other strangers", map[string]int64{"foreign": 60},
			append([]byte("GET / HTTP/1.1"), make([]byte, 1400)...), // begins like TS
			append([]byte("M-SEARCH * HTTP/1.1"), make([]byte, 300)...),
			append([]byte{0x80, 200, 0, 6}, make([]byte, 24)...),   // RTCP, of which nothing is said
			append([]byte{0x80, 127, 0, 9}, make([]byte, 1336)...), // FEC, likewise
		),
		between("headers that contradict themselves", map[string]int64{"malformed": 120},
			append([]byte{0x8f, 33, 0, 7}, make([]byte, 16)...),
			append([]byte{0x90, 33, 0, 8}, append(make([]byte, 8), 0, 0, 0xff, 0xff, 0, 0, 0, 0)...),
			append([]byte{0xa0, 33, 0, 9}, make([]byte, 16)...),
		),
		changed("the line's own", 7, nil, func(_ int, _ *uint16, _ *uint32, ts []byte) []byte { return ts }),
		changed("continuity counters that jump", 7, nil, func(i int, _ *uint16, _ *uint32, ts []byte) []byte {
			if i >= 60 {
				ts[3] ^= 5
			}
			return ts
		}),
		changed("datagrams of mixed sizes", 65500, nil, func(i int, _ *uint16, _ *uint32, ts []byte) []byte {
			return ts[:188*[]int{1, 2, 5, 7}[i%4]]
		}),
		changed("a keep-alive without payload now and then", 65500, nil, func(i int, _ *uint16, _ *uint32, ts []byte) []byte {
			if i%10 == 5 {
				return []byte{}
			}
			return ts
		}),
		changed("losses, and time stamps that stand still", 65500, map[string]int64{"lost": 10}, func(i int, _ *uint16, _ *uint32, ts []byte) []byte {
			if i%12 == 6 {
				return nil
			}
			return ts
		}),
		changed("a burst that ends at 30162, a stream that goes on at 33586", 30103, map[string]int64{"lost": 33586 - 30163, "resyncs": 1},
			func(i int, seq *uint16, _ *uint32, ts []byte) []byte {
				if i >= 60 {
					*seq = 33586 + uint16(i-60)
				}
				return ts
			}),
	}
	// With the SSRC it had, a jump ahead may as well be a long loss, and is
	// counted as one.
	for other, lost := range map[uint32]int64{1: 65536 - 40001, 2: 0} {
		lines = append(lines, changed(fmt.Sprint("an encoder that starts again at 0, SSRC ", other), 39941, map[string]int64{"resyncs": 1, "lost": lost},
			func(i int, seq *uint16, ssrc *uint32, ts []byte) []byte {
				if i >= 60 {
					*seq, *ssrc = uint16(i-60), other
				}
				return ts
			}))
	}
	for _, distance := range []int{1, 8, 16} {
		lines = append(lines, reordered(7, distance), reordered(65475, distance))
	}

	doubled := badLine{name: "every packet twice", base: 65500, want: inOrder(numbers(120)), counts: map[string]int64{"duplicates": 120}}
	wrap := badLine{name: "65533, 65535, 65534, 1, 0, 2", base: 65533, want: inOrder(numbers(6)), counts: map[string]int64{"reordered": 2}}
	bare := badLine{name: "bare TS", want: inOrder(numbers(120))}
	sizes := badLine{name: "bare TS of mixed sizes"}
	junk := badLine{name: "50 bytes of junk inside bare TS", counts: map[string]int64{"bad_ts": 1}}
	kinds := badLine{name: "RTP, bare TS and RTP again", base: 65500, want: inOrder(numbers(120))}
	for i := range 120 {
		ts := lineTS(i)
		doubled.datagrams = append(doubled.datagrams, lineRTP(doubled.base, i), lineRTP(doubled.base, i))
		bare.datagrams = append(bare.datagrams, ts)
		part := ts[:188*[]int{1, 2, 5, 7}[i%4]]
		sizes.datagrams, sizes.want = append(sizes.datagrams, part), append(sizes.want, part...)
		if i == 60 {
			const at = 3*188 + 60
			junk.datagrams = append(junk.datagrams, slices.Concat(ts[:at], bytes.Repeat([]byte{0xee}, 50), ts[at:]))
			junk.want = slices.Concat(junk.want, ts[:3*188], ts[4*188:])
		} else {
			junk.datagrams, junk.want = append(junk.datagrams, ts), append(junk.want, ts...)
		}
		if i/40 == 1 {
			kinds.datagrams = append(kinds.datagrams, ts)
		} else if i < 40 {
			kinds.datagrams = append(kinds.datagrams, lineRTP(kinds.base, i))
		} else {
			kinds.datagrams = append(kinds.datagrams, lineRTP(kinds.base-40, i))
		}
	}
	stamps := changed("time stamps that wrap, and then run wild", 65500, nil, func(_ int, _ *uint16, _ *uint32, ts []byte) []byte { return ts })
	for i, b := range stamps.datagrams {
		stamp := uint32(i-60) * 3600
		if i > 90 {
			stamp *= 2654435761
		}
		binary.BigEndian.PutUint32(b[4:], stamp)
	}
	for _, i := range []int{0, 2, 1, 4, 3, 5} {
		wrap.datagrams = append(wrap.datagrams, lineRTP(wrap.base, i))
	}
	return append(lines, stamps, doubled, wrap, bare, sizes, junk, kinds)
}

// Whatever a network makes of a stream: the body of the answer, through both
// forms of the URL and on both paths of the engine, is what the head-end sent,
// whole TS packets in order, nothing added; the status counts what was wrong,
// and the log does not tell of single packets.
func TestBody_ofBadLines(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, line := range badLines() {
			t.Run(fmt.Sprintf("%s/plain=%t", line.name, plain), func(t *testing.T) {
				testBadLine(t, line, plain)
			})
		}
	}
}

func testBadLine(t *testing.T, line badLine, plain bool) {
	f := newFrontOn(t, Config{}, fanout.Config{Plain: plain, StartWait: time.Millisecond, Silence: patience})
	const spec = "239.1.1.1:5000"
	bare := line.datagrams[0][0] == 0x47
	lead := func(n int) { // what came before, so that there is a stream to start with
		for i := range n {
			ts := ingesttest.TS(uint32(i), 7)
			if bare {
				f.network.Send(spec, ts)
			} else {
				f.network.Send(spec, ingesttest.Datagram(line.base-uint16(n-i), 1, ts))
			}
		}
	}
	const leadIn = 20
	type answer struct {
		call
		target string
	}
	answers := make(chan answer)
	targets := []string{"/rtp/" + spec, "/udp/" + spec, "/rtp/" + spec + "?fcc=127.0.0.1:9"}
	for _, target := range targets {
		go func() { answers <- answer{f.open("GET", target), target} }()
	}
	f.eventually("all wait", func() bool {
		channels := f.engine.Status().Channels
		return len(channels) == 1 && channels[0].Waiting == len(targets) && len(f.network.Joined()) == 1
	})
	lead(leadIn)
	var viewers []answer
	for range targets {
		viewers = append(viewers, <-answers)
	}
	f.eventually("all watch", func() bool { return len(f.engine.Status().Viewers) == len(targets) })

	for _, b := range line.datagrams {
		f.network.Send(spec, b)
	}
	for _, v := range viewers {
		got, packet := make([]byte, 0, len(line.want)), make([]byte, 188)
		for len(got) < len(line.want) {
			if _, err := io.ReadFull(v.Body, packet); err != nil {
				t.Fatalf("%s: %v after %d of %d bytes", v.target, err, len(got), len(line.want))
			}
			if packet[0] != 0x47 {
				t.Fatalf("%s: byte %d is %#x, want a sync byte", v.target, len(got), packet[0])
			}
			if binary.BigEndian.Uint32(packet[4:]) >= lineNumber {
				got = append(got, packet...)
			}
		}
		if !bytes.Equal(got, line.want) {
			at := 0
			for got[at] == line.want[at] {
				at++
			}
			t.Errorf("%s: body differs from what was sent at packet %d of %d", v.target, at/188, len(line.want)/188)
		}
	}

	if joined := f.network.Events(); len(joined) != 1 {
		t.Errorf("events: got %v, want one join", joined)
	}
	_, body := f.request("GET", "/api/status", "Connection: close")
	var status struct{ Channels []map[string]any }
	if err := json.Unmarshal([]byte(body), &status); err != nil || len(status.Channels) != 1 {
		t.Fatalf("status: %v\n%s", err, body)
	}
	for _, field := range []string{"lost", "reordered", "duplicates", "resyncs", "foreign", "malformed", "bad_ts", "overflow", "skips"} {
		if got, want := status.Channels[0][field], float64(line.counts[field]); got != want {
			t.Errorf("status, %s: got %v, want %v", field, got, want)
		}
	}
	log := f.log.String()
	if n := strings.Count(log, "\n"); n > 1+len(targets) || strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
		t.Errorf("log: want a line for the channel and one for each viewer, got:\n%s", log)
	}
}
