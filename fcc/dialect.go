package fcc

import (
	"net/netip"
	"time"

	"zapcast/fcc/wire"
)

// A subject is what a conversation is about, as far as messages tell it.
type subject struct {
	group      netip.AddrPort
	source     netip.Addr // of a source-specific group; zero value: any
	client     netip.Addr // our address
	mediaPort  uint16     // where the burst is to come
	signalPort uint16     // where Huawei's messages go out; mediaPort+1
	boxID      [16]byte
	ssrc       uint32 // ours, RAMS
	maxRate    uint64
	redirected bool   // this is not the first server that is asked
	stream     uint32 // SSRC of the group's stream as far as it is known, RAMS
}

type answerKind uint8

const (
	answerRefused  answerKind = iota + 1 // with a reason
	answerJoin                           // no burst needed or to be had
	answerBurst                          // granted
	answerRedirect                       // to another server
	answerSync                           // the burst has caught up
	answerUpdate                         // what the server had said has changed
)

// An answer is what a server says, in whichever dialect.
type answer struct {
	kind   answerKind
	reason string // of a refusal

	server     netip.Addr // of burst or redirect; zero value: unchanged
	sender     netip.Addr // of the burst, where it is another; zero value: not said
	signalPort uint16     // 0: unchanged
	mediaPort  uint16     // port that the burst comes from; 0: not said
	valid      time.Duration
	punch      []byte         // to be sent to the media port; nil: an empty datagram
	joinAfter  *time.Duration // RAMS: after the first packet of the burst
	stream     *uint32        // RAMS: SSRC of the group's stream
}

// A dialect turns messages of one kind into answers, and what is to be said
// into messages. It has no state.
type dialect interface {
	name() string

	// request is what asks for the burst.
	request(s *subject) []byte

	// answer understands a packet; false: it is not of this dialect.
	answer(s *subject, p wire.Packet) (answer, bool)

	// termination ends the burst; first is the sequence number up to which it
	// is needed, nil: stop at once.
	termination(s *subject, first *uint16) []byte

	// report is what tells the server now and then that the client is there;
	// nil: nothing.
	report(s *subject) []byte

	// twin reports whether signalling has a socket of its own.
	twin() bool
}

var dialects = []dialect{telecom{}, huawei{tlv: false}, huawei{tlv: true}, rams{}}

// dialectOf returns the dialect of a name, or nil.
func dialectOf(name string) dialect {
	for _, d := range dialects {
		if d.name() == name {
			return d
		}
	}
	return nil
}
