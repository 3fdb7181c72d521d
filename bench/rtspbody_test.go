//go:build linux

package main

import (
	"encoding/binary"
	"strings"
	"testing"
)

// rtspStream is what a server sends for n datagrams of seven packets, with a
// report after each tenth.
func rtspStream(n int) []byte {
	b := []byte("RTSP/1.0 200 OK\r\nCSeq: 1\r\nSession: ab12;timeout=60\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n\r\n" +
		"RTSP/1.0 200 OK\r\nCSeq: 2\r\nRTP-Info: url=rtsp://x;seq=65530;rtptime=0\r\n\r\n")
	ts := stream(7 * n)
	for i := range n {
		b = append(b, '$', 0, 0, 0, 0x80, 33, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4)
		head := b[len(b)-frameHeader-rtpHeader:]
		binary.BigEndian.PutUint16(head[2:], rtpHeader+7*tsLen)
		binary.BigEndian.PutUint16(head[6:], uint16(65530+i))
		binary.BigEndian.PutUint32(head[8:], 0xffffff00+uint32(i)*100)
		b = append(b, ts[i*7*tsLen:][:7*tsLen]...)
		if i%10 == 9 {
			b = append(b, '$', 1, 0, 28, 0x80, 200, 0, 6)
			b = append(b, make([]byte, 24)...)
		}
	}
	return b
}

func feedRTSP(step int, b []byte) (h *rtspBody, asked string, err error) {
	h = &rtspBody{v: &verifier{source: 7}, url: "rtsp://192.0.2.1/rtp/239.1.1.1:5004"}
	asked = string(h.setup())
	for ; len(b) > 0; b = b[min(step, len(b)):] {
		out, err := h.feed(b[:min(step, len(b))])
		asked += string(out)
		if err != nil {
			return h, asked, err
		}
	}
	return h, asked, nil
}

func TestRTSPBody_pieces(t *testing.T) {
	for _, step := range []int{1, 3, 500, 1 << 20} {
		h, asked, err := feedRTSP(step, rtspStream(50))
		if err != nil || h.v.Packets != 350 || h.v.Lost+h.v.Dup+h.v.Corrupt != 0 || h.reports != 5 {
			t.Errorf("pieces of %d: %v, %+v, %d reports", step, err, h.v.counts, h.reports)
		}
		if !strings.HasPrefix(asked, "SETUP rtsp://") || !strings.Contains(asked, "\r\n\r\nPLAY rtsp://") || !strings.Contains(asked, "Session: ab12\r\n") {
			t.Errorf("pieces of %d: asked %q", step, asked)
		}
	}
}

// Whatever byte of the framing is wrong, it is noticed.
func TestRTSPBody_faults(t *testing.T) {
	good := rtspStream(12)
	first := strings.Index(string(good), "$")
	second := first + frameHeader + rtpHeader + 7*tsLen
	report := first + 10*(frameHeader+rtpHeader+7*tsLen)
	for _, at := range []int{first, first + 1, first + 2, first + 3, first + 4, first + 5, second + 6, second + 7, second + 8, second + 12, report, report + 1, report + 4, report + 5} {
		b := append([]byte(nil), good...)
		b[at] ^= 0x80
		h, _, err := feedRTSP(777, b)
		if err == nil && h.v.Lost+h.v.Dup+h.v.Corrupt == 0 {
			t.Errorf("byte %d behind the first frame is wrong: want it noticed", at-first)
		}
	}
	for _, head := range []string{"RTSP/1.0 454 Session Not Found\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n", strings.Repeat("x", maxHeader+4)} {
		if _, _, err := feedRTSP(100, []byte(head)); err == nil {
			t.Errorf("%.40q: want an error", head)
		}
	}
}
