package server

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"

	"zapcast/tune"
)

const (
	serverName = "zapcast"
	methods    = "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, GET_PARAMETER, SET_PARAMETER, TEARDOWN"

	// sessionTimeout is how long a session may go without a word from the client,
	// where nothing else shows that he is there.
	sessionTimeout = 60 * time.Second

	// maxFailures is how many wrong passwords one connection may try.
	maxFailures = 4
)

// A state is where a client's session is.
//
//	idle ──SETUP──► ready ──PLAY──► playing ⇄ PAUSE, PLAY ⇄ paused
//	 └───────────────┴──────TEARDOWN───┴───────────────────┴──► over
type state int

const (
	idle state = iota
	ready
	playing
	paused
	over
)

// A machine is the protocol of one connection: bytes of the client in, actions
// for its driver out. It has no socket, no clock and no goroutine, and belongs to
// whoever drives it.
type machine struct {
	digest *digest // nil: nobody is asked for a password
	local  string  // the address that the client speaks to, for the SDP
	id     string  // of the session
	agent  string

	buf     []byte // received, not looked at yet
	skip    int    // bytes of an interleaved frame that are still to come
	state   state
	request *request // the one that waits for the driver
	channel tune.Channel
	place   place // of channel
	offers  []transport
	chosen  transport
	ssrc    uint32
}

// An action is what the driver has to do next.
type action struct {
	kind  kind
	reply []byte // to be sent, before anything else
}

type kind int

const (
	wait   kind = iota // for more of the client's bytes
	send               // reply, and ask for the next action
	lookup             // find the channel at place: call found
	settle             // choose from offers: call settled
	start              // open the channel, and call started when its first packet is known, or failed
	resume             // let the stream go on, and call started
	pause              // stop the stream for now
	end                // close the connection
)

// feed takes bytes of the client. It does not keep b.
func (m *machine) feed(b []byte) {
	if m.state == over {
		return
	}
	n := min(m.skip, len(b))
	m.skip -= n
	m.buf = append(m.buf, b[n:]...)
}

// next returns the next action. While the driver is at work on one that it has
// to answer, it must not ask.
func (m *machine) next() action {
	for m.state != over {
		if len(m.buf) > 0 && m.buf[0] == '$' { // the client's reports
			if len(m.buf) < frameHeader {
				return action{}
			}
			n := frameHeader + int(binary.BigEndian.Uint16(m.buf[2:]))
			m.skip = max(n-len(m.buf), 0)
			m.consume(min(n, len(m.buf)))
			continue
		}
		r, n, err := parseRequest(m.buf)
		if errors.Is(err, errPartial) {
			if len(m.buf) > maxBuffer {
				return m.giveUp(nil, tune.Refuse(statusHeaderTooLarge, "expected requests of at most %d bytes", maxBuffer))
			}
			return action{}
		}
		if err != nil {
			return m.giveUp(r, err)
		}
		m.consume(n)
		if agent := r.get("User-Agent"); agent != "" {
			m.agent = strings.Clone(agent[:min(len(agent), maxAgent)])
		}
		return m.handle(r)
	}
	return action{kind: end}
}

const maxAgent = 200

// consume takes n bytes off the buffer, and gives up an empty one.
func (m *machine) consume(n int) {
	if m.buf = m.buf[n:]; len(m.buf) == 0 {
		m.buf = nil
	}
}

// handle answers one request.
func (m *machine) handle(r *request) action {
	switch {
	case r.get("Require") != "" || r.get("Proxy-Require") != "":
		w := respond(r, 551)
		w.field("Unsupported", oneLine(r.get("Require")+r.get("Proxy-Require")))
		return action{send, w.end("", "")}
	case r.method == "OPTIONS": // also the first word of a client who does not know yet that he needs a password
		w := m.reply(r, 200)
		w.field("Public", methods)
		return action{send, w.end("", "")}
	case m.digest != nil && !m.digest.allows(r):
		return m.challenge(r)
	}
	if id, _, _ := strings.Cut(r.get("Session"), ";"); id != "" && strings.TrimSpace(id) != m.id || m.state == idle && needsSession(r.method) {
		return m.refuse(r, tune.Refuse(454, "there is no such session"))
	}
	switch r.method {
	case "DESCRIBE", "SETUP":
		return m.prepare(r)
	case "PLAY":
		return m.play(r)
	case "PAUSE":
		if m.state != playing {
			return m.refuse(r, tune.Refuse(455, "nothing is played"))
		}
		m.state = paused
		return action{pause, m.reply(r, 200).end("", "")}
	case "GET_PARAMETER":
		return action{send, m.reply(r, 200).end("", "")}
	case "SET_PARAMETER":
		if r.get("Content-Type") != "" {
			return m.refuse(r, tune.Refuse(451, "there are no parameters to set"))
		}
		return action{send, m.reply(r, 200).end("", "")}
	case "TEARDOWN":
		m.state = over
		return action{end, m.reply(r, 200).end("", "")}
	case "ANNOUNCE", "RECORD", "REDIRECT":
		w := m.reply(r, 405)
		w.field("Allow", methods)
		return action{send, w.end("", "")}
	}
	return m.refuse(r, tune.Refuse(501, "expected one of the methods %s, found %s", methods, tune.Quote(r.method)))
}

