package nettest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds the waits of this package.
const patience = 10 * time.Second

// insideEnv names the lab of a test that runs again inside a namespace.
const insideEnv = "ZAPCAST_NETNS"

// A Lab is a few network namespaces, by the names that the test gave them. It
// ends with the test.
type Lab struct {
	t     testing.TB
	id    string
	again bool // this process is the one that Inside started
	wires int
}

var labs atomic.Int32

// New makes a namespace of each name, with the loopback interface up.
func New(t testing.TB, names ...string) *Lab {
	t.Helper()
	if id := os.Getenv(insideEnv); id != "" {
		return &Lab{t: t, id: id, again: true}
	}
	unable := t.Skipf
	if Required() {
		unable = t.Fatalf
	}
	if os.Geteuid() != 0 {
		unable("network namespaces need root")
	}
	l := &Lab{t: t, id: fmt.Sprint(os.Getpid(), "-", labs.Add(1))}
	for _, ns := range names {
		if out, err := exec.Command("ip", "netns", "add", l.Name(ns)).CombinedOutput(); err != nil {
			unable("no network namespace: ip netns add: %v %s", err, out)
		}
		l.prepare(ns)
	}
	return l
}

// Required says whether a test that needs a network must not skip.
func Required() bool { return os.Getenv("ZAPCAST_TEST_NET") == "1" }

func (l *Lab) prepare(ns string) {
	l.t.Cleanup(func() { l.run("netns del " + l.Name(ns)) })
	l.IP(ns, "link set lo up")
	l.Do(ns, func() {
		for _, family := range []string{"all", "default"} { // addresses are good at once
			_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+family+"/accept_dad", []byte("0"), 0) // without IPv6 it is not there
		}
	})
}

// Name is what the system calls the namespace.
func (l *Lab) Name(ns string) string { return "zc" + ns + l.id }

// IP runs the ip command on a namespace.
func (l *Lab) IP(ns, arguments string) {
	l.t.Helper()
	l.run("-n " + l.Name(ns) + " " + arguments)
}

func (l *Lab) run(arguments string) {
	l.t.Helper()
	if out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		l.t.Fatalf("ip %s: %v %s", arguments, err, out)
	}
}

// Do calls f on a thread that is in the namespace and ends with it. Sockets that
// f opens and processes that it starts stay there; goroutines do not. The test
// may end inside f.
func (l *Lab) Do(ns string, f func()) {
	l.t.Helper()
	var err error
	returned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		var fd int
		if fd, err = unix.Open("/run/netns/"+l.Name(ns), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(fd)
		if err = unix.Setns(fd, unix.CLONE_NEWNET); err == nil {
			f()
			returned = true
		}
	}()
	<-done
	if err != nil {
		l.t.Fatalf("enter namespace %s: %v", l.Name(ns), err)
	}
	if !returned {
		l.t.FailNow()
	}
}

// In is Do with the namespace chosen before.
func (l *Lab) In(ns string) func(f func()) {
	return func(f func()) { l.Do(ns, f) }
}

// Inside runs build here and then the whole test again, in a process of its own
// that is inside the namespace with all its threads: there only body runs.
func (l *Lab) Inside(ns string, build, body func()) {
	l.t.Helper()
	if l.again {
		body()
		return
	}
	build()
	cmd := exec.Command("ip", "netns", "exec", l.Name(ns), os.Args[0], "-test.run=^"+l.t.Name()+"$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), insideEnv+"="+l.id)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "--- SKIP") {
		l.t.Errorf("inside the namespace: %v\n%s", err, out)
	} else if testing.Verbose() {
		l.t.Logf("inside the namespace:\n%s", out)
	}
}

// Link joins two namespaces by a cable. An end is written as the namespace, the
// interface, and its addresses with their prefix lengths. The link is up, for
// IPv6 too, when Link returns.
func (l *Lab) Link(a, b string) {
	l.t.Helper()
	ends := []end{parseEnd(a), parseEnd(b)}
	l.IP(ends[0].ns, fmt.Sprintf("link add %s type veth peer name %s netns %s", ends[0].dev, ends[1].dev, l.Name(ends[1].ns)))
	for _, e := range ends {
		l.address(e)
	}
	for _, e := range ends {
		l.awaitIPv6(e)
	}
}

// Plug is link n, 7 or 8, of the usual lab. Each end has an address of its own,
// and the sender's a second one.
//
//	rx: receiver                               tx: senders
//	  eth7  192.0.2.1     2001:db8:7::1 ──────── peer7  192.0.2.2 and .3     2001:db8:7::2
//	  eth8  198.51.100.1  2001:db8:8::1 ──────── peer8  198.51.100.2 and .3  2001:db8:8::2
func (l *Lab) Plug(n int) {
	l.t.Helper()
	net4 := map[int]string{7: "192.0.2", 8: "198.51.100"}[n]
	l.Link(fmt.Sprintf("rx eth%d %s.1/24 2001:db8:%d::1/64", n, net4, n),
		fmt.Sprintf("tx peer%d %s.2/24 %s.3/24 2001:db8:%d::2/64", n, net4, net4, n))
}

type end struct {
	ns, dev   string
	addresses []string
}

func parseEnd(s string) end {
	f := strings.Fields(s)
	return end{f[0], f[1], f[2:]}
}

func (l *Lab) address(e end) {
	l.t.Helper()
	for _, a := range e.addresses {
		if strings.Contains(a, ":") {
			a += " nodad"
		}
		l.IP(e.ns, "addr add "+a+" dev "+e.dev)
	}
	l.IP(e.ns, "link set "+e.dev+" up")
}

// awaitIPv6 waits until the kernel's own work on the interface is done, where
// it has an IPv6 address.
func (l *Lab) awaitIPv6(e end) {
	l.t.Helper()
	if !slices.ContainsFunc(e.addresses, func(a string) bool { return strings.Contains(a, ":") }) {
		return
	}
	l.eventually("IPv6 is up on "+e.dev, func() bool {
		out, _ := exec.Command("ip", "-n", l.Name(e.ns), "-6", "route", "show", "table", "local", "dev", e.dev).Output()
		return strings.Contains(string(out), "ff00::/8")
	})
}

func (l *Lab) eventually(what string, is func() bool) {
	l.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
