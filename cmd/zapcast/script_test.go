package main

import (
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"zapcast/mpegts"
)

// The test binary, called zapcast, is the program.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "zapcast" {
		waitTogether()
	}
	testscript.Main(m, map[string]func(){"zapcast": main})
}

// waitTogether lets more tests run at the same time than there are processors,
// unless the command line says how many: those that are parallel here mostly
// wait, one of them for most of a minute.
func waitTogether() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "8")
	}
}

// TestScripts runs the program as a user does. Besides testscript's own
// commands there are those of the table below.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await":    await,
			"signal":   signalAll,
			"get":      get,
			"stream":   stream,
			"took":     took,
			"occupy":   occupy,
			"notified": notified,
		},
		Setup: func(env *testscript.Env) error {
			clips, err := filepath.Abs("clips")
			if err != nil {
				return err
			}
			loopback, err := loopbackInterface()
			if err != nil {
				return err
			}
			env.Vars = append(
				env.Vars, "JOURNAL_STREAM=", "NOTIFY_SOCKET=", "CLIPS="+clips, "LOOPBACK="+loopback,
				"GORACE=atexit_sleep_ms=0", // the race detector would add a second to each run
			)
			return nil
		},
	})
}

// A process on a busy machine may take this long to get somewhere.
const patience = 20 * time.Second

// await FILE REGEXP [VARIABLE]: waits until the file matches, and sets the
// variable to the first group of the last match.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await FILE REGEXP [VARIABLE]")
	}
	pattern := regexp.MustCompile(args[1])
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if all := pattern.FindAllSubmatch(text, -1); len(all) > 0 {
			if len(args) > 2 {
				ts.Setenv(args[2], string(all[len(all)-1][1]))
			}
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not match %s (%v):\n%s", args[0], args[1], err, text)
		}
	}
}

// signal NAME: sends a signal to every process in the background, and starts
// the clock of took.
func signalAll(ts *testscript.TestScript, neg bool, args []string) {
	sig, ok := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}[args[0]]
	if neg || !ok {
		ts.Fatalf("usage: signal TERM|INT|HUP")
	}
	ts.Setenv("SIGNALLED", strconv.FormatInt(time.Now().UnixNano(), 10))
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(sig))
	}
}

// [!] took DURATION: the last signal is at least [less than] this long ago.
func took(ts *testscript.TestScript, neg bool, args []string) {
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	start, err := strconv.ParseInt(ts.Getenv("SIGNALLED"), 10, 64)
	ts.Check(err)
	if d := time.Since(time.Unix(0, start)); (d < limit) != neg {
		ts.Fatalf("took %v, limit %v", d, limit)
	}
}

// get STATUS URL [SOCKET]: fetches a page, through a Unix socket if one is
// named, and makes its body the standard output.
func get(ts *testscript.TestScript, neg bool, args []string) {
	transport := &http.Transport{DisableKeepAlives: true}
	if len(args) == 3 {
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", ts.MkAbs(args[2]))
		}
	}
	client := http.Client{Transport: transport, Timeout: patience}
	resp, err := client.Get(args[1])
	if neg {
		if err == nil {
			resp.Body.Close()
			ts.Fatalf("got %s, want no connection", resp.Status)
		}
		return
	}
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
	if want := args[0]; strconv.Itoa(resp.StatusCode) != want {
		ts.Fatalf("got %s, want %s", resp.Status, want)
	}
}

// stream URL PACKETS: opens a stream and reads that many TS packets.
func stream(ts *testscript.TestScript, neg bool, args []string) {
	packets, err := strconv.Atoi(args[1])
	ts.Check(err)
	if neg {
		ts.Fatalf("usage: stream URL PACKETS")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(args[0])
	ts.Check(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("got %s, want 200", resp.Status)
	}
	b := make([]byte, packets*mpegts.PacketSize)
	_, err = io.ReadFull(resp.Body, b)
	ts.Check(err)
	if !mpegts.Whole(b) {
		ts.Fatalf("%s is no row of whole TS packets", args[0])
	}
}

// occupy VARIABLE [SOCKET]: holds a free port of 127.0.0.1, or a socket, until
// the script ends, and sets the variable to its address. With ! the port is let
// go at once.
func occupy(ts *testscript.TestScript, neg bool, args []string) {
	network, address := "tcp", "127.0.0.1:0"
	if len(args) > 1 {
		network, address = "unix", ts.MkAbs(args[1])
	}
	ln, err := net.Listen(network, address)
	ts.Check(err)
	ts.Setenv(args[0], ln.Addr().String())
	if u, ok := ln.(*net.UnixListener); ok && neg {
		u.SetUnlinkOnClose(false) // as a process does that is killed
	}
	if neg {
		ts.Check(ln.Close())
		return
	}
	ts.Defer(func() { ln.Close() })
}

// notified [STATE]: without a state, begins to play the service manager; with
// one, waits for the next thing that it is told, which must be that.
func notified(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		path := ts.MkAbs("notify.sock")
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		ts.Check(err)
		ts.Defer(func() { conn.Close() })
		ts.Setenv("NOTIFY_SOCKET", path)
		managers.Store(path, conn)
		return
	}
	conn, ok := managers.Load(ts.Getenv("NOTIFY_SOCKET"))
	if neg || !ok {
		ts.Fatalf("usage: notified, then notified STATE")
	}
	var buf [128]byte
	ts.Check(conn.(net.Conn).SetReadDeadline(time.Now().Add(patience)))
	n, err := conn.(net.Conn).Read(buf[:])
	ts.Check(err)
	if got, want := string(buf[:n]), args[0]; got != want {
		ts.Fatalf("told %q, want %q", got, want)
	}
}

// managers holds the sockets of the service managers that scripts play, by
// path.
var managers sync.Map
