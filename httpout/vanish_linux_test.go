package httpout

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zapcast/fanout"
)

// inside runs f on a thread of a network namespace, where its sockets stay.
func inside(t *testing.T, namespace string, f func() error) {
	t.Helper()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with it
		result <- func() error {
			fd, err := unix.Open("/run/netns/"+namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
				return err
			}
			return f()
		}()
	}()
	if err := <-result; err != nil {
		t.Fatalf("in namespace %s: %v", namespace, err)
	}
}

// Viewers whose line is cut without a word, one who reads all and one who reads
// nothing, give up their places within a minute; one on another line goes on.
//
//	namespace: server  eth0 192.0.2.1 ──── peer0 192.0.2.2  namespace: viewers, pulled out
//	loopback: the other viewer
//
// It takes that minute, and root; it runs where ZAPCAST_TEST_NET=1.
func TestNetns_viewersWhoVanish(t *testing.T) {
	if os.Getenv("ZAPCAST_TEST_NET") != "1" {
		t.Skip("takes a minute, and root: runs with ZAPCAST_TEST_NET=1")
	}
	ip := func(arguments string) error {
		out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", arguments, err, out)
		}
		return nil
	}
	server, viewers := fmt.Sprintf("zcserver%d", os.Getpid()), fmt.Sprintf("zcviewers%d", os.Getpid())
	for _, name := range []string{server, viewers} {
		if err := ip("netns add " + name); err != nil {
			t.Fatalf("no network namespace: %v", err)
		}
		t.Cleanup(func() { ip("netns del " + name) })
	}
	for _, arguments := range []string{
		"-n " + server + " link add eth0 type veth peer name peer0 netns " + viewers,
		"-n " + server + " addr add 192.0.2.1/24 dev eth0", "-n " + server + " link set eth0 up",
		"-n " + viewers + " addr add 192.0.2.2/24 dev peer0", "-n " + viewers + " link set peer0 up",
	} {
		if err := ip(arguments); err != nil {
			t.Fatal(err)
		}
	}

	// A viewer who reads nothing is not moved on: his silence alone ends him.
	engines := fanout.Config{StartWait: time.Millisecond, Lag: 10 * time.Minute, LagBytes: 1 << 30}
	fronts := make(map[bool]*front) // by fanout.Config.Plain
	for _, plain := range []bool{false, true} {
		engines.Plain = plain
		f := newFrontOn(t, Config{}, engines)
		f.feed("239.1.1.1:5000")
		fronts[plain] = f
		var addr string
		inside(t, server, func() error {
			l, err := net.Listen("tcp", "192.0.2.1:0")
			if err != nil {
				return err
			}
			addr = l.Addr().String()
			f.serving.Go(func() {
				if err := f.Serve(l); err != nil {
					t.Errorf("Serve: %v", err)
				}
			})
			return nil
		})
		open := func() *http.Response {
			var c net.Conn
			inside(t, viewers, func() (err error) {
				c, err = net.Dial("tcp", addr)
				return err
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
	if err := ip("-n " + viewers + " link set peer0 down"); err != nil {
		t.Fatal(err)
	}
	took := waitFor("who vanished gives up his place", time.Minute, func(f *front) bool { return f.slots.count() == 1 })
	t.Logf("free after %v", took)
	for _, f := range fronts {
		if s := f.snapshot(time.Now()); len(s.Viewers) != 1 || s.Channels[0].Viewers != 1 || s.Viewers[0].LagBytes > 1<<20 {
			t.Errorf("left: got %+v, want the one on the other line", s.Viewers)
		}
	}
}
