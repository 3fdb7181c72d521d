package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"zapcast/mpegts"
)

// A numbered stream is H.264 to those who look for random-access points, and
// its video packets carry their number and the mark of their stream: whoever
// reads it knows what is missing, and what belongs to another.
const (
	numberedPMT    = 0x1000
	numberedVideo  = 0x100
	numberedGOP    = 500 // video packets from one random-access point to the next
	numberedGOPs   = 40
	numberedCount  = numberedGOP * numberedGOPs
	numberedTables = 2 // packets of PAT and PMT before each random-access point

	// numberedDatagrams is what `zapcast send` makes of one pass.
	numberedDatagrams = ((numberedGOP+numberedTables)*numberedGOPs + 6) / 7

	numberAt = tsPacket - 6 // of mark and number in a packet
)

// numberedFile writes a pass of the stream. A mark is below 128.
func numberedFile(t *testing.T, mark byte) (path string) {
	t.Helper()
	ts := make([]byte, 0, (numberedGOP+numberedTables)*numberedGOPs*tsPacket)
	for n := range numberedCount {
		if n%numberedGOP == 0 {
			gop := byte(n / numberedGOP)
			ts = appendSection(ts, 0, gop, 0x00, 1, []byte{0, 1, 0xE0 | numberedPMT>>8, numberedPMT & 0xFF})
			ts = appendSection(ts, numberedPMT, gop, 0x02, 1, []byte{
				0xE0 | numberedVideo>>8, numberedVideo & 0xFF, 0xF0, 0, // PCR PID, no descriptors
				0x1B, 0xE0 | numberedVideo>>8, numberedVideo & 0xFF, 0xF0, 0, // H.264
			})
		}
		ts = appendNumbered(ts, mark, n)
	}
	path = filepath.Join(t.TempDir(), fmt.Sprintf("numbered%d.ts", mark))
	if err := os.WriteFile(path, ts, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// appendSection appends a packet that holds a table of the long form, version
// 0, ISO/IEC 13818-1 §2.4.4.
func appendSection(ts []byte, pid uint16, counter, table byte, extension uint16, body []byte) []byte {
	section := []byte{table, 0xB0, byte(len(body) + 9), byte(extension >> 8), byte(extension), 0xC1, 0, 0}
	section = append(section, body...)
	crc := ^uint32(0)
	for _, c := range section {
		crc ^= uint32(c) << 24
		for range 8 {
			if crc>>31 == 1 {
				crc = crc<<1 ^ 0x04C11DB7
			} else {
				crc <<= 1
			}
		}
	}
	end := len(ts) + tsPacket
	ts = append(ts, 0x47, 0x40|byte(pid>>8), byte(pid), 0x10|counter&15, 0)
	ts = append(ts, section...)
	ts = binary.BigEndian.AppendUint32(ts, crc)
	return append(ts, bytes.Repeat([]byte{0xFF}, end-len(ts))...)
}

// intraPicture begins a PES packet with a picture that a decoder can begin
// with: access unit delimiter, SPS, PPS, IDR slice.
var intraPicture = []byte{
	0, 0, 1, 0xE0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1,
	0, 0, 0, 1, 0x09, 0x10, 0, 0, 0, 1, 0x67, 0x42, 0xA5, 0, 0, 0, 1, 0x68, 0xA5, 0, 0, 0, 1, 0x65, 0x88,
}

func appendNumbered(ts []byte, mark byte, n int) []byte {
	begin := n%numberedGOP == 0
	end := len(ts) + tsPacket
	ts = append(ts, 0x47, numberedVideo>>8, numberedVideo&0xFF, 0x10|byte(n&15))
	if begin {
		ts[end-tsPacket+1] |= 0x40
		ts = append(ts, intraPicture...)
	}
	ts = append(ts, bytes.Repeat([]byte{0xA5}, end-len(ts))...)
	number := ts[end-tsPacket+numberAt:]
	number[0] = 0x80 | mark
	for i := range 5 { // no start codes
		number[5-i] = 0x80 | byte(n>>(7*i))
	}
	return ts
}

// readNumbered returns the number of a video packet, or -1 for another packet.
// A packet that is not as it was made is an error.
func readNumbered(p []byte, mark byte) (n int, err error) {
	switch {
	case len(p) != tsPacket || p[0] != 0x47:
		return 0, fmt.Errorf("packet: got %x…, want a TS packet", p[:min(len(p), 4)])
	case mpegts.Packet(p).PID() != numberedVideo || !mpegts.Packet(p).HasPayload():
		return -1, nil
	}
	for _, c := range p[numberAt+1:] {
		n = n<<7 | int(c&0x7F)
	}
	want := appendNumbered(nil, mark, n)
	want[3] = want[3]&0xF0 | p[3]&0x0F // send counts on from pass to pass
	if !bytes.Equal(p, want) {
		return 0, fmt.Errorf("packet: got %x, want number %d of stream %d", p, n, mark)
	}
	return n, nil
}

// A break is a place where numbers do not count on.
type streamBreak struct {
	from, to  int
	announced bool // by a discontinuity_indicator, with PAT and PMT before it
}

// A reading is somebody who watches a numbered stream.
type reading struct {
	mark   byte
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	numbers []int // of the video packets, in the order of their coming
	breaks  []streamBreak
	gap     time.Duration // the longest without a byte
	last    time.Time
	end     error // why it ended
}

// begin starts to watch. It does not wait for the response.
func (s *service) begin(in within, path string, mark byte) *reading {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reading{mark: mark, cancel: cancel, done: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	c := client(s.t, in)
	s.t.Cleanup(r.close)
	go func() {
		defer close(r.done)
		resp, err := c.Do(req)
		if err == nil {
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				reason, _ := io.ReadAll(resp.Body)
				err = fmt.Errorf("%s: %s", resp.Status, reason)
			}
		}
		if err == nil {
			err = r.read(resp.Body)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.end = err
	}()
	return r
}

func (r *reading) read(body io.Reader) error {
	buf := make([]byte, 64<<10)
	var held int
	var tables, indicated bool
	for {
		n, err := body.Read(buf[held:])
		r.mu.Lock()
		now := time.Now()
		if !r.last.IsZero() {
			r.gap = max(r.gap, now.Sub(r.last))
		}
		r.last = now
		held += n
		at := 0
		for ; at+tsPacket <= held; at += tsPacket {
			p := mpegts.Packet(buf[at : at+tsPacket])
			number, fault := readNumbered(p, r.mark)
			switch {
			case fault != nil:
				r.mu.Unlock()
				return fault
			case p.Discontinuity():
				indicated = tables
			case number < 0:
				tables = true
			default:
				if k := len(r.numbers); k > 0 && number != (r.numbers[k-1]+1)%numberedCount {
					r.breaks = append(r.breaks, streamBreak{r.numbers[k-1], number, indicated})
				}
				r.numbers = append(r.numbers, number)
				tables, indicated = false, false
			}
		}
		held = copy(buf, buf[at:held])
		r.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// close ends it from this side.
func (r *reading) close() {
	r.cancel()
	<-r.done
}

// seen returns what has come so far.
func (r *reading) seen() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.numbers)
}

// more waits for so many packets beyond those that have come.
func (r *reading) more(t *testing.T, packets int) {
	t.Helper()
	want := len(r.seen()) + packets
	eventually(t, func() bool {
		select {
		case <-r.done:
			t.Fatalf("the response ended after %d packets: %v", len(r.seen()), r.end)
		default:
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.numbers) >= want
	}, fmt.Sprintf("%d more packets", packets))
}

// whole fails the test if anything is missing, and if the response has ended.
func (r *reading) whole(t *testing.T, who string) {
	t.Helper()
	select {
	case <-r.done:
		t.Errorf("%s: the response ended: %v", who, r.end)
	default:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.breaks) > 0 {
		t.Errorf("%s: got breaks %+v in %d packets, want none", who, r.breaks, len(r.numbers))
	}
}
