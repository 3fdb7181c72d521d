package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// model is the window again, slow and obvious: maps and searches, every packet
// copied, nothing reused.
type model struct {
	config     WindowConfig
	began      bool
	collecting bool
	collectEnd time.Duration
	ssrc       uint32
	next       uint16
	held       map[uint16]modelPacket
	rival      []modelPacket
	went       map[uint16]bool
	stats      WindowStats
	out        []string
}

type modelPacket struct {
	seq     uint16
	ssrc    uint32
	at      time.Duration
	payload string
}

func newModel(config WindowConfig) *model {
	return &model{config: config.withDefaults(), held: map[uint16]modelPacket{}, went: map[uint16]bool{}}
}

func (m *model) distance(seq uint16) int { return int(int16(seq - m.next)) }

// end is one past everything that is held.
func (m *model) end() uint16 {
	end := 0
	for seq := range m.held {
		end = max(end, int(seq-m.next)+1)
	}
	return m.next + uint16(end)
}

func (m *model) far(seq uint16) bool {
	return int(int16(seq-m.end())) >= 500 || m.distance(seq) <= -500
}

func (m *model) push(p modelPacket) {
	if !m.began {
		if p.payload == "" {
			return
		}
		m.began, m.collecting, m.collectEnd = true, true, p.at+m.config.CollectTime
		m.ssrc, m.next = p.ssrc, p.seq
	}
	if p.ssrc == m.ssrc && !m.far(p.seq) {
		if m.distance(p.seq) >= 0 {
			m.stats.Foreign += int64(len(m.rival))
			m.rival = nil
		}
		m.place(p)
		return
	}

	if len(m.rival) > 0 {
		d := int(int16(p.seq - m.rival[0].seq))
		if p.ssrc != m.rival[0].ssrc || d >= 500 || d <= -500 {
			m.stats.Foreign += int64(len(m.rival))
			m.rival = nil
		}
	}
	if len(m.rival) == 0 && p.payload == "" {
		m.stats.Foreign++
		return
	}
	neighbour, size := false, len(p.payload)
	for _, q := range m.rival {
		if q.seq == p.seq {
			m.stats.Duplicates++
			return
		}
		neighbour = neighbour || q.seq == p.seq+1 || q.seq == p.seq-1
		size += len(q.payload)
	}
	m.rival = append(m.rival, p)
	convinced := false
	if p.ssrc != m.ssrc {
		convinced = len(m.rival) >= 8 || !m.collecting && p.seq == m.next && p.payload != ""
	} else if m.distance(p.seq) > 0 {
		convinced = neighbour
	} else {
		convinced = len(m.rival) >= 48
	}
	if len(m.rival) >= 2 && (p.at-m.rival[0].at >= 200*time.Millisecond || size > m.config.Bytes) {
		convinced = true
	}
	if convinced {
		m.follow()
	}
}

func (m *model) follow() {
	rival := m.rival
	m.rival = nil
	low := rival[0].seq
	for _, q := range rival {
		if int16(q.seq-low) < 0 {
			low = q.seq
		}
	}
	if same := rival[0].ssrc == m.ssrc; same || m.far(low) {
		m.flush()
		if d := m.distance(low); same && d > 0 {
			m.stats.Lost += int64(d)
		}
		m.next, m.went = low, map[uint16]bool{}
		m.stats.Resyncs++
	}
	m.ssrc = rival[0].ssrc
	for _, q := range rival {
		m.place(q)
	}
}

func (m *model) place(p modelPacket) {
	if m.distance(p.seq) < 0 {
		if span := int(m.end() - p.seq); m.collecting && span <= m.config.Packets {
			m.next = p.seq
		} else {
			if m.distance(p.seq) > -500 && m.went[p.seq] {
				m.stats.Duplicates++
			} else {
				m.stats.Late++
			}
			return
		}
	}
	if m.distance(p.seq) >= m.config.Packets {
		m.start()
		for m.distance(p.seq) >= m.config.Packets {
			m.step()
		}
		m.run()
	}
	if _, ok := m.held[p.seq]; ok {
		m.stats.Duplicates++
		return
	}
	if int16(p.seq-m.end()) < 0 {
		m.stats.Reordered++
	}
	m.held[p.seq] = p
	if !m.collecting {
		m.run()
	} else if len(m.held) >= m.config.Collect || p.at >= m.collectEnd || m.size() > m.config.Bytes {
		m.start()
	}
	for m.size() > m.config.Bytes {
		m.step()
		m.run()
	}
}

