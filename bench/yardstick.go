//go:build linux

package main

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The yardstick is a plain relay of the classic kind: a process for each
// client, one datagram received and one written at a time. Any machine can run
// it, so ratios to it can be compared where no other peer is at hand. Its
// memory says nothing: each client costs a Go runtime.

func runYardstick(args []string) error {
	fs := flag.NewFlagSet("yardstick", flag.ContinueOnError)
	listen := fs.String("listen", "127.0.0.1:4022", "HTTP address")
	iface := fs.String("interface", "lo", "multicast interface")
	group := fs.String("relay", "", "internal: relay this group to file descriptor 3")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *group != "" {
		return relay(*group, *iface)
	}
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			g, ok := strings.CutPrefix(req.URL.Path, "/rtp/")
			if !ok {
				fmt.Fprint(conn, "HTTP/1.0 404 Not Found\r\n\r\n")
				return
			}
			f, err := conn.(*net.TCPConn).File()
			if err != nil {
				return
			}
			defer f.Close()
			cmd := exec.Command("/proc/self/exe", "yardstick", "--relay", g, "--interface", *iface)
			cmd.ExtraFiles = []*os.File{f}
			cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			_ = cmd.Run()
		}()
	}
}

// relay copies a group's RTP payload to file descriptor 3, with system calls
// only, until the client goes away.
func relay(group, iface string) error {
	addr, err := net.ResolveUDPAddr("udp4", group)
	if err != nil {
		return err
	}
	ifi, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(3, false); err != nil {
		return err
	}
	fd, err := joinGroup(addr.IP, addr.Port, ifi.Index)
	if err != nil {
		return err
	}
	b := []byte("HTTP/1.0 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n")
	buf := make([]byte, 2048)
	for {
		for len(b) > 0 {
			n, err := rawIO(unix.SYS_WRITE, 3, b)
			if err != 0 {
				return nil
			}
			b = b[n:]
		}
		n, err := rawIO(unix.SYS_READ, fd, buf)
		if err != 0 {
			return err
		}
		if n > rtpLen {
			b = buf[rtpLen:n]
		}
	}
}

// rawIO reads or writes without telling the Go scheduler, as a C program would.
func rawIO(call uintptr, fd int, b []byte) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}
