package ingest

import (
	"testing"
	"time"
)

func TestPace_nothingSeen(t *testing.T) {
	p := pace{room: 212992}
	if got := p.interval(queueParts); got != 0 {
		t.Errorf("before a read: got %s, want 0", got)
	}
	p.take(time.Unix(1, 0), 0)
	if got := p.interval(queueParts); got != 0 {
		t.Errorf("after an empty read: got %s, want 0", got)
	}
	p.take(time.Unix(1, 0), 1)
	if got := p.interval(queueParts); got != minInterval {
		t.Errorf("before a mean is known: got %s, want %s", got, minInterval)
	}
}

// A queue of the given room is filled by a sender in bursts and emptied at the
// intervals that the pace gives, by a loop that comes late now and then.
func TestPace_queueNeverOverflows(t *testing.T) {
	const cost = 2304 // of a datagram of 1316 bytes
	tests := map[string]struct {
		room      int64
		perSecond float64 // datagrams
		burst     int
		cap       time.Duration // the loop's longest tick
		late      time.Duration // every eighth tick is that much later
		least     time.Duration // what the interval must reach in the end
		most      time.Duration
	}{
		"usual default, 40 Mbit/s, bursts of 64":   {212992, 3800, 64, 16 * time.Millisecond, 5 * time.Millisecond, minInterval, 5 * time.Millisecond},
		"usual maximum, 40 Mbit/s, bursts of 64":   {425984, 3800, 64, 16 * time.Millisecond, 10 * time.Millisecond, 5 * time.Millisecond, 13 * time.Millisecond},
		"usual maximum, 40 Mbit/s, evenly":         {425984, 3800, 1, 16 * time.Millisecond, 20 * time.Millisecond, 10 * time.Millisecond, 13 * time.Millisecond},
		"what is asked, 40 Mbit/s, bursts of 64":   {8 << 20, 3800, 64, 16 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond},
		"what is asked, 400 Mbit/s, bursts of 256": {8 << 20, 38000, 256, 16 * time.Millisecond, 20 * time.Millisecond, 16 * time.Millisecond, 30 * time.Millisecond},
		"radio": {425984, 30, 1, 16 * time.Millisecond, 20 * time.Millisecond, 500 * time.Millisecond, maxInterval},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := pace{room: tt.room}
			start := time.Unix(1, 0)
			now := start
			var sent, read, most int64
			between := time.Duration(float64(tt.burst) / tt.perSecond * float64(time.Second))
			for tick := 0; now.Sub(start) < 20*time.Second; tick++ {
				sent = int64(now.Sub(start)/between+1) * int64(tt.burst)
				most = max(most, (sent-read)*cost)
				for read < sent { // as Read takes it, in calls
					n := min(128, sent-read)
					p.take(now, n*cost)
					read += n
				}
				pause := min(tt.cap, max(minInterval, p.interval(queueParts)))
				if tick%8 == 7 {
					pause += tt.late
				}
				now = now.Add(pause)
			}
			if most > tt.room {
				t.Errorf("the queue held %d of %d", most, tt.room)
			}
			if got := p.interval(queueParts); got < tt.least || got > tt.most {
				t.Errorf("interval in the end: got %s, want %s to %s", got, tt.least, tt.most)
			}
		})
	}
}

func TestPace_overflowIsForgotten(t *testing.T) {
	p := pace{room: 425984}
	now := time.Unix(1, 0)
	run := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); now = now.Add(10 * time.Millisecond) {
			p.take(now, 10*2304)
		}
	}
	run(time.Second)
	before := p.interval(queueParts)
	p.overflowed()
	if got := p.interval(queueParts); got != minInterval {
		t.Errorf("after an overflow: got %s, want %s", got, minInterval)
	}
	run(time.Minute)
	if got := p.interval(queueParts); got != before {
		t.Errorf("a minute later: got %s, want %s as before", got, before)
	}
}

func TestPace_clockThatDoesNotMove(t *testing.T) {
	p := pace{room: 1 << 20}
	for _, now := range []time.Time{{}, {}, time.Unix(5, 0), time.Unix(4, 0), time.Unix(1e6, 0)} {
		p.take(now, 2304)
		if got := p.interval(queueParts); got < 0 {
			t.Errorf("at %v: got %s", now, got)
		}
	}
}