func (m *model) size() (n int) {
	for _, p := range m.held {
		n += len(p.payload)
	}
	return n
}

// step makes one number go: out or lost.
func (m *model) step() {
	p, ok := m.held[m.next]
	if ok {
		if p.payload != "" {
			m.out = append(m.out, p.payload)
		}
		delete(m.held, m.next)
	} else {
		m.stats.Lost++
	}
	m.went[m.next] = ok
	m.next++
}

func (m *model) run() {
	for {
		if _, ok := m.held[m.next]; !ok {
			return
		}
		m.step()
	}
}

func (m *model) start() {
	if m.collecting {
		m.collecting = false
		m.run()
	}
}

func (m *model) flush() {
	m.start()
	for len(m.held) > 0 {
		m.step()
	}
}

func (m *model) expire(at time.Duration) {
	if m.collecting && at < m.collectEnd {
		return
	}
	m.start()
	for overdue := true; overdue; {
		overdue = false
		for _, p := range m.held {
			overdue = overdue || at-p.at >= m.config.Hold
		}
		if overdue {
			m.step()
		}
	}
	m.run()
}

func (m *model) deadline() (at time.Duration, ok bool) {
	if m.collecting {
		return m.collectEnd, true
	}
	for _, p := range m.held {
		if !ok || p.at+m.config.Hold < at {
			at, ok = p.at+m.config.Hold, true
		}
	}
	return at, ok
}

func (m *model) windowStats() WindowStats {
	stats := m.stats
	stats.Held = len(m.held) + len(m.rival)
	return stats
}

// epoch is when tests begin.
var epoch = time.Date(2025, 10, 8, 19, 0, 0, 0, time.UTC)

// pair drives a window and its model with the same operations.
type pair struct {
	t      *testing.T
	window *Window
	model  *model
	now    time.Duration
	out    [][]byte
	lent   [][]byte // payloads pushed since the last consume
	number uint32
}

func newPair(t *testing.T, config WindowConfig) *pair {
	return &pair{t: t, window: NewWindow(config), model: newModel(config)}
}

func (p *pair) push(seq uint16, ssrc uint32, size int) {
	payload := make([]byte, size)
	if size >= 4 {
		p.number++
		binary.BigEndian.PutUint32(payload, p.number)
	}
	p.lent = append(p.lent, payload)
	p.model.push(modelPacket{seq: seq, ssrc: ssrc, at: p.now, payload: string(payload)})
	p.out = p.window.Push(Packet{Seq: seq, SSRC: ssrc, Payload: payload}, epoch.Add(p.now), p.out)
	p.check(fmt.Sprintf("push %d of %x, %d bytes", seq, ssrc, size))
}

func (p *pair) expire() {
	p.model.expire(p.now)
	p.out = p.window.Expire(epoch.Add(p.now), p.out)
	p.check("expire")
}

func (p *pair) flush() {
	p.model.flush()
	p.out = p.window.Flush(p.out)
	p.check("flush")
}

// consume compares what has come out and takes all memory back.
func (p *pair) consume() {
	p.t.Helper()
	got := make([]string, 0, len(p.out))
	for _, b := range p.out {
		got = append(got, string(b))
	}
	if !slices.Equal(got, p.model.out) {
		p.t.Fatalf("out at %v: got % x, want % x", p.now, got, p.model.out)
	}
	p.out, p.model.out = p.out[:0], nil
	p.window.Recycle()
	for _, b := range p.lent {
		copy(b, bytes.Repeat([]byte{0xdb}, len(b)))
	}
	p.lent = p.lent[:0]
}

func (p *pair) check(action string) {
	p.t.Helper()
	if len(p.out) != len(p.model.out) {
		p.t.Fatalf("%s at %v: got %d payloads out, want %d", action, p.now, len(p.out), len(p.model.out))
	}
	if diff := cmp.Diff(p.model.windowStats(), p.window.Stats()); diff != "" {
		p.t.Fatalf("%s at %v: stats (-want +got):\n%s", action, p.now, diff)
	}
	want, wantOK := p.model.deadline()
	got, ok := p.window.Deadline()
	if ok != wantOK || ok && p.now >= 0 && !got.Equal(epoch.Add(want)) {
		p.t.Fatalf("%s at %v: deadline: got %v, %t, want %v, %t", action, p.now, got, ok, epoch.Add(want), wantOK)
	}
}

