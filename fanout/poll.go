package fanout

import "time"

// An event is what happened to a viewer's socket.
type event struct {
	fd  int32
	in  bool // he sent something
	out bool // it takes data again
	hup bool // the connection ended
}

// A poller is where a loop waits.
type poller interface {
	// wait returns at the deadline, or sooner: with what happened to sockets, or
	// because of wake. The zero deadline never comes; one in the past polls. The
	// events are valid until the next wait.
	wait(deadline time.Time) []event
	// wake ends a wait, now or the next one. Any goroutine may call it.
	wake()
	// add watches a connection until its descriptor is closed: for what comes, if
	// in is true, and for room.
	add(c *fdConn, in bool) error
	close()
}

// plainPoller waits for wake and for time only.
type plainPoller struct {
	woken chan struct{}
	timer *time.Timer
}

func newPlainPoller() *plainPoller {
	p := &plainPoller{woken: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	p.timer.Stop()
	return p
}

func (p *plainPoller) wait(deadline time.Time) []event {
	if deadline.IsZero() {
		<-p.woken
		return nil
	}
	p.timer.Reset(max(time.Until(deadline), 0))
	select {
	case <-p.woken:
		p.timer.Stop()
	case <-p.timer.C:
	}
	return nil
}

func (p *plainPoller) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

func (p *plainPoller) add(*fdConn, bool) error { return nil }
func (p *plainPoller) close()                  { p.timer.Stop() }
