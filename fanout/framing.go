package fanout

import "time"

// A Framing cuts a channel's stream into frames, for viewers who do not take
// bare TS. Frame n holds the stream's payload bytes from n*payload on, behind a
// header; so a frame is the same for everybody who gets it, and viewers whose
// framings are equal (==) share it. A framing must be a comparable value.
type Framing interface {
	// Sizes returns the bytes of a header, and the bytes of TS behind it: whole
	// packets.
	Sizes() (header, payload int)
	// Header writes the header of frame n to dst, which is as long as a header.
	// The frame carries size bytes, at most payload, which came at the time at.
	// It must not keep dst or allocate.
	Header(dst []byte, n int64, size int, at time.Time)
}

// A Control is who speaks with a viewer while he is sent a stream. Its methods
// are called by the loop: they must not block.
type Control interface {
	// Begin is called when the viewer's stream starts, and each time that it
	// starts again after a pause. The number of his first frame is first, and it
	// came at the time at. Begin returns what he is sent before it.
	Begin(feed *Feed, first int64, at time.Time) []byte
	// Receive takes what the viewer sent. It must not keep b.
	Receive(b []byte)
	// Tick is called once a second, with the frames and the bytes of TS that he
	// has been sent.
	Tick(now time.Time, frames, bytes int64)
}

// A Feed is the handle of a viewer who has a Control. Its methods may be called
// from any goroutine, and take effect in the order of the calls.
type Feed struct {
	loop   *loop
	viewer *viewer
}

// Send sends b, which must not be changed any more, between two frames.
func (f *Feed) Send(b []byte) {
	f.post(func(v *viewer) { f.loop.say(v, b) })
}

// Pause stops the stream after the frame that is under way. The viewer keeps his
// channel open, and nothing of it unless it is his own.
func (f *Feed) Pause() {
	f.post(func(v *viewer) { v.ch.pause(v) })
}

// Resume lets the stream go on as it would start, at the newest random-access
// point that was not sent yet; one that is the viewer's own, where it stopped.
func (f *Feed) Resume() {
	f.post(func(v *viewer) { v.ch.resume(v) })
}

// Close ends the viewer once he was sent what Send was given before.
func (f *Feed) Close(reason string) {
	f.post(func(v *viewer) {
		v.ch.pause(v)
		v.ending = reason
		f.loop.pump(v)
	})
}

func (f *Feed) post(do func(*viewer)) {
	f.loop.post(func() {
		if !f.viewer.gone {
			do(f.viewer)
		}
	})
}

// say sends b to v behind the frame that is under way.
func (l *loop) say(v *viewer, b []byte) {
	if len(v.prefix)+len(b) > maxSay {
		l.drop(v, "he asks and does not read the answers")
		return
	}
	v.finish()
	v.prefix = append(v.prefix, b...)
	if !v.blocked && !v.queued {
		l.pump(v)
	}
}

// maxSay bounds what waits for a viewer outside of the stream.
const maxSay = 64 << 10

// pause lets v hold on to nothing of the stream.
func (c *channel) pause(v *viewer) {
	v.finish()
	if v.parked {
		v.parked = false
		c.parked--
	}
	v.paused = true
}

// resume ends a pause.
func (c *channel) resume(v *viewer) {
	if !v.paused || v.ending != "" {
		return
	}
	v.paused, v.announce = false, true
	if c.private {
		v.entering = true
	} else {
		c.reenter(v, v.pos-1)
	}
	c.loop.pump(v)
}
