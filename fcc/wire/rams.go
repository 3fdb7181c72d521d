package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Rapid acquisition of multicast sessions, RFC 6285 §7. The common part:
//
//	12 kind of message (SFMT)   13 information: MSN   14 information: response code   16 TLVs
const (
	formatRAMS = 6

	ramsKindOffset = 12
	ramsMSNOffset  = 13
	ramsCodeOffset = 14
	ramsBytes      = 16

	ramsRequest     = 1
	ramsInformation = 2
	ramsTermination = 3

	ramsMedia     = 1
	ramsMinFill   = 2
	ramsMaxFill   = 3
	ramsMaxRate   = 4
	ramsPreamble  = 5
	ramsSender    = 31
	ramsFirst     = 32
	ramsJoin      = 33
	ramsDuration  = 34
	ramsBurstRate = 35
	ramsJoined    = 61

	// ramsGroup is a private extension (§7.1.2): the group and port that are
	// asked for, so that one feedback target can serve many channels. Other
	// servers skip it. Private types begin with an enterprise number; this one
	// stands for examples (RFC 5612 §2), and no one else's private types do.
	ramsGroup      = 128
	ramsEnterprise = 32473

	maxSources = 16
)

// Response codes, RFC 6285 §11.6. Those from 400 on are refusals, but for 511.
const (
	RAMSUpdate       = 100 // parameters have changed
	RAMSAccepted     = 200
	RAMSCompleted    = 201 // the server has ended the burst
	RAMSMalformed    = 400
	RAMSFailed       = 500 // an error of the server's own
	RAMSNoBandwidth  = 501
	RAMSUnavailable  = 506 // not for this stream
	RAMSNoStart      = 507 // no starting point to be had
	RAMSUnknown      = 509 // no such stream
	RAMSPreambleOnly = 511
	RAMSDenied       = 512 // by policy
)

// A RAMSRequest asks for a burst (RAMS-R, §7.2; client to feedback target).
type RAMSRequest struct {
	Client       uint32         // the client's own SSRC; stands in both places of the header
	Media        []uint32       // SSRCs wanted, at most 16; none: the whole session
	MinFill      time.Duration  // least fill of the receive buffer, whole ms; 0: not said
	MaxFill      time.Duration  // most fill of it
	MaxRate      uint64         // what the line takes, bit/s; 0: not said
	PreambleOnly bool           // a burst of the preamble alone would do
	Group        netip.AddrPort // channel, for a target that serves several; zero value: not said
}

// Append appends the message alone. Where reduced-size RTCP is not agreed on it
// stands behind what AppendCompound appends.
func (m *RAMSRequest) Append(dst []byte) []byte {
	at := len(dst)
	dst = appendRAMS(dst, ramsRequest, m.Client, m.Client)
	var media []byte
	for _, ssrc := range m.Media[:min(len(m.Media), maxSources)] {
		media = binary.BigEndian.AppendUint32(media, ssrc)
	}
	dst = appendTLV(dst, ramsMedia, media...)
	if m.MinFill > 0 {
		dst = appendTLV32(dst, ramsMinFill, milliseconds(m.MinFill))
	}
	if m.MaxFill > 0 {
		dst = appendTLV32(dst, ramsMaxFill, milliseconds(m.MaxFill))
	}
	if m.MaxRate > 0 {
		dst = appendTLV64(dst, ramsMaxRate, m.MaxRate)
	}
	if m.PreambleOnly {
		dst = appendTLV(dst, ramsPreamble)
	}
	if m.Group.IsValid() {
		value := binary.BigEndian.AppendUint32(nil, ramsEnterprise)
		value = binary.BigEndian.AppendUint16(value, m.Group.Port())
		dst = appendTLV(dst, ramsGroup, append(value, m.Group.Addr().AsSlice()...)...)
	}
	return resize(dst, at)
}

// ParseRAMSRequest parses the request.
func ParseRAMSRequest(p Packet) (RAMSRequest, error) {
	t, err := parseRAMS(p, "RAMS request", ramsRequest)
	if err != nil {
		return RAMSRequest{}, err
	}
	m := RAMSRequest{Client: p.Sender}
	for b := t[ramsMedia]; len(b) >= 4 && len(m.Media) < maxSources; b = b[4:] {
		m.Media = append(m.Media, binary.BigEndian.Uint32(b))
	}
	m.MinFill, m.MaxFill = t.milliseconds(ramsMinFill), t.milliseconds(ramsMaxFill)
	m.MaxRate, _ = t.number(ramsMaxRate)
	_, m.PreambleOnly = t[ramsPreamble]
	if b := t[ramsGroup]; len(b) > 6 && binary.BigEndian.Uint32(b) == ramsEnterprise {
		if addr, ok := netip.AddrFromSlice(b[6:]); ok {
			m.Group = netip.AddrPortFrom(addr, binary.BigEndian.Uint16(b[4:]))
		}
	}
	return m, nil
}

