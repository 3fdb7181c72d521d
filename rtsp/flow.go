package rtsp

import (
	"errors"
	"io"
	"time"

	"zapcast/ingest"
	"zapcast/mpegts"
)

const (
	// scratchBytes is what one read may bring: 50 ms of 40 Mbit/s. It is more
	// than three of the longest frames.
	scratchBytes = 256 << 10
	// udpInterval keeps a socket's buffer from overflowing at 100 Mbit/s.
	udpInterval = 20 * time.Millisecond
)

// A scratch is the memory that a loop's sessions read into, one after the other:
// it stays in the cache, and a session keeps only what is not whole yet.
type scratch struct{ buf [scratchBytes]byte }

// A tcpFlow takes one TCP stream apart. What it yields as a datagram is the
// payload of a frame on the media channel, or a run of TS packets put together
// from several. Messages go to the machine.
type tcpFlow struct {
	link    link
	m       *machine
	scratch *scratch
	carry   []byte // between two turns: what is not used yet

	at, end int // in scratch, within a turn
	turn    bool
	dry     bool // the link had nothing more in this turn
	idle    bool // all that was whole has been taken
	err     error
	now     time.Time

	raw  bool // frames hold bare TS, cut anywhere
	join joiner
	out  [][]byte

	frames, skipped int64 // frames of media; junk bytes
}

var _ ingest.Flow = (*tcpFlow)(nil)

// begin takes up what the last turn left.
func (f *tcpFlow) begin(now time.Time) {
	f.now, f.turn, f.dry = now, true, false
	f.at, f.end = 0, copy(f.scratch.buf[:], f.carry)
}

// finish keeps what is left: the scratch is another session's now.
func (f *tcpFlow) finish() {
	f.turn = false
	f.carry = append(f.carry[:0], f.scratch.buf[f.at:f.end]...)
}

// Read implements ingest.Flow, within a turn.
func (f *tcpFlow) Read(limit int) (datagrams [][]byte, more bool) {
	f.out = f.out[:0]
	f.join.begin()
	if limit <= 0 || !f.turn {
		return nil, false
	}
	f.parse(limit)
	if len(f.out) == 0 && f.fill() {
		f.parse(limit)
	}
	if f.raw {
		f.out = f.join.packets(f.out)
	}
	return f.out, !f.dry || len(f.out) >= limit
}

// fill reads from the link. It reports whether there was something.
func (f *tcpFlow) fill() bool {
	if f.dry || f.err != nil || f.m.finished() {
		f.dry = true
		return false // what the server says after the end is nobody's
	}
	b := f.scratch.buf[:]
	f.end = copy(b, b[f.at:f.end])
	f.at = 0
	n, err := f.link.read(b[f.end:])
	f.dry = n < len(b)-f.end
	f.end += n
	if err != nil && !errors.Is(err, errAgain) {
		f.err = err
	}
	return n > 0
}

// parse takes what is there apart, up to limit datagrams.
func (f *tcpFlow) parse(limit int) {
	f.idle = false
	for taken := 0; taken < limit; {
		p, n, err := cut(f.scratch.buf[f.at:f.end], f.m.transport.mediaChannels())
		if err != nil {
			f.err = err
			f.at = f.end
			f.idle = true
			return
		}
		if n == 0 {
			f.idle = true
			return
		}
		f.at += n
		switch p.kind {
		case pieceMedia:
			f.frames++
			taken++
			f.media(p.payload)
		case pieceMessage:
			f.m.received(p.message, f.now)
		case pieceJunk:
			f.skipped += int64(n)
		}
	}
}

// media sorts one frame. Whether frames hold RTP or bare TS is told by what is
// in them: servers announce the one and send the other.
func (f *tcpFlow) media(b []byte) {
	switch {
	case mpegts.Whole(b) && f.join.empty():
		f.raw = true
	case f.raw && isRTP(b):
		f.raw = false
	case f.raw:
		f.join.add(b)
		return
	}
	f.out = append(f.out, b)
}

func isRTP(b []byte) bool {
	_, payload, ok := ingest.PeekRTP(b)
	return ok && mpegts.Whole(payload)
}

// ended is nil as long as the stream goes on.
func (f *tcpFlow) ended() error {
	if f.err != nil && f.idle {
		return f.err
	}
	return nil
}

func (f *tcpFlow) Status(s *ingest.Status) {
	s.Datagrams = f.frames
	s.Local, s.Sender = f.m.local.Addr().String(), f.m.server.String()
	if f.skipped > 0 {
		s.Warnings = append(s.Warnings, "bytes between the frames of the stream were skipped")
	}
}

func (f *tcpFlow) Interval() time.Duration { return 0 }
func (f *tcpFlow) Rejoin()                 {}
func (f *tcpFlow) Close() error            { return nil } // the session's work

// A udpFlow reads datagrams from the media port.
type udpFlow struct {
	port    packetLink
	m       *machine
	scratch *scratch
	turn    bool

	out       [][]byte
	datagrams int64
}

var _ ingest.Flow = (*udpFlow)(nil)

// Read implements ingest.Flow, within a turn.
func (f *udpFlow) Read(limit int) (datagrams [][]byte, more bool) {
	f.out = f.out[:0]
	if !f.turn {
		return nil, false
	}
	for at := 0; len(f.out) < limit; {
		if len(f.scratch.buf)-at < 64<<10 {
			return f.out, true
		}
		n, err := f.port.read(f.scratch.buf[at:])
		if err != nil && !errors.Is(err, io.EOF) { // io.EOF: an empty one
			return f.out, false
		}
		f.datagrams++
		f.out = append(f.out, f.scratch.buf[at:at+n:at+n])
		at += n
	}
	return f.out, true
}

func (f *udpFlow) Status(s *ingest.Status) {
	s.Datagrams = f.datagrams
	s.Local = f.m.local.Addr().String()
	s.Sender = f.m.transport.mediaSource(f.m.server.Addr()).String()
	s.ReceiveBuffer = udpReadBuffer
}

func (f *udpFlow) Interval() time.Duration { return udpInterval }
func (f *udpFlow) Rejoin()                 {}
func (f *udpFlow) Close() error            { return nil }
