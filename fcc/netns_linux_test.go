package fcc

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zapcast/fcc/server"
	"zapcast/ingest"
	"zapcast/ingest/ingesttest"
	"zapcast/internal/nettest"
	"zapcast/mpegts"
)

// The far end of the line: a channel on the air and a real server for it.
const (
	farEnv    = "ZAPCAST_TEST_FCC_RATE" // payloads a second; set: this process is the far end
	longEnv   = "ZAPCAST_TEST_LONG"     // set: 200 zaps for each dialect
	roundTrip = 20 * time.Millisecond
)

var (
	farGroup  = netip.MustParseAddrPort("239.1.1.1:5000")
	farServer = netip.MustParseAddrPort("192.0.2.2:8027")
)

func TestMain(m *testing.M) {
	if rate, err := strconv.Atoi(os.Getenv(farEnv)); err == nil {
		if err := farEnd(rate); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// farEnd sends the channel, with a random-access point every 2 s, and serves
// bursts of it, until it is interrupted.
func farEnd(rate int) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := server.Open(server.Config{
		Listen: farServer, Channels: []ingest.FlowSpec{{Group: farGroup, Interface: "peer"}}, History: 64 << 20, ChannelHistory: 32 << 20,
		Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Rate: 2e9, ClientRate: 1e9, ClientSessions: 16,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})), // seen where a test fails
	})
	if err != nil {
		return err
	}
	air, err := net.DialUDP("udp4", &net.UDPAddr{IP: farServer.Addr().AsSlice()}, net.UDPAddrFromAddrPort(farGroup))
	if err != nil {
		return err
	}
	go func() {
		every := uint32(2 * rate)
		began := time.Now()
		for n := uint32(0); ctx.Err() == nil; time.Sleep(time.Millisecond) {
			for ; n < uint32(time.Since(began).Seconds()*float64(rate)); n++ {
				_, _ = air.Write(ingesttest.Datagram(uint16(n), 7, ingesttest.Video(n, every)))
			}
		}
	}()
	return s.Run(ctx)
}

// onLine runs body at the near end of a line with 10 ms each way.
func onLine(t *testing.T, rate int, down, up nettest.Line, body func(t *testing.T, l *nettest.Lab)) {
	l := nettest.New(t, "rx", "tx")
	down.Delay, up.Delay = roundTrip/2, roundTrip/2
	l.Inside("rx", func() {
		l.Wire("tx peer 192.0.2.2/24", "rx eth 192.0.2.1/24", down, up)
		l.IP("tx", "route add 239.0.0.0/8 dev peer")
		far := exec.Command("ip", "netns", "exec", l.Name("tx"), os.Args[0])
		far.Env = append(os.Environ(), fmt.Sprint(farEnv, "=", rate))
		far.Stderr = os.Stderr
		if err := far.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = far.Process.Signal(os.Interrupt)
			if err := far.Wait(); err != nil {
				t.Errorf("far end: %v", err)
			}
		})
		time.Sleep(2500 * time.Millisecond) // of channel for the history
	}, func() { body(t, l) })
}

// A listing is a sink that notes numbers of video packets and when the first
// random-access point came.
type listing struct {
	numbers []uint64
	random  time.Time
	start   int // index of its number
}

func (s *listing) Append(ts [][]byte) {
	for _, b := range ts {
		for ; len(b) > 0; b = b[mpegts.PacketSize:] {
			numbers, random := ingesttest.VideoNumbers(b[:mpegts.PacketSize])
			s.numbers = append(s.numbers, numbers...)
			if random && s.random.IsZero() {
				s.random, s.start = time.Now(), len(s.numbers)-1
			}
		}
	}
}

// drive runs a source as a loop does until ok, and says when the first
// random-access point came, since the time given.
func drive(t *testing.T, r ingest.Receiver, source ingest.Source, since time.Time, ok func(*listing) bool) (*listing, time.Duration) {
	t.Helper()
	sink := &listing{}
	for end := since.Add(5 * time.Second); ; {
		r.Begin(time.Now())
		for source.Drain(time.Now(), 256, sink) {
		}
		r.End()
		if ok(sink) {
			return sink, sink.random.Sub(since)
		}
		if time.Now().After(end) {
			t.Errorf("not within 5 s: %+v; %s", source.Status().FCC, source.Seen())
			return sink, 5 * time.Second
		}
		pause := 10 * time.Millisecond
		if i := source.Interval(); i > 0 {
			pause = min(pause, i)
		}
		time.Sleep(pause)
	}
}

