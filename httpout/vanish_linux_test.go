package httpout

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"zapcast/fanout"
	"zapcast/internal/nettest"
)

// Viewers whose line is cut without a word, one who reads all and one who reads
// nothing, give up their places within a minute; one on another line goes on.
//
//	namespace: server  eth0 192.0.2.1 ──── peer0 192.0.2.2  namespace: viewers, pulled out
//	loopback: the other viewer
//
// It takes that minute, and root; it runs where ZAPCAST_TEST_NET=1.
func TestNetns_viewersWhoVanish(t *testing.T) {
	if !nettest.Required() {
		t.Skip("takes a minute, and root: runs with ZAPCAST_TEST_NET=1")
	}
	lab := nettest.New(t, "server", "viewers")
	lab.Link("server eth0 192.0.2.1/24", "viewers peer0 192.0.2.2/24")

	// A viewer who reads nothing is not moved on: his silence alone ends him.
	engines := fanout.Config{StartWait: time.Millisecond, Lag: 10 * time.Minute, LagBytes: 1 << 30}
	fronts := make(map[bool]*front) // by fanout.Config.Plain
	for _, plain := range []bool{false, true} {
		engines.Plain = plain
		f := newFrontOn(t, Config{}, engines)
		f.feed("239.1.1.1:5000")
		fronts[plain] = f
		var addr string
		lab.Do("server", func() {
			l, err := net.Listen("tcp", "192.0.2.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr = l.Addr().String()
			f.serving.Go(func() {
				if err := f.Serve(l); err != nil {
					t.Errorf("Serve: %v", err)
				}
			})
		})
		open := func() *http.Response {
			var c net.Conn
			lab.Do("viewers", func() {
				var err error
				if c, err = net.Dial("tcp", addr); err != nil {
					t.Fatal(err)
				}
			})
			t.Cleanup(func() { c.Close() })
			c.(*net.TCPConn).SetReadBuffer(64 << 10)
			io.WriteString(c, "GET /rtp/239.1.1.1:5000 HTTP/1.1\r\nHost: test\r\n\r\n")
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("viewer: %v, %v, want a stream", response, err)
			}
			return response
		}
		reads, stays := open(), f.watch("/rtp/239.1.1.1:5000")
		stays.conn.SetDeadline(time.Time{})
		open() // reads nothing
		go io.Copy(io.Discard, reads.Body)
		go io.Copy(io.Discard, stays.Body)
	}
	waitFor := func(what string, limit time.Duration, ok func(f *front) bool) time.Duration {
		t.Helper()
		begun := time.Now()
		for _, f := range fronts {
			for ; !ok(f); time.Sleep(50 * time.Millisecond) {
				if time.Since(begun) > limit {
					t.Fatalf("not within %v: %s; viewers: %+v; log:\n%s", limit, what, f.engine.Status().Viewers, f.log)
				}
			}
		}
		return time.Since(begun)
	}
	waitFor("who reads nothing fills his connection", 30*time.Second, func(f *front) bool {
		return slices.ContainsFunc(f.engine.Status().Viewers, func(v fanout.ViewerStatus) bool { return v.Blocked })
	})
	lab.IP("viewers", "link set peer0 down")
	took := waitFor("who vanished gives up his place", time.Minute, func(f *front) bool { return f.slots.count() == 1 })
	t.Logf("free after %v", took)
	for _, f := range fronts {
		if s := f.snapshot(time.Now()); len(s.Viewers) != 1 || s.Channels[0].Viewers != 1 || s.Viewers[0].LagBytes > 1<<20 {
			t.Errorf("left: got %+v, want the one on the other line", s.Viewers)
		}
	}
}
