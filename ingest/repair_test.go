package ingest_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"zapcast/fec"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
	"zapcast/internal/captures"
)

const parityPort = "239.1.1.1:5002"

// openRepaired is openGroup with parity on the next port but one.
func openRepaired(t *testing.T) *stand {
	s := openGroup(t)
	s.Repair(s.receiver, ingest.RepairConfig{Parity: []netip.AddrPort{netip.AddrPortFrom(netip.Addr{}, 5002)}})
	return s
}

// An emission is a stream of n packets with parity behind them, as one list of
// datagrams in the order of sending.
type emission struct {
	media  map[uint16][]byte // TS by number
	sent   []datagram
	encode interface{ Add([]byte) []fec.Parity }
}

type datagram struct {
	parity bool
	seq    uint16
	bytes  []byte
}

func emit(t *testing.T, encode interface{ Add([]byte) []fec.Parity }, from uint16, n int) *emission {
	t.Helper()
	e := &emission{media: map[uint16][]byte{}, encode: encode}
	for i := range n {
		seq := from + uint16(i)
		ts := ingesttest.TS(uint32(i), 7)
		e.media[seq] = ts
		b := ingesttest.Datagram(seq, 1, ts)
		e.sent = append(e.sent, datagram{seq: seq, bytes: b})
		for _, p := range encode.Add(b) {
			e.sent = append(e.sent, datagram{parity: true, bytes: bytes.Clone(p.Datagram)})
		}
	}
	return e
}

// want is the TS of the numbers from begin up to but not including end, without
// those that are lost.
func (e *emission) want(begin, end uint16, lost map[uint16]bool) (ts []byte) {
	for seq := begin; seq != end; seq++ {
		if !lost[seq] {
			ts = append(ts, e.media[seq]...)
		}
	}
	return ts
}

// play sends an emission at a datagram a millisecond, without what is lost, and
// drains each 5 ms; parity goes to the address given. It ends with a second of
// silence.
func (s *stand) play(e *emission, lost map[uint16]bool, parity string) {
	for i, d := range e.sent {
		switch {
		case d.parity:
			s.receiver.Send(parity, d.bytes)
		case !lost[d.seq]:
			s.receiver.Send(group, d.bytes)
		}
		if i%5 == 4 {
			s.tick()
		}
	}
	for range 200 {
		s.tick()
	}
}

