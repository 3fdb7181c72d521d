package fanout

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// A viewer that vanishes without a word is noticed within a minute.
func TestPrepare_socketOptions(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := prepare(c); err != nil {
		t.Fatal(err)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		for _, row := range []struct {
			name                string
			level, option, want int
		}{
			{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
			{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 20},
			{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 10},
			{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
			{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 50_000},
		} {
			if got, err := unix.GetsockoptInt(int(fd), row.level, row.option); err != nil || got != row.want {
				t.Errorf("%s: got %d, %v, want %d", row.name, got, err, row.want)
			}
		}
	})
}

func TestPrepare_otherConnections(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if err := prepare(a); err != nil {
		t.Errorf("got %v, want nil: there is nothing to set", err)
	}
}
