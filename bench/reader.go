//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// readConfig is what the reader process reads, as one JSON line, on its
// standard input. In a load case the lines "mark" and "stop" follow.
type readConfig struct {
	Targets    []target
	Interval   time.Duration // shortest time between two rounds of reading
	RcvBuf     int           // SO_RCVBUF of client sockets; 0 leaves it alone
	Pending    int           // clients that may wait for their first byte at once
	Pace       time.Duration // shortest time between two requests
	FirstByte  time.Duration // longest wait for a client's first byte
	MaxSeconds int
	Join       bool // join case: see join.go
	WaitRAP    bool
	Joins      int
	Cold       time.Duration // nobody has watched a channel for so long before a cold request
}

// target is one channel to ask for.
type target struct {
	URL    string
	Source uint32
}

// readResult is what it prints at the end of a load case.
type readResult struct {
	Clients   int
	Window    counts // between mark and stop, all clients
	Warmup    counts // before mark
	Seconds   float64
	MinBytes  int64 // fewest bytes that one client got in the window
	Closed    int   // clients whose connection ended
	Chunked   bool
	ReadyMs   float64 // from the first request until every client had a byte
	FirstMs   []float64
	BadClient []badClient // the first few clients with any fault
	Error     string
}

type badClient struct {
	Client         int
	Warmup, Window counts
	Closed         bool
	Error          string `json:",omitempty"`
}

// client is one connection of a load case.
type client struct {
	id     int
	fd     int
	req    []byte
	asked  time.Time
	first  time.Duration // first payload byte after the request
	sent   bool
	closed bool
	err    error
	body   body
	v      verifier
	mark   counts
}

// reader is the epoll loop of a load case.
type reader struct {
	cfg     readConfig
	ep      int
	clients []*client
	byFD    map[int32]*client
	waiting int // connected, no payload yet
	got     int // clients with payload
	buf     []byte
	input   []byte
	begun   time.Time
	ready   time.Duration
	marked  time.Time
}

func runReader([]string) error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var cfg readConfig
	if err := json.Unmarshal(line, &cfg); err != nil {
		return err
	}
	if cfg.Join {
		return runJoin(cfg)
	}
	r := &reader{cfg: cfg, byFD: map[int32]*client{}, buf: make([]byte, 256<<10)}
	res := r.run()
	return json.NewEncoder(os.Stdout).Encode(res)
}

// run drives all clients until "stop", an error or the time limit.
func (r *reader) run() *readResult {
	res := &readResult{Clients: len(r.cfg.Targets)}
	fail := func(err error) *readResult {
		res.Error = err.Error()
		return r.finish(res)
	}
	var err error
	if r.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fail(err)
	}
	if err := r.poll(0, unix.EPOLLIN); err != nil {
		return fail(err)
	}
	r.begun = time.Now()
	deadline := r.begun.Add(time.Duration(r.cfg.MaxSeconds) * time.Second)
	events := make([]unix.EpollEvent, 1024)
	var asked time.Time // when the newest client was started
	for {
		round := time.Now()
		timeout := 1000
		if len(r.clients) < len(r.cfg.Targets) && r.waiting < r.cfg.Pending {
			if due := asked.Add(r.cfg.Pace); round.Before(due) {
				timeout = 1
			} else {
				asked, timeout = round, 0
				if err := r.connect(len(r.clients)); err != nil {
					return fail(err)
				}
			}
		}
		n, err := unix.EpollWait(r.ep, events, timeout)
		if err != nil && err != unix.EINTR {
			return fail(err)
		}
		for _, ev := range events[:max(n, 0)] {
			if ev.Fd == 0 {
				switch r.command() {
				case "mark":
					r.marked = time.Now()
					for _, c := range r.clients {
						c.mark = c.v.counts
					}
				case "stop":
					return r.finish(res)
				}
				continue
			}
			r.serve(r.byFD[ev.Fd], ev.Events)
		}
		now := time.Now()
		if r.ready == 0 && r.got == len(r.cfg.Targets) {
			r.ready = now.Sub(r.begun)
			fmt.Println("ready")
		}
		if now.After(deadline) {
			return fail(fmt.Errorf("time limit: %d of %d clients had data", r.got, len(r.cfg.Targets)))
		}
		if r.ready == 0 {
			for _, c := range r.clients {
				if c.err != nil {
					return fail(fmt.Errorf("client %d: %w", c.id, c.err))
				}
				if c.first == 0 && now.Sub(c.asked) > r.cfg.FirstByte {
					return fail(fmt.Errorf("client %d: no payload after %v", c.id, r.cfg.FirstByte))
				}
			}
		}
		if d := r.cfg.Interval - time.Since(round); d > 0 {
			time.Sleep(d)
		}
	}
}