// play reads operations from a list of bytes, three for each.
func (p *pair) play(ops []byte) {
	p.t.Helper()
	p.expire() // begins the window's time
	base := map[uint32]uint16{1: 65500, 2: 300}
	for ; len(ops) >= 3; ops = ops[3:] {
		op, a, b := ops[0], ops[1], ops[2]
		ssrc := uint32(1 + op>>7)
		size := []int{8, 8, 8, 0, 4, 100, 8, 2000}[b&7]
		switch op & 0x0f {
		case 0, 1, 2, 3: // in order, several
			for range 1 + a&0x0f {
				p.push(base[ssrc], ssrc, size)
				base[ssrc]++
			}
		case 4: // a hole
			base[ssrc] += uint16(a & 0x1f)
			p.push(base[ssrc], ssrc, size)
			base[ssrc]++
		case 5, 6: // anything near
			p.push(base[ssrc]+uint16(int16(int8(a))), ssrc, size)
		case 7: // anything at all
			p.push(binary.BigEndian.Uint16([]byte{a, b}), ssrc, 8)
		case 8: // about as far as near goes
			p.push(base[ssrc]+uint16(372+int(a)), ssrc, size)
		case 9:
			p.push(base[ssrc]-uint16(372+int(a)), ssrc, size)
		case 10: // restart
			base[ssrc] = binary.BigEndian.Uint16([]byte{a, b})
		case 11: // the same number under the other SSRC
			base[3-ssrc] = base[ssrc] + uint16(int16(int8(a))/16)
		case 12, 13:
			p.now += time.Duration(a) * time.Millisecond
			p.expire()
		case 14:
			p.now += time.Duration(a) * 100 * time.Microsecond
			if b&1 == 0 {
				p.consume()
			}
		case 15:
			if a == 0 {
				p.flush()
			}
			p.consume()
		}
	}
	p.flush()
	p.consume()
}

var modelConfigs = []WindowConfig{
	{},
	{Packets: 32},
	{Packets: 1},
	{Packets: 100, Bytes: 2100, Hold: 10 * time.Millisecond},
	{Collect: 1},
	{Packets: 16, Collect: 64, CollectTime: time.Second},
	{Packets: 4096, Bytes: 3000},
}

func FuzzWindow(f *testing.F) {
	f.Add(byte(0), []byte{0, 15, 0, 4, 2, 0, 0, 15, 0, 12, 60, 0, 10, 7, 7, 0, 15, 0})
	f.Add(byte(1), []byte{0, 3, 0, 5, 255, 0, 5, 8, 0, 5, 3, 0, 15, 0, 0, 8, 200, 0, 8, 201, 0})
	f.Add(byte(3), []byte{0, 15, 7, 4, 1, 7, 0, 3, 7, 128, 15, 0, 0, 1, 0, 128, 15, 0, 13, 20, 0})
	f.Add(byte(5), []byte{0, 15, 0, 9, 250, 0, 0, 15, 0, 10, 0, 0, 0, 15, 0, 0, 15, 0, 0, 15, 0, 0, 15, 0})
	f.Fuzz(func(t *testing.T, config byte, ops []byte) {
		newPair(t, modelConfigs[int(config)%len(modelConfigs)]).play(ops)
	})
}

func TestWindow_model(t *testing.T) {
	random := newRandom(1)
	rounds := 120
	if testing.Short() {
		rounds = 30
	}
	for round := range rounds {
		ops := make([]byte, 3*400)
		random.Read(ops)
		newPair(t, modelConfigs[round%len(modelConfigs)]).play(ops)
	}
}

// Every packet that is pushed is accounted for once.
func TestWindow_accounts(t *testing.T) {
	random := newRandom(2)
	for round := range 50 {
		w := NewWindow(modelConfigs[round%len(modelConfigs)])
		var out [][]byte
		var pushed int64
		now := epoch
		for range 2000 {
			now = now.Add(time.Duration(random.IntN(3)) * time.Millisecond)
			seq, ssrc := uint16(pushed+int64(random.IntN(20))), uint32(1)
			if random.IntN(100) == 0 {
				seq, ssrc = uint16(random.Uint32()), uint32(random.IntN(3))
			}
			out = w.Push(Packet{Seq: seq, SSRC: ssrc, Payload: make([]byte, 8)}, now, out)
			out = w.Expire(now, out)
			pushed++
		}
		s := w.Stats()
		if sum := int64(len(out)) + s.Duplicates + s.Late + s.Foreign + int64(s.Held); sum != pushed {
			t.Errorf("round %d: got %d packets accounted for, want %d: %d out, %+v", round, sum, pushed, len(out), s)
		}
	}
}
