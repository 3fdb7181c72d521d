package failover

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
)

// A fake is an upstream that brings what a test puts into it.
type fake struct {
	err     error // of Open
	delay   time.Duration
	waiting [][]byte
	ended   error
	opened  int
	closed  int
	rejoins int
}

func (f *fake) open(ingest.Receiver) (ingest.Source, error) {
	time.Sleep(f.delay)
	if f.err != nil {
		return nil, f.err
	}
	f.opened++
	f.waiting = nil
	return f, nil
}

func (f *fake) Drain(_ time.Time, _ int, sink ingest.Sink) bool {
	if len(f.waiting) > 0 {
		sink.Append(f.waiting)
		f.waiting = nil
	}
	return false
}
func (f *fake) Interval() time.Duration { return 0 }
func (f *fake) Status() ingest.Status   { return ingest.Status{Payload: "mp2t-direct"} }
func (f *fake) Seen() string            { return "nothing received" }
func (f *fake) Rejoin()                 { f.rejoins++ }
func (f *fake) Close() error            { f.closed++; return nil }
func (f *fake) Ended() error            { return f.ended }
func (f *fake) Private() bool           { return false }
func (f *fake) Waits() bool             { return false }

// A bench is a channel with fakes as its upstreams, driven in virtual time.
type bench struct {
	t     *testing.T
	fakes []*fake
	*Source
	sw  *Switch
	got []byte // first byte of payload of each packet
}

func (b *bench) Append(ts [][]byte) {
	for _, p := range ts {
		b.got = append(b.got, p[4])
	}
}

// run runs f with a channel that has these upstreams and a Patience of 1 s.
func run(t *testing.T, fakes []*fake, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, fakes: fakes, sw: new(Switch)}
		var ups []Upstream
		for i, f := range fakes {
			ups = append(ups, Upstream{Name: "u" + string(rune('1'+i)), Open: f.open})
		}
		var err error
		if b.Source, err = Open(nil, ups, Config{Switch: b.sw}); err != nil {
			t.Fatal(err)
		}
		f(b)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // whatever is still being opened
		synctest.Wait()
		for i, f := range fakes {
			if f.opened != f.closed {
				t.Errorf("upstream %d: got %d times opened and %d closed", i+1, f.opened, f.closed)
			}
		}
	})
}

