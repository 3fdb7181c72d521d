package fanout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"zapcast/ingest"
)

// testStream makes a TS with a counter in every packet: tables, then pictures of
// a few packets each, of which every gop-th is a random-access point.
type testStream struct {
	gop     int // pictures from one random-access point to the next; 0: radio
	size    int // packets of a picture
	counter uint64
	picture int
	left    int
	cc      [8192]byte
	tables  bool
}

const (
	testPMT   = 0x1f0
	testVideo = 0x101
)

var testFiller = bytes.Repeat([]byte{0xee}, packetBytes)

func (s *testStream) header(p []byte, pid uint16, start bool) {
	p[0], p[1], p[2], p[3] = 0x47, byte(pid>>8), byte(pid), 0x10|s.cc[pid]
	if start {
		p[1] |= 0x40
	}
	s.cc[pid] = (s.cc[pid] + 1) & 15
}

func testSection(p []byte, section []byte) {
	crc := uint32(0xffffffff)
	for _, b := range section {
		crc ^= uint32(b) << 24
		for range 8 {
			if crc&(1<<31) != 0 {
				crc = crc<<1 ^ 0x04c11db7
			} else {
				crc <<= 1
			}
		}
	}
	p[0] = 0
	n := 1 + copy(p[1:], section)
	binary.BigEndian.PutUint32(p[n:], crc)
	for i := n + 4; i < len(p); i++ {
		p[i] = 0xff
	}
}

// packets returns the next n packets.
func (s *testStream) packets(n int) []byte {
	b := make([]byte, n*packetBytes)
	for i := range n {
		s.packet(b[i*packetBytes:][:packetBytes])
	}
	return b
}

func (s *testStream) packet(p []byte) {
	kind := byte(0x0f) // AAC
	if s.gop > 0 {
		kind = 0x1b // H.264
	}
	switch {
	case s.left == 0 && s.picture%max(s.gop, 1) == 0 && !s.tables:
		s.header(p, 0, true)
		testSection(p[4:176], []byte{0, 0xb0, 0x0d, 0, 1, 0xc1, 0, 0, 0, 1, 0xe0 | testPMT>>8, testPMT & 0xff})
		s.tables = true
	case s.left == 0 && s.tables && s.cc[testPMT] != s.cc[0]:
		s.header(p, testPMT, true)
		testSection(p[4:176], []byte{2, 0xb0, 0x12, 0, 1, 0xc1, 0, 0, 0xe1, 0x01, 0xf0, 0, kind, 0xe0 | testVideo>>8, testVideo & 0xff, 0xf0, 0})
	case s.left == 0:
		s.tables = false
		s.left = s.size - 1
		s.header(p, testVideo, true)
		copy(p[4:], testFiller)
		copy(p[4:], []byte{0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1, 0, 0, 0, 1, 9, 0xf0})
		nal := []byte{0, 0, 1, 0x41, 0x9a}
		if s.isRandom() {
			nal = []byte{0, 0, 1, 0x67, 0x64, 0, 0x28, 0, 0, 1, 0x68, 0xeb, 0, 0, 1, 0x65, 0x88}
		}
		copy(p[24:], nal)
		s.picture++
	default:
		s.left--
		s.header(p, testVideo, false)
		copy(p[4:], testFiller)
	}
	binary.BigEndian.PutUint64(p[180:], s.counter)
	s.counter++
}

func (s *testStream) isRandom() bool { return s.gop > 0 && s.picture%s.gop == 0 }

// testViewer checks what one viewer is sent.
type testViewer struct {
	room  int // bytes that his socket takes before it is full
	part  []byte
	count uint64 // counter of the next packet
	begun bool
	want  bool   // a random-access point must come next, after tables
	pids  [2]int // of the last two packets
	skips int    // jumps forward seen
	err   error
	total int64
	ended bool
}

var _ conn = (*testViewer)(nil)

func (c *testViewer) take(b []byte) {
	for len(b) > 0 {
		if len(c.part) == 0 && len(b) >= packetBytes {
			c.packet(b[:packetBytes])
			b = b[packetBytes:]
			continue
		}
		n := min(len(b), packetBytes-len(c.part))
		c.part, b = append(c.part, b[:n]...), b[n:]
		if len(c.part) == packetBytes {
			c.packet(c.part)
			c.part = c.part[:0]
		}
	}
}

func (c *testViewer) fail(format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("packet %d of the viewer: "+format, append([]any{c.total}, a...)...)
	}
}