func (r *reader) poll(fd int, events uint32) error {
	return unix.EpollCtl(r.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// command reads one line from the controller; its end means stop.
func (r *reader) command() string {
	var b [256]byte
	n, err := unix.Read(0, b[:])
	if n <= 0 || err != nil {
		return "stop"
	}
	r.input = append(r.input, b[:n]...)
	line, rest, ok := bytes.Cut(r.input, []byte("\n"))
	if !ok {
		return ""
	}
	r.input = append([]byte(nil), rest...)
	return string(line)
}

// request is what a client sends for a URL, and where to.
func request(raw string) (addr string, req []byte, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", nil, err
	}
	return u.Host, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n",
		u.RequestURI(), u.Host), nil
}

func (r *reader) connect(id int) error {
	t := r.cfg.Targets[id]
	addr, req, err := request(t.URL)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	sa := &unix.SockaddrInet4{Addr: [4]byte(net.ParseIP(host).To4())}
	sa.Port, _ = strconv.Atoi(port)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if r.cfg.RcvBuf > 0 {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, r.cfg.RcvBuf)
	}
	c := &client{id: id, fd: fd, req: req, asked: time.Now()}
	c.v.source = t.Source
	if strings.HasPrefix(t.URL, "rtsp:") {
		h := &rtspBody{v: &c.v, url: t.URL}
		c.req, c.body = h.setup(), h
	} else {
		c.body = &httpBody{v: &c.v}
	}
	r.clients = append(r.clients, c)
	r.byFD[int32(fd)] = c
	r.waiting++
	if err := unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS {
		return err
	}
	return r.poll(fd, unix.EPOLLOUT)
}

// serve handles what epoll says of one client.
func (r *reader) serve(c *client, events uint32) {
	if !c.sent && events&(unix.EPOLLOUT|unix.EPOLLERR) != 0 {
		if _, err := unix.Write(c.fd, c.req); err != nil {
			r.close(c, err)
			return
		}
		c.sent = true
		ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd)}
		_ = unix.EpollCtl(r.ep, unix.EPOLL_CTL_MOD, c.fd, &ev)
		return
	}
	n, err := unix.Read(c.fd, r.buf)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return
	case err != nil:
		r.close(c, err)
		return
	case n == 0:
		r.close(c, fmt.Errorf("connection closed by the server"))
		return
	}
	out, err := c.body.feed(r.buf[:n])
	if err == nil && len(out) > 0 {
		_, err = unix.Write(c.fd, out) // a request, which always has room
	}
	if err != nil {
		r.close(c, err)
		return
	}
	if c.first == 0 && c.v.Bytes > 0 {
		c.first = time.Since(c.asked)
		r.waiting--
		r.got++
	}
}

func (r *reader) close(c *client, err error) {
	c.closed, c.err = true, err
	_ = unix.Close(c.fd)
	delete(r.byFD, int32(c.fd))
}

func (r *reader) finish(res *readResult) *readResult {
	if !r.marked.IsZero() {
		res.Seconds = time.Since(r.marked).Seconds()
	}
	res.ReadyMs = ms(r.ready)
	res.MinBytes = -1
	for _, c := range r.clients {
		if r.marked.IsZero() {
			c.mark = c.v.counts
		}
		w := c.v.counts.sub(c.mark)
		res.Window.add(w)
		res.Warmup.add(c.mark)
		if res.MinBytes < 0 || w.Bytes < res.MinBytes {
			res.MinBytes = w.Bytes
		}
		if h, ok := c.body.(*httpBody); ok {
			res.Chunked = res.Chunked || h.chunked
		}
		res.FirstMs = append(res.FirstMs, ms(c.first))
		faults := c.v.Lost + c.v.Dup + c.v.Reordered + c.v.Corrupt
		if c.closed {
			res.Closed++
		}
		if (faults != 0 || c.closed) && len(res.BadClient) < 8 {
			b := badClient{Client: c.id, Warmup: c.mark, Window: w, Closed: c.closed}
			if c.err != nil {
				b.Error = c.err.Error()
			}
			res.BadClient = append(res.BadClient, b)
		}
	}
	return res
}