func (s *stand) compare(t *testing.T, want []byte) {
	t.Helper()
	if !bytes.Equal(s.sink.Bytes, want) {
		t.Errorf("got %d bytes, want %d; the first that differs is in packet %d", len(s.sink.Bytes), len(want), differ(s.sink.Bytes, want)/188/7)
	}
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func reedSolomon(t *testing.T, k, m int, dialect fec.Dialect) *fec.RSEncoder {
	t.Helper()
	e, err := fec.NewRSEncoder(k, m, dialect)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func matrix(t *testing.T, l, d int) *fec.XOREncoder {
	t.Helper()
	e, err := fec.NewXOREncoder(l, d, true)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestRepair_everyLossWithinTheCode(t *testing.T) {
	for name, in := range map[string]string{"own port": parityPort, "in band": group} {
		for _, dialect := range []fec.Dialect{fec.Integer, fec.Alpha} {
			t.Run(name+" "+dialect.String(), func(t *testing.T) {
				s := openRepaired(t)
				random := rand.New(rand.NewPCG(1, uint64(dialect)))
				e := emit(t, reedSolomon(t, 50, 4, dialect), 65000, 1000)
				lost := map[uint16]bool{}
				for g := range 20 {
					for _, place := range random.Perm(50)[:4] {
						if at := g*50 + place; at > 60 { // the first numbers begin the stream and in-band parity
							lost[65000+uint16(at)] = true
						}
					}
				}
				s.play(e, lost, in)
				s.compare(t, e.want(65000, 66000-65536, nil))
				status := s.Status()
				if l := status.Losses; l.ReedSolomon != int64(len(lost)) || l.Lost != 0 || l.Late != 0 || l.MaxWait > 80*time.Millisecond {
					t.Errorf("losses %+v, want %d repaired", l, len(lost))
				}
				if r := status.Repair; r == nil || r.Useless || r.Code != "Reed-Solomon 50+4 ("+dialect.String()+")" || len(status.Warnings) > 0 {
					t.Errorf("repair %+v, warnings %q", r, status.Warnings)
				}
			})
		}
	}
}

func TestRepair_rowsAndColumns(t *testing.T) {
	s := openRepaired(t)
	random := rand.New(rand.NewPCG(2, 2))
	e := emit(t, matrix(t, 10, 10), 100, 1000)
	lost := map[uint16]bool{}
	for g := range 9 {
		begin := uint16(100 + 100*g)
		if g%2 == 1 { // a burst as long as a row
			start := begin + uint16(random.IntN(80))
			for i := range uint16(10) {
				lost[start+i] = true
			}
		} else if g > 0 {
			for range 3 {
				lost[begin+uint16(random.IntN(100))] = true
			}
		}
	}
	s.play(e, lost, parityPort)
	s.compare(t, e.want(100, 1100, nil))
	l := s.Status().Losses
	if l.Row == 0 || l.Column == 0 || l.Lost != 0 {
		t.Errorf("losses %+v", l)
	}
}

// More is lost than the code can repair: the gap is that and nothing else, and
// the stream does not wait longer than the group's parity takes.
func TestRepair_beyondTheCode(t *testing.T) {
	s := openRepaired(t)
	e := emit(t, reedSolomon(t, 50, 4, fec.Integer), 0, 1000)
	lost := map[uint16]bool{}
	for i := range uint16(5) {
		lost[510+3*i] = true
	}
	s.play(e, lost, parityPort)
	s.compare(t, e.want(0, 1000, lost))
	if l := s.Status().Losses; l.Lost != 5 || l.ReedSolomon != 0 || len(l.Bursts) != 1 || l.Bursts[0].Count != 5 || len(l.Minutes) != 1 {
		t.Errorf("losses %+v", l)
	}
}

// A viewer who comes in the middle of a group gets each byte once, in order,
// whatever parity of that group brings back; and so does one who watches while
// in-band parity appears.
func TestRepair_joinInTheMiddleOfAGroup(t *testing.T) {
	for _, in := range []string{parityPort, group} {
		for _, joins := range []int{1, 2, 25, 47, 49} {
			s := openRepaired(t)
			e := emit(t, reedSolomon(t, 50, 4, fec.Integer), 65530, 300)
			first := 65530 + uint16(joins)
			e.sent = e.sent[joins:]
			lost := map[uint16]bool{first + 52: true, first + 150: true}
			s.play(e, lost, in)
			want := e.want(first, 65530+300-65536, nil)
			if got := s.sink.Bytes; len(got) > len(want) { // parity brought back what came just before
				t.Errorf("joined at %d: %d bytes too many", joins, len(got)-len(want))
			}
			s.compare(t, want)
		}
	}
}

// Parity that comes after its hole was given up is counted and not sent.
func TestRepair_late(t *testing.T) {
	s := openGroup(t)
	s.Repair(s.receiver, ingest.RepairConfig{
		Parity:  []netip.AddrPort{netip.AddrPortFrom(netip.Addr{}, 5002)},
		Latency: 60 * time.Millisecond,
	})
	e := emit(t, reedSolomon(t, 100, 5, fec.Integer), 0, 400)
	lost := map[uint16]bool{210: true} // 90 ms before the group ends
	s.play(e, lost, parityPort)
	s.compare(t, e.want(0, 400, lost))
	if l := s.Status().Losses; l.Late != 1 || l.Lost != 1 || l.ReedSolomon != 0 {
		t.Errorf("losses %+v, want one late", l)
	}
}

// Without loss nothing waits, with FEC configured or not.
func TestRepair_withoutLossNothingWaits(t *testing.T) {
	s := openRepaired(t)
	e := emit(t, reedSolomon(t, 50, 4, fec.Integer), 0, 500)
	for _, d := range e.sent {
		if d.parity {
			s.receiver.Send(parityPort, d.bytes)
			continue
		}
		s.receiver.Send(group, d.bytes)
		s.tick()
		if d.seq > 10 && len(s.sink.Bytes) != (int(d.seq)+1)*7*188 {
			t.Fatalf("after %d: %d bytes out", d.seq, len(s.sink.Bytes))
		}
	}
}

// Without a repair a hole waits as long as it did, and in-band parity that stays
// away is not waited for.
func TestRepair_noneNoWait(t *testing.T) {
	s := openGroup(t)
	s.send(ingesttest.Datagram(0, 1, ingesttest.TS(0, 7)), ingesttest.Datagram(1, 1, ingesttest.TS(1, 7)))
	for range 10 {
		s.tick()
	}
	s.send(ingesttest.Datagram(3, 1, ingesttest.TS(3, 7)))
	for range 11 { // it came with the first of these
		s.tick()
	}
	if len(s.sink.Bytes) != 3*7*188 {
		t.Errorf("%d bytes out after 50 ms, want 3 packets", len(s.sink.Bytes))
	}
}

func TestRepair_saysWhyItIsOfNoUse(t *testing.T) {
	for name, c := range map[string]struct {
		parity func(i int) []byte
		refuse error
		want   string
	}{
		"no sender":  {want: "nothing arrives on port 5002"},
		"bind fails": {refuse: errors.New("address in use"), want: "port 5002 could not be joined for FEC"},
		"wrong port": {parity: func(i int) []byte { return ingesttest.Datagram(uint16(i), 9, ingesttest.TS(1, 7)) }, want: "carries another stream and no FEC"},
		"geometry": {parity: func(int) []byte {
			b := ingesttest.Datagram(0, 1, make([]byte, 100))
			b[1] = fec.RSPayloadType
			return b
		}, want: "geometry that cannot be used"},
		"another stream's": {parity: func(i int) []byte {
			h := []byte{0x80, 127, 0, byte(i), 0, 0, 0, 0, 0, 0, 0, 1}
			h = append(h, 0x70, 0x00, 0x70, 0x63, 5, 0, 0, 200, 0, 200, 0, 0)
			return append(h, make([]byte, 200)...)
		}, want: "belongs to another stream"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openGroup(t)
			if c.refuse != nil {
				s.receiver.Refuse(parityPort, c.refuse)
			}
			s.Repair(s.receiver, ingest.RepairConfig{Parity: []netip.AddrPort{netip.AddrPortFrom(netip.Addr{}, 5002)}})
			for i := range 800 {
				s.send(ingesttest.Datagram(uint16(i), 1, ingesttest.TS(uint32(i), 7)))
				if c.parity != nil {
					s.receiver.Send(parityPort, c.parity(i))
				}
				s.tick()
			}
			status := s.Status()
			if r := status.Repair; r == nil || !r.Useless || !strings.Contains(r.State, c.want) {
				t.Errorf("repair %+v, want %q in the state", r, c.want)
			}
			if len(status.Warnings) != 1 || status.Lost > 0 || len(s.sink.Bytes) != 800*7*188 {
				t.Errorf("warnings %q, %d lost, %d bytes", status.Warnings, status.Lost, len(s.sink.Bytes))
			}
		})
	}
}

// What a channel's parity was found to speak is known to its next viewer.
func TestRepair_remembersTheDialect(t *testing.T) {
	memory := &ingest.RepairMemory{}
	for range 2 {
		receiver := ingesttest.NewReceiver()
		m, err := ingest.OpenMulticast(receiver, ingest.FlowSpec{Group: netip.MustParseAddrPort(group)})
		if err != nil {
			t.Fatal(err)
		}
		m.Repair(receiver, ingest.RepairConfig{Memory: memory})
		s := &stand{Multicast: m, t: t, receiver: receiver, sink: ingesttest.Sink{T: t}, now: epoch}
		s.play(emit(t, reedSolomon(t, 20, 2, fec.Alpha), 0, 60), nil, group)
		if got := s.Status().Repair.Code; got != "Reed-Solomon 20+2 (alpha)" {
			t.Errorf("code %q", got)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The captured channel, through the whole source: of each group up to m
// datagrams are dropped, and every byte comes out; more, and the gap is that.
func TestRepair_capture(t *testing.T) {
	list := captures.Load(t, captures.ReedSolomon)
	play := func(lost map[uint16]bool) (*stand, []byte) {
		s := openRepaired(t)
		var want []byte
		for i, d := range list {
			if d.To.Port() == 4055 {
				s.receiver.Send(parityPort, d.Payload)
			} else {
				if seq := binary.BigEndian.Uint16(d.Payload[2:]); !lost[seq] {
					s.receiver.Send(group, d.Payload)
				}
				want = append(want, d.Payload[12:]...)
			}
			if i%4 == 3 { // 5 ms
				s.tick()
			}
		}
		for range 200 {
			s.tick()
		}
		return s, want
	}
	random := rand.New(rand.NewPCG(7, 7))
	for n := 1; n <= 5; n++ {
		lost := map[uint16]bool{}
		for begin := uint16(28377); begin < 29377; begin += 100 {
			for _, place := range random.Perm(100)[:n] {
				lost[begin+uint16(place)] = true
			}
		}
		s, want := play(lost)
		s.compare(t, want)
		if l := s.Status().Losses; l.ReedSolomon != int64(10*n) || l.Lost != 0 {
			t.Errorf("%d of each group: %+v", n, l)
		}
	}
	lost := map[uint16]bool{}
	for i := range uint16(6) {
		lost[28677+9*i] = true
	}
	s, want := play(lost)
	if got := len(want) - len(s.sink.Bytes); got != 6*7*188 {
		t.Errorf("six of one group: %d bytes are missing, want those of 6 packets", got)
	}
	if l := s.Status().Losses; l.Lost != 6 || l.ReedSolomon != 0 {
		t.Errorf("six of one group: %+v", l)
	}
}

// Media that come while parity is read are not lost: nothing is repaired.
func TestRepair_mediaBesideParity(t *testing.T) {
	e := emit(t, reedSolomon(t, 10, 2, fec.Integer), 0, 100)
	r := &slowReceiver{Receiver: ingesttest.NewReceiver()}
	spec := ingest.FlowSpec{Group: netip.MustParseAddrPort(group)}
	m, err := ingest.OpenMulticast(r, spec)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Repair(r, ingest.RepairConfig{Parity: []netip.AddrPort{netip.AddrPortFrom(netip.Addr{}, 5002)}})
	sink := &ingesttest.Sink{T: t}
	now := time.Now()
	next := 0
	send := func(end int) {
		for ; next < end; next++ {
			to := group
			if e.sent[next].parity {
				to = parityPort
			}
			r.Send(to, e.sent[next].bytes)
		}
	}
	r.before = func() { send(min(next+6, len(e.sent))) } // of ten and two: often the last media and their parity
	for range 200 {
		now = now.Add(5 * time.Millisecond)
		for m.Drain(now, 256, sink) {
		}
	}
	if want := e.want(0, 100, nil); next != len(e.sent) || !bytes.Equal(sink.Bytes, want) {
		t.Errorf("sent %d of %d, got %d bytes, want %d", next, len(e.sent), len(sink.Bytes), len(want))
	}
	if s := m.Status(); s.Losses.ReedSolomon > 0 || s.Duplicates > 0 || s.Lost > 0 {
		t.Errorf("got %d repaired, %d duplicates, %d lost, want none", s.Losses.ReedSolomon, s.Duplicates, s.Lost)
	}
}

// A slowReceiver has something arrive before each reading of parity.
type slowReceiver struct {
	*ingesttest.Receiver
	before func()
}

func (r *slowReceiver) Open(spec ingest.FlowSpec) (ingest.Flow, error) {
	f, err := r.Receiver.Open(spec)
	if err == nil && spec.Group.Port() == 5002 {
		f = &slowFlow{f, r}
	}
	return f, err
}

type slowFlow struct {
	ingest.Flow
	receiver *slowReceiver
}

func (f *slowFlow) Read(limit int) ([][]byte, bool) {
	f.receiver.before()
	return f.Flow.Read(limit)
}
