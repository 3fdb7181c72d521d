package main

import (
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"zapcast/internal/nettest"
)

// A bad line: what the viewer gets is compared with what came in on the wire,
// packet by packet, and the server's counts with the wire's.
func TestNetns_badLine(t *testing.T) {
	for name, line := range map[string]struct{ netem, send string }{
		"loss":        {"loss 1%", "--drop 1%"},
		"reordering":  {"delay 10ms reorder 97%", "--reorder 5%,16"},
		"duplicates":  {"duplicate 2%", "--duplicate 2%"},
		"all of them": {"delay 10ms reorder 97% loss 1% duplicate 1%", "--drop 1%,3 --reorder 3%,8 --duplicate 1% --jitter 5ms"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			netem := exec.Command("tc", strings.Fields("-n "+l.Name("tx")+" qdisc add dev peer7 root netem "+line.netem)...).Run() == nil
			args := numberedFile(t, 1) + " --rate 8M --interface peer7 --to rtp://239.7.0.1:5000 --seed 7"
			if !netem { // not in every kernel
				args += " " + line.send
			}
			wire := l.Listen("rx", "eth7")
			s := l.serve("", "--interface", "eth7")
			viewer := l.watch(s, "/rtp/239.7.0.1:5000", 1)
			eventually(t, func() bool { return len(s.status().Channels) == 1 }, "the group is joined")
			sender := l.send(args)
			if err := sender.wait(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond) // the line's delay, and the window's

			want := readWire(t, wire, "239.7.0.1:5000", 1)
			eventually(t, func() bool {
				got := viewer.seen()
				return len(got) > 0 && got[len(got)-1] == want.numbers[len(want.numbers)-1]
			}, "the viewer gets the last packet that came")
			got := viewer.seen()
			if got[0] >= 2*numberedGOP {
				t.Errorf("the viewer began at %d, want one of the first random-access points", got[0])
			}
			want.numbers = want.numbers[slices.Index(want.numbers, got[0]):]
			if !slices.Equal(got, want.numbers) {
				t.Errorf("got %d packets, want the %d that came by the wire, in order", len(got), len(want.numbers))
			}

			dropped := numberedDatagrams - want.datagrams
			if !netem {
				for what, n := range map[string]int{"dropped": dropped, "duplicated": want.duplicates} {
					if told := saidOf(sender, what); told != n {
						t.Errorf("the sender says %d %s, want %d", told, what, n)
					}
				}
			}
			c := s.channel()
			if c.Lost != int64(want.missing) || c.Duplicates != int64(want.duplicates) || c.Packets != int64(want.datagrams) {
				t.Errorf("status: got %d lost, %d duplicates, %d packets, want %d, %d, %d",
					c.Lost, c.Duplicates, c.Packets, want.missing, want.duplicates, want.datagrams)
			}
			if c.Reordered != int64(want.late) || c.Resyncs != 0 || c.Foreign != 0 {
				t.Errorf("status: got %d reordered, %d resyncs, %d foreign, want %d, 0, 0", c.Reordered, c.Resyncs, c.Foreign, want.late)
			}
			// The test is worth nothing where the line was good.
			if dropped+want.duplicates+want.late < 10 {
				t.Errorf("the line was good: %+v", want)
			}
		})
	}
}

// onWire is what came in for a group.
type onWire struct {
	numbers    []int // of the video packets, sorted, each once
	datagrams  int   // different ones
	missing    int   // in the sequence
	duplicates int
	late       int // came after a higher one
}

func readWire(t *testing.T, c *nettest.Ear, group string, mark byte) (w onWire) {
	t.Helper()
	const rtpHeader = 12
	seen := map[uint16]bool{}
	var first, highest uint16
	for _, p := range c.Packets() {
		if p.To.String() != group {
			continue
		}
		d := p.Body
		seq := uint16(d[2])<<8 | uint16(d[3])
		switch {
		case seen[seq]:
			w.duplicates++
			continue
		case len(seen) == 0:
			first, highest = seq, seq
		case int16(seq-first) < 0 && len(seen) < 8: // the first was late
			first = seq
			w.late++
		case int16(seq-highest) < 0:
			w.late++
			if highest-seq > 64 {
				t.Errorf("datagram %d came %d too late: the line was made for less", seq, highest-seq)
			}
		default:
			highest = seq
		}
		seen[seq] = true
		for ts := d[rtpHeader:]; len(ts) > 0; ts = ts[tsPacket:] {
			number, err := readNumbered(ts[:tsPacket], mark)
			if err != nil {
				t.Fatal(err)
			}
			if number >= 0 {
				w.numbers = append(w.numbers, number)
			}
		}
	}
	if len(w.numbers) == 0 {
		t.Fatal("nothing came by the wire")
	}
	slices.Sort(w.numbers)
	w.datagrams = len(seen)
	w.missing = int(highest-first) + 1 - len(seen)
	return w
}

// saidOf reads a number from the last line of `zapcast send`.
func saidOf(sender *process, what string) int {
	m := regexp.MustCompile(`(\d+) ` + what).FindStringSubmatch(sender.stderr.String())
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// Two viewers whose network goes away without a word, one who reads and one who
// has stopped to: both are gone within a minute, and others notice nothing.
func TestNetns_vanishedViewers(t *testing.T) {
	l := newLab(t)
	s := l.serve("", "--interface", "eth7")
	l.send(numberedFile(t, 1) + " --rate 1M --loop --interface peer7 --to rtp://239.7.0.1:5000")
	other := l.watch(s, "/rtp/239.7.0.1:5000", 1)
	away := *s
	away.addr = "203.0.113.1:" + s.addr[strings.LastIndex(s.addr, ":")+1:]
	reads := away.begin(l.In("vw"), "/rtp/239.7.0.1:5000", 1)
	var stopped net.Conn
	l.In("vw")(func() { stopped = dialSmall(t, away.addr) })
	defer stopped.Close()
	fmt.Fprintf(stopped, "GET /rtp/239.7.0.1:5000 HTTP/1.1\r\nHost: %s\r\n\r\n", away.addr)
	other.more(t, 100)
	reads.more(t, 100)
	eventually(t, func() bool {
		return slices.ContainsFunc(s.status().Viewers, func(v statusViewer) bool {
			return v.Address == stopped.LocalAddr().String() && v.Blocked
		})
	}, "the connection of the one who does not read is full")

	l.IP("vw", "link set view9 down")
	down := time.Now()
	const limit = time.Minute
	for n := 3; n > 1; time.Sleep(200 * time.Millisecond) {
		if time.Since(down) > limit {
			t.Fatalf("%v after they vanished: got viewers %+v, want one", limit, s.status().Viewers)
		}
		if now := len(s.status().Viewers); now < n {
			t.Logf("%d viewers left after %v", now, time.Since(down).Round(time.Second))
			n = now
		}
	}
	other.whole(t, "the viewer who stayed")
	if got := s.channel().Viewers; got != 1 {
		t.Errorf("the channel has %d viewers, want 1", got)
	}
}
