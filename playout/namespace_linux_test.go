package playout

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNetns_playerInANamespaceOfItsOwn sends in a network namespace of its own, with nothing
// in it but the loopback interface and a card without a cable. No route leads
// to an IPv4 group, neither here nor there. A time to live of 0 keeps what is
// sent on this host; it is delivered all the same.
func TestNetns_playerInANamespaceOfItsOwn(t *testing.T) {
	unable := t.Skipf
	if os.Getenv("ZAPCAST_TEST_NET") == "1" {
		unable = t.Fatalf
	}
	// The thread is in the namespace for good: never unlocked, it ends with
	// the test's goroutine.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		unable("no network namespace: unshare: %v", err)
	}
	for _, args := range []string{
		"link set lo up",
		"link add eth7 type veth peer name peer7",
		"link set peer7 up",
		"link set eth7 up",
		"-6 addr add 2001:db8:7::1/64 dev eth7 nodad",
	} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			unable("ip %s: %v: %s", args, err, out)
		}
	}
	throughSockets(t, "lo", "rtp://239.255.77.203", "udp://127.0.0.1@232.255.77.204")
	throughSockets(t, "eth7", "rtp://239.255.77.205", "udp://239.255.77.206")
	throughSockets(t, "eth7", "rtp://[ff12::77:1]", "udp://[2001:db8:7::1]@[ff15::77:2]")
}