// zaps makes zaps one after another and returns how long each took to the first
// random-access point, and how many packets were missing in all. With heard, a
// packet may be missing if it is not in what came to this end since a zap, of
// the group since its first sequence number.
func zaps(t *testing.T, n int, dialect string, book *Book, heard func(since time.Time, first uint16) map[uint64]string) (times []time.Duration, missing int) {
	r, err := ingest.NewReceiver(ingest.ReceiverConfig{})
	if err != nil {
		t.Error(err)
		return nil, 0
	}
	spec := ingest.FlowSpec{Group: farGroup, Interface: "eth"}
	for i := range n {
		began := time.Now()
		source, err := Open(r, spec, Request{farServer, dialect}, Config{Bursts: 16}, book)
		if err != nil {
			t.Error(err)
			return times, missing
		}
		var after int // packets when the multicast went its own way
		got, took := drive(t, r, source, began, func(l *listing) bool {
			s := source.Status().FCC
			if s.State != "" || (s.HandOver == 0 && s.Kind != ingest.StartMulticast) || l.random.IsZero() {
				return false
			}
			if after == 0 {
				after = len(l.numbers) + 200
			}
			return len(l.numbers) >= after
		})
		times = append(times, took)
		status := source.Status()
		if err := source.Close(); err != nil {
			t.Error(err)
		}
		if status.FCC.Kind != ingest.StartBurst && status.FCC.Reason != reasonMulticast {
			t.Errorf("%s, zap %d: got %+v, want a burst", dialect, i, *status.FCC)
		}
		var known map[uint64]string
		for j := got.start + 1; j < len(got.numbers); j++ {
			last, next := got.numbers[j-1], got.numbers[j]
			switch {
			case next <= last:
				t.Errorf("%s, zap %d: got packet %d after %d; %+v", dialect, i, next, last, *status.FCC)
			case next > last+1 && heard == nil:
				t.Errorf("%s, zap %d: %d packets missing after %d; %+v", dialect, i, next-last-1, last, *status.FCC)
			case next > last+1:
				if known == nil {
					known = heard(began, source.seam.first)
				}
				for m := last + 1; m < next; m++ {
					missing++
					if how := known[m]; how != "" {
						t.Errorf("%s, zap %d: packet %d came and is missing:%s; %+v", dialect, i, m, how, *status.FCC)
					}
				}
			}
		}
	}
	return times, missing
}

// percentile returns the p-th percentile, 0 to 100.
func percentile(times []time.Duration, p int) time.Duration {
	slices.Sort(times)
	return times[min(len(times)-1, len(times)*p/100)]
}

