package mpegts

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// clocked writes n packets on the audio PID, each with a PCR given by clock; a
// negative one is none.
func clocked(n int, clock func(i int64) int64) []byte {
	var m mux
	for i := range int64(n) {
		pcr := clock(i)
		if pcr < 0 {
			m.audio()
			continue
		}
		fields := make([]byte, 7)
		fields[0] = pcrBit
		putClock27M(fields[1:], pcr%ClockWrap27M)
		m.packet(testAudio, false, fields, make([]byte, 100))
	}
	return m.out
}

func TestMeasure_files(t *testing.T) {
	every := func(step, from int64) func(int64) int64 {
		return func(i int64) int64 {
			if i%10 != 3 {
				return -1
			}
			return from + i*step
		}
	}
	for _, c := range []struct {
		name string
		file []byte
		want Info
	}{
		{
			"packets before and after the clock", clocked(100, every(1000, 7000)),
			Info{Packets: 100, PCRPID: testAudio, PCRs: 10, FirstPCR: 10_000, LastPCR: 100_000, Duration27M: 100_000},
		},
		{
			"wrap inside", clocked(100, every(1000, ClockWrap27M-50_000)),
			Info{Packets: 100, PCRPID: testAudio, PCRs: 10, FirstPCR: ClockWrap27M - 47_000, LastPCR: 43_000, Duration27M: 100_000},
		},
		{
			"a last packet cut short", append(clocked(100, every(1000, 0)), SyncByte, 1, 2),
			Info{Packets: 100, PCRPID: testAudio, PCRs: 10, FirstPCR: 3000, LastPCR: 93_000, Duration27M: 100_000},
		},
		{
			"clock set back", clocked(100, func(i int64) int64 { return every(1000, 1_000_000*(1-i/50))(i) }),
			Info{Packets: 100, PCRPID: testAudio, PCRs: 10, FirstPCR: 1_003_000, LastPCR: 93_000, Jumps: 1, Duration27M: 100_000},
		},
		{
			"more packets than one block", clocked(2000, every(1000, 0)),
			Info{Packets: 2000, PCRPID: testAudio, PCRs: 200, FirstPCR: 3000, LastPCR: 1_993_000, Duration27M: 2_000_000},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Measure(iotest.HalfReader(bytes.NewReader(c.file)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMeasure_choosesThePIDThatThePMTNames(t *testing.T) {
	var m mux
	clock := func(pid uint16, pcr int64) {
		fields := make([]byte, 7)
		fields[0] = pcrBit
		putClock27M(fields[1:], pcr)
		m.packet(pid, false, fields, nil)
	}
	for i := range int64(10) {
		clock(testAudio, 1000*i)
		clock(testAudio, 1000*i+1)
		clock(testVideo, 5000*i)
	}
	got, err := Measure(bytes.NewReader(m.out))
	if err != nil || got.PCRPID != testAudio {
		t.Errorf("without tables: got PID %d, %v, want %d with the most PCRs", got.PCRPID, err, testAudio)
	}
	m.tables(typeH264) // names the video PID
	got, err = Measure(bytes.NewReader(m.out))
	if err != nil || got.PCRPID != testVideo {
		t.Errorf("with tables: got PID %d, %v, want %d", got.PCRPID, err, testVideo)
	}
}

func TestMeasure_errors(t *testing.T) {
	broken := clocked(5, func(i int64) int64 { return i })
	broken[2*PacketSize] = 0
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":               {nil, "no PCR in 0 packets"},
		"no PCR":              {clocked(20, func(int64) int64 { return -1 }), "no PCR in 20 packets"},
		"one PCR":             {clocked(20, func(i int64) int64 { return -i }), "1 PCRs on PID 650 that do not advance"},
		"clock standing":      {clocked(20, func(int64) int64 { return 5 }), "20 PCRs on PID 650 that do not advance"},
		"not TS":              {broken, "no sync byte at byte 376"},
		"some other contents": {[]byte(strings.Repeat("some text", 100)), "no sync byte at byte 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Measure(bytes.NewReader(c.file))
			if err == nil || !strings.HasPrefix(err.Error(), "mpegts: measure: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error: got %v, want one with %q", err, c.want)
			}
		})
	}
	cause := errors.New("disk on fire")
	if _, err := Measure(iotest.ErrReader(cause)); !errors.Is(err, cause) {
		t.Errorf("error: got %v, want one that wraps %v", err, cause)
	}
}
