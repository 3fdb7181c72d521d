//go:build linux

package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// rtspPort is where the generator is an RTSP server; source i is at /i.
const rtspPort = 5554

// rtspBacklog is what a connection that does not read may leave unsent.
const rtspBacklog = 4 << 20

// rtspSender sends each source over the TCP connection of the last client that
// plays it, interleaved. What nobody plays goes nowhere.
type rtspSender struct {
	ln     net.Listener
	st     *genStats
	nobody [packetLen]byte

	mu    sync.Mutex // guards clients
	plays []*rtspClient
}

// An rtspClient is one connection that plays.
type rtspClient struct {
	fd int

	mu  sync.Mutex // guards out: answers go between frames
	out []byte
}

func newRTSPSender(sources int, st *genStats) (*rtspSender, error) {
	ln, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", rtspPort))
	if err != nil {
		return nil, err
	}
	s := &rtspSender{ln: ln, st: st, plays: make([]*rtspClient, sources)}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go s.serve(conn.(*net.TCPConn))
		}
	}()
	return s, nil
}

// serve answers requests until the connection ends.
func (s *rtspSender) serve(conn *net.TCPConn) {
	defer conn.Close()
	var c *rtspClient
	for in := bufio.NewReader(conn); ; {
		var cseq string
		first, err := in.ReadString('\n')
		for line := first; err == nil && line != "\r\n"; {
			if v, ok := strings.CutPrefix(line, "CSeq:"); ok {
				cseq = strings.TrimSpace(v)
			}
			line, err = in.ReadString('\n')
		}
		words := strings.Fields(first)
		if err != nil || len(words) < 2 {
			break
		}
		extra, body := "Session: 1\r\n", ""
		switch words[0] {
		case "DESCRIBE":
			body = "v=0\r\nm=video 0 RTP/AVP 33\r\n"
			extra += fmt.Sprintf("Content-Type: application/sdp\r\nContent-Length: %d\r\n", len(body))
		case "SETUP":
			extra += "Transport: MP2T/RTP/TCP;unicast;interleaved=0-1\r\n"
		}
		answer := "RTSP/1.0 200 OK\r\nCSeq: " + cseq + "\r\n" + extra + "\r\n" + body
		if c == nil {
			if _, err := conn.Write([]byte(answer)); err != nil {
				return
			}
		} else {
			c.mu.Lock()
			c.out = append(c.out, answer...)
			c.mu.Unlock()
		}
		if words[0] == "PLAY" && c == nil {
			c = s.play(conn, words[1])
		}
	}
	if c != nil {
		s.forget(c)
	}
}

// play takes the client of a URL that ends with the source's number.
func (s *rtspSender) play(conn *net.TCPConn, url string) *rtspClient {
	i, err := strconv.Atoi(url[strings.LastIndexByte(url, '/')+1:])
	raw, rawErr := conn.SyscallConn()
	if err != nil || rawErr != nil || i < 0 || i >= len(s.plays) {
		return nil
	}
	c := &rtspClient{fd: -1}
	_ = raw.Control(func(fd uintptr) { c.fd, _ = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	s.mu.Lock()
	s.plays[i] = c
	s.mu.Unlock()
	return c
}

func (s *rtspSender) forget(c *rtspClient) {
	s.mu.Lock()
	for i, o := range s.plays {
		if o == c {
			s.plays[i] = nil
		}
	}
	s.mu.Unlock()
	c.mu.Lock()
	_ = unix.Close(c.fd)
	c.fd = -1
	c.mu.Unlock()
}

// send sends n datagrams of src, all of them with one call.
func (s *rtspSender) send(src *genSource, n int64) {
	s.mu.Lock()
	c := s.plays[src.ts.source]
	s.mu.Unlock()
	if c == nil {
		for range n {
			src.datagram(s.nobody[:])
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		at := len(c.out)
		if at > rtspBacklog {
			src.datagram(s.nobody[:])
			s.st.Errors++
			continue
		}
		c.out = append(c.out, '$', 0, 0, 0)
		binary.BigEndian.PutUint16(c.out[at+2:], packetLen)
		c.out = append(c.out, s.nobody[:]...)
		src.datagram(c.out[at+4:])
		s.st.Datagrams++
	}
	if sent, err := unix.Write(c.fd, c.out); err == nil {
		c.out = c.out[:copy(c.out, c.out[sent:])]
	}
}

func (s *rtspSender) flush() {}