// pass lets d go by, in ticks of 10 ms, while the upstreams of feeding bring a
// packet in each.
func (b *bench) pass(d time.Duration, feeding ...int) {
	for range d / (10 * time.Millisecond) {
		for _, i := range feeding {
			p := make([]byte, 188)
			p[0], p[4] = 0x47, byte('1'+i)
			b.fakes[i].waiting = append(b.fakes[i].waiting, p)
		}
		b.Drain(time.Now(), 256, b)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
}

// take returns which upstreams what came since the last take was from.
func (b *bench) take() string {
	var out []byte
	for _, c := range b.got {
		if len(out) == 0 || out[len(out)-1] != c {
			out = append(out, c)
		}
	}
	b.got = nil
	return string(out)
}

func (b *bench) want(what, order string, active int) {
	b.t.Helper()
	if got := b.take(); got != order || b.sw.Active() != active {
		b.t.Errorf("%s: got packets of %q, active %d, want %q, %d", what, got, b.sw.Active(), order, active)
	}
}

func TestSource_firstPlays(t *testing.T) {
	run(t, []*fake{{}, {}}, func(b *bench) {
		b.pass(3*time.Second, 0)
		b.want("all well", "1", 0)
		if b.fakes[1].opened != 0 {
			t.Error("got the second opened, want it left alone")
		}
	})
}

func TestSource_silence(t *testing.T) {
	run(t, []*fake{{}, {}, {}}, func(b *bench) {
		b.pass(2*time.Second, 0)
		b.want("before", "1", 0)
		b.pass(900 * time.Millisecond)
		if b.fakes[1].opened != 0 {
			t.Error("got the second opened within the patience")
		}
		b.pass(300 * time.Millisecond)
		b.pass(2*time.Second, 1)
		b.want("after", "2", 1)
		if b.fakes[0].closed != 1 || b.fakes[2].opened != 0 {
			t.Errorf("got the first closed %d times, the third opened %d times, want 1, 0", b.fakes[0].closed, b.fakes[2].opened)
		}
		if got := b.Status(); got.Source != "u2" || !strings.Contains(strings.Join(got.Warnings, "\n"), "source 2 of 3 plays") {
			t.Errorf("status: got %q, warnings %q", got.Source, got.Warnings)
		}
	})
}

func TestSource_comesBackWhileTheNextIsTried(t *testing.T) {
	run(t, []*fake{{}, {}}, func(b *bench) {
		b.pass(time.Second, 0)
		b.pass(1200 * time.Millisecond)
		b.pass(time.Second, 0)
		b.want("a pause", "1", 0)
		if f := b.fakes[1]; f.opened != 1 || f.closed != 1 {
			t.Errorf("the second: got %d times opened, %d closed, want 1, 1", f.opened, f.closed)
		}
	})
}

func TestSource_deadOnes(t *testing.T) {
	run(t, []*fake{{err: errors.New("refused")}, {}, {}}, func(b *bench) {
		b.pass(1300*time.Millisecond, 2) // the second is silent
		b.want("two dead", "3", 2)
	})
}

func TestSource_slowToOpen(t *testing.T) {
	run(t, []*fake{{delay: 3 * time.Second}, {}}, func(b *bench) {
		b.pass(2*time.Second, 1)
		b.want("the first is slow", "2", 1)
	})
}

func TestSource_ends(t *testing.T) {
	run(t, []*fake{{}, {}}, func(b *bench) {
		b.pass(time.Second, 0)
		b.fakes[0].ended = io.EOF
		b.pass(50*time.Millisecond, 1)
		b.want("at once", "12", 1)
	})
}

func TestSource_aloneIsOpenedAgain(t *testing.T) {
	run(t, []*fake{{}}, func(b *bench) {
		b.pass(2*time.Second, 0)
		b.fakes[0].ended = io.EOF
		b.pass(10 * time.Millisecond)
		b.fakes[0].ended = nil
		b.pass(time.Second, 0)
		b.want("again", "1", 0)
		if b.fakes[0].opened != 2 {
			t.Errorf("got %d times opened, want 2", b.fakes[0].opened)
		}
	})
}

func TestSource_goesBackWhenTold(t *testing.T) {
	run(t, []*fake{{}, {}}, func(b *bench) {
		b.pass(time.Second, 0)
		b.pass(1100*time.Millisecond, 1)
		b.pass(5*time.Second, 1)
		b.want("over", "12", 1)
		b.pass(5*time.Second, 0, 1)
		b.want("not by itself", "2", 1)
		b.sw.To(0)
		b.pass(500 * time.Millisecond)
		b.pass(time.Second, 1)
		b.want("not before it brings data", "2", 1)
		b.pass(time.Second, 0, 1)
		b.want("told", "21", 0)
	})
}

func TestSource_noneCanBeOpened(t *testing.T) {
	run(t, []*fake{{err: errors.New("refused")}, {err: errors.New("no such host")}}, func(b *bench) {
		b.pass(100 * time.Millisecond)
		want := "source 1, u1: refused; source 2, u2: no such host"
		if err := b.Ended(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestSource_seen(t *testing.T) {
	run(t, []*fake{{}, {delay: 10 * time.Second}, {}}, func(b *bench) {
		b.pass(1200 * time.Millisecond)
		if want, got := "source 1, u1: nothing received; source 2, u2: no answer yet; source 3, u3: not tried", b.Seen(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.Rejoin()
		if b.fakes[0].rejoins != 1 {
			t.Errorf("got %d rejoins, want 1", b.fakes[0].rejoins)
		}
	})
}

func TestSource_suite(t *testing.T) {
	ingesttest.TestSource(t, func(t *testing.T) (ingest.Source, func([]byte)) {
		r := ingesttest.NewReceiver()
		spec := ingest.FlowSpec{Group: netip.MustParseAddrPort("239.1.1.1:5000")}
		s, err := Open(r, []Upstream{{Name: spec.String(), Open: func(r ingest.Receiver) (ingest.Source, error) {
			return ingest.OpenMulticast(r, spec)
		}}}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(5 * time.Second); len(r.Joined()) == 0; time.Sleep(time.Millisecond) {
			s.Drain(time.Now(), 1, &ingesttest.Sink{T: t})
			if time.Now().After(deadline) {
				t.Fatal("not joined within 5 s")
			}
		}
		return s, func(ts []byte) { r.Send(spec.String(), ts) }
	})
}