// plainTimes joins the group without a burst, n times.
func plainTimes(t *testing.T, n int) (times []time.Duration) {
	r, err := ingest.NewReceiver(ingest.ReceiverConfig{})
	if err != nil {
		t.Error(err)
		return nil
	}
	for i := range n {
		time.Sleep(time.Duration(i%4) * 130 * time.Millisecond) // else each begins where the last one ended
		began := time.Now()
		source, err := ingest.OpenMulticast(r, ingest.FlowSpec{Group: farGroup, Interface: "eth"})
		if err != nil {
			t.Error(err)
			return times
		}
		_, took := drive(t, r, source, began, func(l *listing) bool { return !l.random.IsZero() })
		times = append(times, took)
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
	return times
}

// each is how many zaps each of how many viewers makes.
func each() (viewers, n int) {
	if os.Getenv(longEnv) != "" {
		return 3, 67
	}
	return 1, 3
}

// A zap shows a picture a round trip and 30 ms after it was asked for, where the
// group alone takes a second, and nothing is lost, repeated or in another order
// where burst and multicast meet.
func TestNetns_zaps(t *testing.T) {
	type line struct {
		mbit     int
		dialects []string
	}
	lines := []line{{10, Dialects}}
	if os.Getenv(longEnv) != "" { // one at a time: two cores
		lines = nil
		for _, mbit := range []int{10, 4, 35} {
			for _, dialect := range Dialects {
				lines = append(lines, line{mbit, []string{dialect}})
			}
		}
	}
	for _, c := range lines {
		t.Run(fmt.Sprint(c.mbit, c.dialects[0]), func(t *testing.T) {
			onLine(t, c.mbit*1e6/8/1316, nettest.Line{}, nettest.Line{}, func(t *testing.T, _ *nettest.Lab) {
				var wg sync.WaitGroup
				defer wg.Wait()
				wg.Go(func() {
					viewers, n := each()
					times := plainTimes(t, viewers*n/4+4)
					sum := time.Duration(0)
					for _, d := range times {
						sum += d
					}
					if len(times) > 0 {
						t.Logf("%d Mbit/s without a burst: %d zaps, mean %v", c.mbit, len(times), sum/time.Duration(len(times)))
					}
				})
				for _, dialect := range c.dialects {
					manyZaps(t, c.mbit, dialect)
				}
			})
		})
	}
}

// manyZaps makes zaps by a few viewers at once.
func manyZaps(t *testing.T, mbit int, dialect string) {
	var mu sync.Mutex // guards times
	var times []time.Duration
	var wg sync.WaitGroup
	book := NewBook()
	viewers, n := each()
	for range viewers {
		wg.Go(func() {
			got, _ := zaps(t, n, dialect, book, nil)
			mu.Lock()
			defer mu.Unlock()
			times = append(times, got...)
		})
	}
	wg.Wait()
	if len(times) == 0 {
		return
	}
	p95 := percentile(times, 95)
	t.Logf("%d Mbit/s, %s: %d zaps, median %v, p95 %v, longest %v", mbit, dialect,
		len(times), percentile(times, 50), p95, percentile(times, 100))
	if want := roundTrip + 30*time.Millisecond; os.Getenv(longEnv) != "" && p95 > want {
		t.Errorf("%s: 95th percentile: got %v, want at most %v", dialect, p95, want)
	}
}

// What burst and signalling lose is missing only where the multicast did not
// bring it either.
func TestNetns_zapsWithLoss(t *testing.T) {
	unicast := func(p nettest.Packet) bool { return p.Protocol == unix.IPPROTO_UDP && !p.To.Addr().IsMulticast() }
	for _, percent := range []int{1, 5} {
		for _, dialect := range Dialects {
			if os.Getenv(longEnv) == "" && (percent == 1 || dialect != Telecom) {
				continue
			}
			t.Run(fmt.Sprint(dialect, percent), func(t *testing.T) {
				line := nettest.Line{Match: unicast, Loss: float64(percent) / 100, Jitter: 5 * time.Millisecond, Seed: 1}
				onLine(t, 950, line, line, func(t *testing.T, l *nettest.Lab) {
					ear := l.Listen("rx", "eth")
					heard := func(since time.Time, first uint16) map[uint64]string {
						known, joined := map[uint64]string{}, false
						for _, p := range ear.Packets() {
							if p.At.Before(since) || ingest.Classify(p.Body) == ingest.KindRTCP || len(p.Body) < 1316 {
								continue
							}
							if p.To == farGroup && !joined { // it was on the wire before we were in the group
								h, _, _ := ingest.PeekRTP(p.Body)
								if joined = h.Sequence == first; !joined {
									continue
								}
							}
							numbers, _ := ingesttest.VideoNumbers(p.Body[len(p.Body)-1316:])
							for _, n := range numbers {
								known[n] += fmt.Sprint(" to ", p.To, " after ", p.At.Sub(since))
							}
						}
						if !joined {
							t.Errorf("the group's packet %d was not heard", first)
						}
						return known
					}
					_, n := each()
					times, missing := zaps(t, n, dialect, NewBook(), heard)
					if len(times) > 0 {
						t.Logf("%s with %d %% loss: %d zaps, p95 %v, %d packets missing that neither brought", dialect, percent,
							len(times), percentile(times, 95), missing)
					}
				})
			})
		}
	}
}