func needsSession(method string) bool {
	return method == "PLAY" || method == "PAUSE" || method == "TEARDOWN"
}

// prepare begins the answer to DESCRIBE and SETUP, which need the channel.
func (m *machine) prepare(r *request) action {
	if m.state != idle && m.state != ready {
		return m.refuse(r, tune.Refuse(455, "a stream is running on this connection"))
	}
	at, err := parsePlace(r.url)
	if err != nil {
		return m.refuse(r, err)
	}
	if r.method == "SETUP" {
		if m.offers, err = parseTransports(r.get("Transport")); err != nil {
			return m.refuse(r, err)
		}
	}
	m.request = r
	if m.channel.Open != nil && m.place.path == at.path {
		return m.found(m.channel, nil)
	}
	m.place = at
	return action{kind: lookup}
}

// found takes the channel that was looked up.
func (m *machine) found(channel tune.Channel, err error) action {
	r := m.request
	if err != nil {
		m.channel = tune.Channel{}
		return m.refuse(r, err)
	}
	m.channel, m.ssrc = channel, ssrcOf(channel.Key)
	if r.method == "SETUP" {
		return action{kind: settle}
	}
	w := m.reply(r, 200)
	w.field("Content-Base", m.place.base+"/")
	w.field("Cache-Control", "no-cache")
	return action{send, w.end("application/sdp", m.describe())}
}

// describe is the channel's session description (RFC 4566).
func (m *machine) describe() string {
	return strings.Join([]string{
		"v=0",
		"o=- 1 1 IN " + m.local,
		"s=" + oneLine(m.channel.Key),
		"c=IN " + m.local,
		"t=0 0",
		"a=control:*",
		"m=video 0 RTP/AVP 33",
		"a=rtpmap:33 MP2T/90000",
		"a=control:" + track,
		"",
	}, "\r\n")
}

// settled takes the transport that was chosen, and what the Transport header says
// about it behind the profile.
func (m *machine) settled(t transport, parameters string, err error) action {
	r := m.request
	if err != nil {
		return m.refuse(r, err)
	}
	m.chosen, m.state = t, ready
	w := m.reply(r, 200)
	w.field("Transport", t.profile+";"+parameters+";ssrc="+hex32(m.ssrc)+`;mode="PLAY"`)
	w.field("Cache-Control", "no-cache")
	return action{send, w.end("", "")}
}

// play begins the answer to PLAY. The position that it may ask for is not heard:
// there is only now.
func (m *machine) play(r *request) action {
	m.request = r
	switch m.state {
	case ready:
		return action{kind: start}
	case paused:
		return action{kind: resume}
	}
	return action{send, m.reply(r, 200).end("", "")} // some clients keep alive with it
}

// begun is started for a stream of which the first packet may not be known.
func (m *machine) begun(b beginning) []byte {
	if b.feed == nil {
		m.state = playing
		return m.reply(m.request, 200).end("", "")
	}
	return m.started(uint16(b.first), b.at)
}

// started returns the answer to PLAY, now that the first packet is known.
func (m *machine) started(sequence uint16, at time.Time) []byte {
	m.state = playing
	w := m.reply(m.request, 200)
	w.field("RTP-Info", "url="+m.place.base+"/"+track+";seq="+strconv.Itoa(int(sequence))+";rtptime="+strconv.FormatUint(uint64(rtpTime(at)), 10))
	return w.end("", "")
}

// failed answers a PLAY that could not be done.
func (m *machine) failed(err error) action { return m.refuse(m.request, err) }

// reply begins a response, with the session where there is one.
func (m *machine) reply(r *request, code int) *response {
	w := respond(r, code)
	if m.state != idle {
		w.field("Session", m.id+";timeout="+strconv.Itoa(int(sessionTimeout/time.Second)))
	}
	return w
}

// refuse answers with the code and the reason of err.
func (m *machine) refuse(r *request, err error) action {
	var refused *tune.StatusError
	if !errors.As(err, &refused) {
		refused = &tune.StatusError{Code: 503, Reason: err.Error()}
	}
	return action{send, m.reply(r, refused.Code).end("text/plain; charset=utf-8", oneLine(refused.Reason)+"\r\n")}
}

// giveUp refuses what cannot be told apart from what follows it.
func (m *machine) giveUp(r *request, err error) action {
	a := m.refuse(r, err)
	m.state = over
	return action{end, a.reply}
}

// challenge asks for a password; not for ever.
func (m *machine) challenge(r *request) action {
	if r.get("Authorization") != "" {
		m.digest.failures++
	}
	w := m.reply(r, 401)
	w.field("WWW-Authenticate", m.digest.challenge())
	a := action{send, w.end("", "")}
	if m.digest.failures >= maxFailures {
		m.state = over
		a.kind = end
	}
	return a
}

// oneLine keeps a text from being more than one line of a header or an SDP.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
}

func hex32(n uint32) string {
	const digits = "0123456789ABCDEF"
	var b [8]byte
	for i := range b {
		b[i] = digits[n>>(28-4*i)&15]
	}
	return string(b[:])
}
