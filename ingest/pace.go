package ingest

import "time"

const (
	// minInterval: below it a tick costs more than it brings, and a buffer that
	// would need it is too small for its stream whatever is done.
	minInterval = time.Millisecond
	// maxInterval keeps a slow stream's figure sensible.
	maxInterval = time.Second
	// A quarter of a queue may fill between two ticks, a third of a ring: it is
	// dearer to read more often, and its frames are all of one size.
	queueParts = 4
	ringParts  = 3
	// paceWindow is what the mean rate is taken over: several bursts of a
	// sender that sends in bursts.
	paceWindow = 100 * time.Millisecond
	// paceDecay is the shift by which peaks shrink per window: half of a peak
	// is forgotten in 9 s.
	paceDecay = 7
)

// A pace judges how often a queue must be emptied. It sees the stream as a
// token bucket does: a mean rate, and bursts above it. Whatever the interval t,
// the queue holds at most burst + rate·t, so a stream in bursts does not drive
// the interval towards zero as its momentary rate would. Units are what the
// queue is bounded in: bytes of kernel memory, or slots.
type pace struct {
	room int64 // what the queue holds

	tickAt   time.Time
	sinceUs  int64 // between the last two ticks
	tick     int64 // taken in this tick so far
	windowAt time.Time
	window   int64 // taken in this window so far
	rate     int64 // per second, peak of the windows' means
	burst    int64 // peak of what a tick took above the mean rate
}

// take notes what was taken from the queue in the tick that began at now.
func (p *pace) take(now time.Time, units int64) {
	if p.windowAt.IsZero() {
		p.windowAt, p.tickAt = now, now
	}
	if now != p.tickAt {
		p.turn(now)
	}
	p.tick += units
	p.window += units
	p.burst = max(p.burst, p.tick-p.rate*p.sinceUs/1e6)
}

func (p *pace) turn(now time.Time) {
	p.sinceUs = min(now.Sub(p.tickAt), maxInterval).Microseconds()
	p.tickAt = now
	p.tick = 0
	if spent := now.Sub(p.windowAt); spent >= paceWindow {
		if p.rate == 0 {
			p.burst = 0 // there was no mean to measure it by, and old datagrams were in it
		}
		p.rate = max(p.window*1000/spent.Milliseconds(), p.rate-p.rate>>paceDecay)
		p.burst -= p.burst >> paceDecay
		p.window = 0
		p.windowAt = now
	}
}

// overflowed says that the estimate was wrong: the queue is to be emptied as
// often as possible until that is forgotten.
func (p *pace) overflowed() { p.burst = max(p.burst, p.room) }

// interval is the time in which one of the parts of the queue fills, or less
// where a burst beside it would take more than two: the rest is for a loop that
// comes late. Zero when nothing has come in yet.
func (p *pace) interval(parts int64) time.Duration {
	if p.burst == 0 && p.rate == 0 {
		return 0
	}
	free := min(p.room/parts, p.room*2/parts-p.burst)
	if free <= 0 || p.rate == 0 {
		return minInterval
	}
	return max(minInterval, min(maxInterval, time.Duration(free*1e6/p.rate)*time.Microsecond))
}

// slack is how long the queue takes to fill at the mean rate; ok is false while
// there is none.
func (p *pace) slack() (d time.Duration, ok bool) {
	if p.rate == 0 {
		return 0, false
	}
	return time.Duration(p.room*1e6/p.rate) * time.Microsecond, true
}

// relearn forgets the rate: what made it up is gone. The queue is to be emptied
// as often as possible until there is a new one.
func (p *pace) relearn() { *p = pace{room: p.room, burst: p.room} }
