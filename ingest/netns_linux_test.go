package ingest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Tests in network namespaces. Each makes its own pair; the test binary runs
// the test again inside the receiver's, since the goroutines of a receiver have
// to be in it too.
//
//	namespace rx: receiver                    namespace tx: senders, capture
//	  eth7  192.0.2.1/24, 2001:db8:7::1/64 ──── peer7  192.0.2.2/24, 192.0.2.3/24, 2001:db8:7::2/64
//	  eth8  198.51.100.1/24, 2001:db8:8::1/64 ─ peer8  198.51.100.2/24, 2001:db8:8::2/64
//
// They need root. Without it they skip, or fail where ZAPCAST_TEST_NET=1.

const insideEnv = "ZAPCAST_NETNS"

type namespaces struct{ rx, tx string }

// inNamespaces runs body inside rx.
func inNamespaces(t *testing.T, body func(t *testing.T, ns namespaces)) {
	if id := os.Getenv(insideEnv); id != "" {
		body(t, namespaces{rx: "zcrx" + id, tx: "zctx" + id})
		return
	}
	unable := t.Skipf
	if os.Getenv("ZAPCAST_TEST_NET") == "1" {
		unable = t.Fatalf
	}
	if os.Geteuid() != 0 {
		unable("network namespaces need root")
	}
	id := fmt.Sprint(os.Getpid(), "-", groups.Add(1))
	ns := namespaces{rx: "zcrx" + id, tx: "zctx" + id}
	for _, name := range []string{ns.rx, ns.tx} {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			unable("no network namespace: ip netns add: %v %s", err, out)
		}
		t.Cleanup(func() { ip(t, "netns del "+name) })
		ip(t, "-n "+name+" link set lo up")
		inside(t, name, func() {
			for _, family := range []string{"all", "default"} { // addresses are good at once
				_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+family+"/accept_dad", []byte("0"), 0)
			}
		})
	}
	ns.plug(t, 7)
	ns.plug(t, 8)

	cmd := exec.Command("ip", "netns", "exec", ns.rx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), insideEnv+"="+id)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "--- SKIP") {
		t.Errorf("inside the namespace: %v\n%s", err, out)
	}
}

// plug makes eth<n> with its peer and addresses.
func (ns namespaces) plug(t *testing.T, n int) {
	t.Helper()
	net4 := map[int]string{7: "192.0.2", 8: "198.51.100"}[n]
	ip(t, fmt.Sprintf("-n %s link add eth%d type veth peer name peer%d netns %s", ns.rx, n, n, ns.tx))
	for name, dev := range map[string]string{ns.rx: "eth", ns.tx: "peer"} {
		host := 1
		if name == ns.tx {
			host = 2
			ip(t, fmt.Sprintf("-n %s addr add %s.3/24 dev peer%d", name, net4, n))
		}
		ip(t, fmt.Sprintf("-n %s addr add %s.%d/24 dev %s%d", name, net4, host, dev, n))
		ip(t, fmt.Sprintf("-n %s addr add 2001:db8:%d::%d/64 dev %s%d nodad", name, n, host, dev, n))
		ip(t, fmt.Sprintf("-n %s link set %s%d up", name, dev, n))
	}
	for name, dev := range map[string]string{ns.rx: "eth", ns.tx: "peer"} {
		eventually(t, func() bool {
			out, _ := exec.Command("ip", "-n", name, "-6", "route", "show", "table", "local", "dev", fmt.Sprint(dev, n)).Output()
			return strings.Contains(string(out), "ff00::/8")
		}, "IPv6 is up on "+dev)
	}
}

func ip(t *testing.T, arguments string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v %s", arguments, err, out)
	}
}

// inside calls f on a thread that is in the namespace and ends with it. Sockets
// that f opens stay there.
func inside(t *testing.T, name string, f func()) {
	t.Helper()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		var fd int
		if fd, err = unix.Open("/run/netns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(fd)
		if err = unix.Setns(fd, unix.CLONE_NEWNET); err == nil {
			f()
		}
	}()
	<-done
	if err != nil {
		t.Fatalf("enter namespace %s: %v", name, err)
	}
}

// sender sends by peer<n> from an address.
func (ns namespaces) sender(t *testing.T, n int, source string) (c *net.UDPConn) {
	t.Helper()
	inside(t, ns.tx, func() { c = sendFrom(t, source, fmt.Sprint("peer", n)) })
	if c == nil {
		t.Fatalf("no sender on %s", source)
	}
	return c
}