func (c *testViewer) packet(p []byte) {
	c.total++
	if p[0] != 0x47 {
		c.fail("no sync byte: % x", p[:8])
		return
	}
	pid := int(p[1]&0x1f)<<8 | int(p[2])
	n := binary.BigEndian.Uint64(p[180:])
	before := c.pids
	c.pids = [2]int{before[1], pid}
	if p[3]&0x10 == 0 { // no payload: the mark of a jump
		if before != [2]int{0, testPMT} {
			c.fail("packets of PID %#x before the mark of a jump, want tables", before)
		}
		c.want = true
		return
	}
	if n != c.count || !c.begun {
		switch {
		case pid != testVideo: // tables before the stream goes on
			return
		case c.begun && n < c.count:
			c.fail("counter went back from %d to %d", c.count, n)
		case c.begun && !c.want:
			c.fail("counter jumped from %d to %d without a mark", c.count, n)
		case p[1]&0x40 == 0 || string(p[27:28]) != "\x67" && c.begun:
			c.fail("went on at %d, which is no random-access point", n)
		}
		if c.begun {
			c.skips++
		}
		c.begun = true
	}
	c.want = false
	c.count = n + 1
}

func (c *testViewer) write(b []byte) (int, error) {
	n := min(len(b), c.room)
	c.room -= n
	c.take(b[:n])
	if n < len(b) {
		return n, errAgain
	}
	return n, nil
}

func (c *testViewer) writev(parts [][]byte) (int, error) {
	sent := 0
	for _, p := range parts {
		n, err := c.write(p)
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func (c *testViewer) sendFile(f *memfile, off int64, n int) (int, error) {
	b := make([]byte, min(n, c.room))
	if m := f.readAt(b, off); m != len(b) {
		return 0, fmt.Errorf("memfd gave %d of %d bytes", m, len(b))
	}
	sent, err := c.write(b)
	if err == nil && sent < n {
		err = errAgain
	}
	return sent, err
}

func (c *testViewer) close() { c.ended = true }

// testSource hands over what it was given.
type testSource struct {
	queue  [][]byte
	closed bool
}

var _ ingest.Source = (*testSource)(nil)

func (s *testSource) Drain(_ time.Time, _ int, sink ingest.Sink) bool {
	if len(s.queue) > 0 {
		sink.Append(s.queue)
		s.queue = s.queue[:0]
	}
	return false
}
func (s *testSource) Interval() time.Duration { return 0 }
func (s *testSource) Status() ingest.Status {
	return ingest.Status{Source: "test", Payload: "mp2t-rtp"}
}
func (s *testSource) Seen() string { return "nothing" }
func (s *testSource) Rejoin()      {}
func (s *testSource) Close() error { s.closed = true; return nil }

// testReceiver has no flows.
type testReceiver struct{}

func (testReceiver) Open(ingest.FlowSpec) (ingest.Flow, error) {
	return nil, fmt.Errorf("no flows here")
}
func (testReceiver) Begin(time.Time) {}
func (testReceiver) End()            {}
func (testReceiver) Close() error    { return nil }

func (testReceiver) Report() (r ingest.ReceiverStatus) { return r }

// testRig is a loop that is turned by hand, with one channel.
type testRig struct {
	loop *loop
	ch   *channel
	src  *testSource
	now  time.Time
}

func newRig(cfg Config) *testRig {
	cfg.Receiver = func() (ingest.Receiver, error) { return testReceiver{}, nil }
	cfg = cfg.withDefaults()
	e := &Engine{}
	e.cfg.Store(&cfg)
	l, err := newLoop(e)
	if err != nil {
		panic(err)
	}
	r := &testRig{loop: l, src: &testSource{}, now: time.Unix(1_000_000, 0)}
	l.now = r.now
	w := &waiter{ready: make(chan error, 1)}
	r.ch, _ = l.join("test", w)
	l.opened(r.ch, r.src, nil)
	l.leave(r.ch, w)
	return r
}

// turn lets d pass and turns the loop once.
func (r *testRig) turn(d time.Duration) {
	r.now = r.now.Add(d)
	r.loop.next = r.now
	r.loop.turn(r.now, nil)
}

// settle turns the loop until nobody has anything left to do.
func (r *testRig) settle() {
	r.turn(time.Millisecond)
	for len(r.loop.queue) > 0 {
		r.turn(time.Millisecond)
	}
	r.turn(r.loop.cfg.Flush)
	for len(r.loop.queue) > 0 {
		r.turn(time.Millisecond)
	}
}

// watch attaches a viewer.
func (r *testRig) watch(c *testViewer) *viewer {
	v := &viewer{id: int64(len(r.ch.viewers)), conn: c, fd: -1, info: Viewer{Requested: r.now}}
	w := &waiter{ready: make(chan error, 1)}
	r.loop.join("test", w)
	r.loop.attach(r.ch, w, v)
	return v
}

// open gives a viewer's socket room for n more bytes.
func (r *testRig) open(v *viewer, n int) {
	tested(v).room += n
	r.loop.socket(v, true, false)
}
