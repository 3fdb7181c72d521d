//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// body is the response of a server, as it comes.
type body interface {
	// feed takes what came. It returns what is to be sent for it.
	feed(b []byte) (out []byte, err error)
}

// rtspBody takes the bytes of one RTSP connection: it asks for the stream,
// interleaved in RTP, and hands what the packets hold to a verifier. It checks
// every byte of the framing.
type rtspBody struct {
	v       *verifier
	url     string
	text    []byte // of a response, so far
	plays   bool   // PLAY was answered
	head    [frameHeader + rtpHeader]byte
	nhead   int
	left    int    // payload of the frame that is still to come
	report  bool   // the frame is a report, not TS
	begun   bool   // there was a packet: next, ssrc and stamp are of the last one
	next    uint16 // sequence number
	ssrc    uint32
	stamp   uint32
	reports int
}

const (
	frameHeader = 4 // RFC 2326 §10.12
	rtpHeader   = 12
)

var errFrame = errors.New("bad interleaved framing")

// setup is the first request: there is one track, which needs no description.
func (h *rtspBody) setup() []byte {
	return fmt.Appendf(nil, "SETUP %s RTSP/1.0\r\nCSeq: 1\r\nUser-Agent: bench\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n\r\n", h.url)
}

func (h *rtspBody) feed(b []byte) (out []byte, err error) {
	if !h.plays {
		h.text = append(h.text, b...)
		for !h.plays {
			i := bytes.Index(h.text, []byte("\r\n\r\n"))
			if i > maxHeader || i < 0 && len(h.text) > maxHeader+3 {
				return nil, errHeaderTooLong
			}
			if i < 0 {
				return out, nil
			}
			text := string(h.text[:i])
			h.text = append([]byte(nil), h.text[i+4:]...)
			request, err := h.response(text)
			if err != nil {
				return nil, err
			}
			out = append(out, request...)
		}
		b, h.text = h.text, nil
	}
	return out, h.frames(b)
}

// response is what one asks for: SETUP was answered, then PLAY.
func (h *rtspBody) response(text string) (out []byte, err error) {
	line, fields, _ := strings.Cut(text, "\r\n")
	if !strings.HasPrefix(line, "RTSP/1.0 200") {
		return nil, fmt.Errorf("RTSP response %.60q", line)
	}
	session := ""
	for field := range strings.SplitSeq(fields, "\r\n") {
		key, value, _ := strings.Cut(field, ":")
		switch {
		case strings.EqualFold(key, "RTP-Info"):
			h.plays = true
		case strings.EqualFold(key, "Session"):
			session, _, _ = strings.Cut(strings.TrimSpace(value), ";")
		}
	}
	switch {
	case h.plays:
		return nil, nil
	case session == "":
		return nil, fmt.Errorf("RTSP response without Session or RTP-Info: %.200q", text)
	}
	return fmt.Appendf(nil, "PLAY %s RTSP/1.0\r\nCSeq: 2\r\nSession: %s\r\n\r\n", h.url, session), nil
}

func (h *rtspBody) frames(b []byte) error {
	for len(b) > 0 {
		if h.left > 0 {
			n := min(h.left, len(b))
			if !h.report {
				h.v.feed(b[:n])
			}
			b, h.left = b[n:], h.left-n
			continue
		}
		n := copy(h.head[h.nhead:], b)
		h.nhead += n
		b = b[n:]
		if h.nhead < len(h.head) {
			return nil
		}
		h.nhead = 0
		if err := h.frame(h.head[:]); err != nil {
			return err
		}
	}
	return nil
}

// frame looks at the header of a frame and of the packet in it.
func (h *rtspBody) frame(p []byte) error {
	size := int(binary.BigEndian.Uint16(p[2:])) - rtpHeader
	if p[0] != '$' || p[1] > 1 || size < 0 {
		return fmt.Errorf("%w: % x", errFrame, p)
	}
	h.left = size
	rtp := p[frameHeader:]
	if h.report = p[1] == 1; h.report {
		if rtp[0]>>6 != 2 || rtp[1] < 200 || rtp[1] > 207 {
			return fmt.Errorf("%w: no report: % x", errFrame, p)
		}
		h.reports++
		return nil
	}
	number, stamp, ssrc := binary.BigEndian.Uint16(rtp[2:]), binary.BigEndian.Uint32(rtp[4:]), binary.BigEndian.Uint32(rtp[8:])
	switch {
	case rtp[0] != 0x80 || rtp[1] != 33 || size == 0 || size%tsLen != 0:
		return fmt.Errorf("%w: no packet of TS: % x", errFrame, p)
	case !h.begun:
		h.begun = true
	case number != h.next || ssrc != h.ssrc || int32(stamp-h.stamp) < 0:
		return fmt.Errorf("%w: packet %d of %d after %d of %d, want %d", errFrame, number, stamp, h.next-1, h.stamp, h.next)
	}
	h.next, h.stamp, h.ssrc = number+1, stamp, ssrc
	return nil
}
