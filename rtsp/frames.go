package rtsp

import (
	"bytes"
	"encoding/binary"
)

// Interleaved frames, RFC 2326 §10.12, share one TCP stream with responses and
// with requests of the server:
//
//	+--------+--------+--------+--------+
//	|  "$"   |channel |     length      |  payload ...
//	+--------+--------+--------+--------+
const (
	frameMark   = '$'
	frameHeader = 4
)

// A piece is what stands at the front of the stream.
type piece struct {
	kind    pieceKind
	payload []byte  // of a frame, a part of what was parsed
	message message // its body is a part of what was parsed
}

type pieceKind uint8

const (
	pieceMedia   pieceKind = iota // a frame on the media channel
	pieceOther                    // a frame on another channel: RTCP, or nobody's
	pieceMessage                  // a request or a response
	pieceJunk                     // bytes that are none of these
)

// cut takes the first piece off b. It returns how many bytes that takes up; 0: b
// does not hold all of it yet. Everything is skipped by its own length, so that
// nothing is looked for inside a payload; only bytes that are neither a frame
// nor a message are searched for the next of either. An error is a message that
// cannot be read.
func cut(b []byte, channels [2]uint8) (p piece, n int, err error) {
	switch {
	case len(b) == 0:
		return piece{}, 0, nil
	case b[0] == frameMark:
		if len(b) < frameHeader {
			return piece{}, 0, nil
		}
		n = frameHeader + int(binary.BigEndian.Uint16(b[2:]))
		if len(b) < n {
			return piece{}, 0, nil
		}
		p = piece{kind: pieceOther, payload: b[frameHeader:n:n]}
		if b[1] == channels[0] {
			p.kind = pieceMedia
		}
		return p, n, nil
	}
	switch beginsMessage(b) {
	case yes:
		m, n, err := parseMessage(b)
		return piece{kind: pieceMessage, message: m}, n, err
	case unknown:
		return piece{}, 0, nil
	}
	return piece{kind: pieceJunk}, junk(b, channels), nil
}

type verdict uint8

const (
	no verdict = iota
	yes
	unknown
)

// starts are the words that a message of a server begins with.
var starts = [][]byte{
	[]byte("RTSP/"), []byte("OPTIONS "), []byte("ANNOUNCE "), []byte("SET_PARAMETER "), []byte("GET_PARAMETER "),
	[]byte("REDIRECT "), []byte("TEARDOWN "), []byte("PLAY_NOTIFY "), []byte("PAUSE "), []byte("DESCRIBE "),
}

func beginsMessage(b []byte) verdict {
	for len(b) > 0 && (b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	if len(b) == 0 {
		return unknown
	}
	for _, word := range starts {
		n := min(len(b), len(word))
		if bytes.EqualFold(b[:n], word[:n]) {
			if n == len(word) {
				return yes
			}
			return unknown
		}
	}
	return no
}

// junk is the number of bytes before the next frame or message.
func junk(b []byte, channels [2]uint8) int {
	for i := 1; i < len(b); i++ {
		switch {
		case b[i] == frameMark && mayBeFrame(b[i:], channels):
			return i
		case (b[i-1] == '\n' || b[i-1] == '\r') && b[i] >= 'A' && beginsMessage(b[i:]) != no:
			return i
		}
	}
	return len(b)
}

// mayBeFrame judges by the first bytes. What is not there yet counts in favour.
func mayBeFrame(b []byte, channels [2]uint8) bool {
	if len(b) > 1 && b[1] != channels[0] && b[1] != channels[1] {
		return false
	}
	if len(b) <= frameHeader {
		return true
	}
	first := b[frameHeader]
	return first>>6 == 2 || first == 0x47 // RTP, RTCP, TS
}