// A RAMSInformation answers a request, and tells of changes (RAMS-I, §7.3;
// server to client). What is nil was not said.
type RAMSInformation struct {
	Server    uint32         // SSRC of the server
	Media     uint32         // SSRC of the stream, as in the header
	MSN       byte           // grows with each change; repeats have the same
	Code      uint16         // response code
	Sender    *uint32        // SSRC of the stream's sender
	First     *uint16        // RTP sequence number of the burst's first packet
	Join      *time.Duration // earliest time to join after that packet, whole ms
	Duration  time.Duration  // of the burst, from that packet on; 0: not said
	BurstRate uint64         // most that is sent, bit/s; 0: not said
}

// Append appends the message alone, as RAMSRequest.Append does.
func (m *RAMSInformation) Append(dst []byte) []byte {
	at := len(dst)
	dst = appendRAMS(dst, ramsInformation, m.Server, m.Media)
	dst[at+ramsMSNOffset] = m.MSN
	binary.BigEndian.PutUint16(dst[at+ramsCodeOffset:], m.Code)
	if m.Sender != nil {
		dst = appendTLV32(dst, ramsSender, *m.Sender)
	}
	if m.First != nil {
		dst = appendTLV16(dst, ramsFirst, *m.First)
	}
	if m.Join != nil {
		dst = appendTLV32(dst, ramsJoin, milliseconds(*m.Join))
	}
	if m.Duration > 0 {
		dst = appendTLV32(dst, ramsDuration, milliseconds(m.Duration))
	}
	if m.BurstRate > 0 {
		dst = appendTLV64(dst, ramsBurstRate, m.BurstRate)
	}
	return resize(dst, at)
}

// ParseRAMSInformation parses the answer.
func ParseRAMSInformation(p Packet) (RAMSInformation, error) {
	t, err := parseRAMS(p, "RAMS information", ramsInformation)
	if err != nil {
		return RAMSInformation{}, err
	}
	m := RAMSInformation{Server: p.Sender, Media: p.Media, MSN: p.Bytes[ramsMSNOffset], Code: p.uint16(ramsCodeOffset)}
	if v, ok := t.number(ramsSender); ok {
		m.Sender = new(uint32(v))
	}
	if v, ok := t.number(ramsFirst); ok {
		m.First = new(uint16(v))
	}
	if _, ok := t.number(ramsJoin); ok {
		m.Join = new(t.milliseconds(ramsJoin))
	}
	m.Duration = t.milliseconds(ramsDuration)
	m.BurstRate, _ = t.number(ramsBurstRate)
	return m, nil
}

// A RAMSTermination ends a burst (RAMS-T, §7.4; client to feedback target).
type RAMSTermination struct {
	Client uint32
	Media  uint32  // SSRC of the stream
	First  *uint32 // extended sequence number of the first multicast packet; nil: stop at once
}

// Append appends the message alone, as RAMSRequest.Append does.
func (m *RAMSTermination) Append(dst []byte) []byte {
	at := len(dst)
	dst = appendRAMS(dst, ramsTermination, m.Client, m.Media)
	if m.First != nil {
		dst = appendTLV32(dst, ramsJoined, *m.First)
	}
	return resize(dst, at)
}

// ParseRAMSTermination parses the termination.
func ParseRAMSTermination(p Packet) (RAMSTermination, error) {
	t, err := parseRAMS(p, "RAMS termination", ramsTermination)
	if err != nil {
		return RAMSTermination{}, err
	}
	m := RAMSTermination{Client: p.Sender, Media: p.Media}
	if v, ok := t.number(ramsJoined); ok {
		m.First = new(uint32(v))
	}
	return m, nil
}

func appendRAMS(dst []byte, kind byte, sender, media uint32) []byte {
	dst, b := feedback(dst, formatRAMS, sender, media, ramsBytes)
	b[ramsKindOffset] = kind
	return dst
}

func parseRAMS(p Packet, name string, kind byte) (tlvs, error) {
	if err := p.check(name, formatRAMS, ramsBytes); err != nil {
		return nil, err
	}
	if found := p.Bytes[ramsKindOffset]; found != kind {
		return nil, fmt.Errorf("%w: %s: expected kind %d, found %d", ErrMessage, name, kind, found)
	}
	return parseTLVs(p.Bytes[ramsBytes:]), nil
}

func milliseconds(d time.Duration) uint32 {
	return uint32(min(max(d/time.Millisecond, 0), 1<<32-1))
}

// milliseconds is the value of a TLV in milliseconds; zero where there is none.
func (t tlvs) milliseconds(kind byte) time.Duration {
	v, _ := t.number(kind)
	return time.Duration(uint32(v)) * time.Millisecond
}
