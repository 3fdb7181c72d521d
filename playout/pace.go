package playout

import (
	"context"
	"time"
)

const (
	// minSleep is the shortest sleep between two sendings. What is due within
	// it goes out together, so that a fast stream does not wake the processor
	// for each datagram.
	minSleep = time.Millisecond

	// After a stall the stream's next catchUp goes out in each catchUp/2: twice
	// as fast as usual, not in one burst that overflows who receives it.
	catchUp = 10 * time.Millisecond

	// maxLag is how late the stream may be and still be caught up with. After
	// a longer stall it goes on from where it was.
	maxLag = 5 * time.Second
)

// pace tells how much of the stream is to be sent by now.
//
// Its zero is a moment of the monotonic clock, and every time is counted from
// there: a sleep that takes too long makes the next one shorter, and hours add
// up to no drift.
type pace struct {
	zero     time.Time
	position time.Duration // what is due up to here may be sent
	skipped  time.Duration // stalls not caught up with, in all
	timer    *time.Timer
}

// newPace begins now.
func newPace() *pace {
	return &pace{zero: time.Now(), timer: time.NewTimer(0)}
}

// wait sleeps until what is due at the given time, which is later than the
// position, may be sent, and moves the position there or beyond.
func (p *pace) wait(ctx context.Context, due time.Duration) error {
	now := time.Since(p.zero)
	if lag := now - due; lag > maxLag {
		p.zero = p.zero.Add(lag)
		p.skipped += lag
		now = due
	}
	sleep := max(minSleep, due-now)
	if now > p.position+catchUp && now > due {
		sleep = catchUp / 2
	}
	p.timer.Reset(sleep)
	select {
	case <-p.timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.position = max(due, min(time.Since(p.zero), p.position+catchUp))
	return nil
}
