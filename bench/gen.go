//go:build linux

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// genConfig is what the generator reads, as JSON, on its standard input. It
// stops at the end of its input or after MaxSeconds.
type genConfig struct {
	Sources    int
	Mbps       float64
	Tick       time.Duration
	MaxSeconds int
	NoRAI      bool
	RTSP       bool // be an RTSP server instead of sending to groups
}

// genStats is what it prints at the end.
type genStats struct {
	Datagrams, Errors int64
	LateMaxMs         float64 // latest wake-up
	Late5ms           int64   // wake-ups more than 5 ms late
}

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// batch collects datagrams for one sendmmsg call.
type batch struct {
	fd   int
	n    int
	buf  [256][packetLen]byte
	iov  [256]unix.Iovec
	msgs [256]mmsghdr
	st   *genStats
}

func newBatch(fd int, st *genStats) *batch {
	b := &batch{fd: fd, st: st}
	for i := range b.msgs {
		b.iov[i].Base = &b.buf[i][0]
		b.iov[i].SetLen(packetLen)
		h := &b.msgs[i].hdr
		h.Iov = &b.iov[i]
		h.SetIovlen(1)
		h.Namelen = unix.SizeofSockaddrInet4
	}
	return b
}

// next returns the buffer of the next datagram to addr.
func (b *batch) next(addr *unix.RawSockaddrInet4) []byte {
	if b.n == len(b.msgs) {
		b.flush()
	}
	b.msgs[b.n].hdr.Name = (*byte)(unsafe.Pointer(addr))
	b.n++
	return b.buf[b.n-1][:]
}

func (b *batch) flush() {
	for at := 0; at < b.n; {
		n, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(b.fd),
			uintptr(unsafe.Pointer(&b.msgs[at])), uintptr(b.n-at), 0, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			b.st.Errors++
			n = 1 // leave this one out
		}
		at += int(n)
		b.st.Datagrams += int64(n)
	}
	b.n = 0
}

// A sender takes datagrams of the sources to those who want them.
type sender interface {
	send(src *genSource, n int64)
	flush()
}

func (b *batch) send(src *genSource, n int64) {
	for range n {
		src.datagram(b.next(&src.addr))
	}
}

// genSource is one channel.
type genSource struct {
	ts    *tsStream
	addr  unix.RawSockaddrInet4
	pps   float64 // datagrams a second
	phase float64 // start, in datagrams, so that sources do not send in step
	sent  int64
}

func (s *genSource) datagram(b []byte) {
	b[0], b[1] = 0x80, 33
	binary.BigEndian.PutUint16(b[2:], uint16(s.sent))
	binary.BigEndian.PutUint32(b[4:], uint32(float64(s.sent)/s.pps*clockPerSec))
	binary.BigEndian.PutUint32(b[8:], 0x5a000000|s.ts.source)
	for i := range tsPerPacket {
		s.ts.packet(b[rtpLen+i*tsLen : rtpLen+(i+1)*tsLen])
	}
	s.sent++
}

func multicastSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	lo := [4]byte{127, 0, 0, 1}
	if err := unix.SetsockoptInet4Addr(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, lo); err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 1); err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrInet4{Addr: lo})
}

func newSender(cfg genConfig, st *genStats) (sender, error) {
	if cfg.RTSP {
		return newRTSPSender(cfg.Sources, st)
	}
	fd, err := multicastSocket()
	if err != nil {
		return nil, fmt.Errorf("multicast socket: %w", err)
	}
	return newBatch(fd, st), nil
}

// runGen sends every source at its rate until told to stop.
func runGen([]string) error {
	var cfg genConfig
	dec := json.NewDecoder(os.Stdin)
	if err := dec.Decode(&cfg); err != nil {
		return err
	}
	stop := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(stop)
	}()
	var st genStats
	out, err := newSender(cfg, &st)
	if err != nil {
		return err
	}
	sources := make([]*genSource, cfg.Sources)
	for i := range sources {
		pps := cfg.Mbps * 1e6 / 8 / payloadLen
		s := &genSource{ts: newTSStream(i, cfg.Mbps, cfg.Sources), pps: pps, phase: float64(i) / float64(cfg.Sources)}
		s.ts.noRAI = cfg.NoRAI
		s.addr.Family = unix.AF_INET
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&s.addr.Port))[:], groupPort)
		copy(s.addr.Addr[:], net.ParseIP(groupOf(i)).To4())
		sources[i] = s
	}

	// Its ticks must not wait for the readers, which share its CPU.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	beFirst()
	fmt.Println("started")
	start := nanotime()
	end := start + int64(cfg.MaxSeconds)*1e9
	for due := start; ; due += int64(cfg.Tick) {
		now := sleepUntil(due)
		late := now - due
		st.LateMaxMs = max(st.LateMaxMs, float64(late)/1e6)
		if late > 5e6 {
			st.Late5ms++
		}
		t := float64(now-start) / 1e9
		for _, s := range sources {
			if n := int64(t*s.pps+s.phase) - s.sent; n > 0 {
				out.send(s, n)
			}
		}
		out.flush()
		if due < now-int64(cfg.Tick) {
			due = now // do not spin through ticks that were missed
		}
		select {
		case <-stop:
			return json.NewEncoder(os.Stdout).Encode(st)
		default:
		}
		if now > end {
			return json.NewEncoder(os.Stdout).Encode(st)
		}
	}
}

// beFirst asks the scheduler to run the calling thread before all others on its
// CPU, with short slices, as far as that is allowed.
func beFirst() {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: -20, Runtime: 100_000}
	_ = unix.SchedSetAttr(0, &attr, 0)
}

func nanotime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

func sleepUntil(t int64) (now int64) {
	for now = nanotime(); now < t; now = nanotime() {
		ts := unix.NsecToTimespec(t)
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
	}
	return now
}
