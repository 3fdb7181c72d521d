package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Huawei's dialect has two encodings of the same messages: values at fixed
// offsets, and TLVs behind a header of 16 bytes. The field TLV of each message
// says which. docs/fcc.md has the tables.
//
//	TLV header: 12 kind of message   13 sequence number, not used   14 response code
const (
	huaweiRequest     = 5
	huaweiResponse    = 6
	huaweiSync        = 8
	huaweiTermination = 9
	huaweiTLV         = 10

	huaweiRequestBytes     = 32
	huaweiLeastResponse    = 16 // enough to be told that there is no burst
	huaweiShortResponse    = 24
	huaweiLongResponse     = 36
	huaweiTerminationBytes = 16
	huaweiPunchBytes       = 8

	tlvKindOffset = 12
	tlvCodeOffset = 14
	tlvBytes      = 16

	tlvRequest     = 1
	tlvResponse    = 2
	tlvSync        = 3
	tlvTermination = 4
	tlvPunch       = 12
)

// Types of TLV. 32 and 61 are those of RFC 6285 too.
const (
	tlvFirst      = 32
	tlvJoined     = 61
	tlvGroup      = 128
	tlvSource     = 129
	tlvClient     = 130
	tlvClientPort = 131
	tlvRate       = 132
	tlvType       = 133
	tlvStatus     = 134
	tlvServer     = 139
	tlvRedirects  = 140
	tlvNAT        = 141
	tlvServerPort = 148
	tlvValid      = 149
	tlvPunchType  = 150
	tlvSession    = 151

	punchByServer = 3 // the value of tlvPunchType
)

// huaweiHeader appends the header of a message in either encoding.
func huaweiHeader(dst []byte, tlv bool, format, kind byte, code uint16, group netip.Addr, size int) (all, packet []byte) {
	if !tlv {
		return feedback(dst, format, 0, uint4(group), size)
	}
	dst, b := feedback(dst, huaweiTLV, 0, 0, tlvBytes)
	b[tlvKindOffset] = kind
	binary.BigEndian.PutUint16(b[tlvCodeOffset:], code)
	return dst, b
}

// huaweiParse checks a message in either encoding and finds its TLVs, which are
// nil where it has none.
func huaweiParse(p Packet, name string, format, kind byte, least int) (tlvs, error) {
	if p.Format != huaweiTLV {
		return nil, p.check(name, format, least)
	}
	if err := p.check(name+" in TLVs", huaweiTLV, tlvBytes); err != nil {
		return nil, err
	}
	if found := p.Bytes[tlvKindOffset]; found != kind {
		return nil, fmt.Errorf("%w: %s in TLVs: expected kind %d, found %d", ErrMessage, name, kind, found)
	}
	return parseTLVs(p.Bytes[tlvBytes:]), nil
}

// A HuaweiRequest asks for a burst (RSR; client to server, 32 bytes as values).
// The burst goes to the port below the one named in it. As values it tells
// neither the group's port nor its source.
//
//	20 client   24 client's signalling port   26 0x8000   28 0x20000000: redirects are understood
type HuaweiRequest struct {
	TLV            bool
	Group          netip.Addr
	Source         netip.Addr // TLV: sender of a source-specific channel; zero value: none
	Client         netip.Addr
	SignallingPort uint16
	Redirects      bool // the client follows redirects
	NAT            bool // TLV: the client can punch; as values it is always said
}

// Append appends the message.
func (m *HuaweiRequest) Append(dst []byte) []byte {
	at := len(dst)
	dst, b := huaweiHeader(dst, m.TLV, huaweiRequest, tlvRequest, 0, m.Group, huaweiRequestBytes)
	if !m.TLV {
		binary.BigEndian.PutUint32(b[20:], uint4(m.Client))
		binary.BigEndian.PutUint16(b[24:], m.SignallingPort)
		b[26] = 0x80
		if m.Redirects {
			b[28] = 0x20
		}
		return dst
	}
	dst = appendTLVAddr(dst, tlvGroup, m.Group)
	dst = appendTLVAddr(dst, tlvSource, m.Source)
	dst = appendTLVAddr(dst, tlvClient, m.Client)
	dst = appendTLV16(dst, tlvClientPort, m.SignallingPort)
	if m.Redirects {
		dst = appendTLV(dst, tlvRedirects, 1)
	}
	if m.NAT {
		dst = appendTLV16(dst, tlvNAT, 1)
	}
	return resize(dst, at)
}

// ParseHuaweiRequest parses the request in either encoding.
func ParseHuaweiRequest(p Packet) (HuaweiRequest, error) {
	t, err := huaweiParse(p, "Huawei request", huaweiRequest, tlvRequest, huaweiRequestBytes)
	switch {
	case err != nil:
		return HuaweiRequest{}, err
	case t == nil:
		return HuaweiRequest{
			Group:          p.group(),
			Client:         p.addr(20),
			SignallingPort: p.uint16(24),
			Redirects:      p.Bytes[28]&0x20 != 0,
			NAT:            true,
		}, nil
	}
	port, _ := t.number(tlvClientPort)
	redirects, _ := t.number(tlvRedirects)
	nat, _ := t.number(tlvNAT)
	return HuaweiRequest{
		TLV:            true,
		Group:          t.addr(tlvGroup),
		Source:         t.addr(tlvSource),
		Client:         t.addr(tlvClient),
		SignallingPort: uint16(port),
		Redirects:      redirects == 1,
		NAT:            nat > 0,
	}, nil
}

// Types of a HuaweiResponse, with the meaning of TelecomResponse's actions.
const (
	HuaweiJoin     = 1
	HuaweiBurst    = 2
	HuaweiRedirect = 3
)

// Results of a HuaweiResponse.
const (
	HuaweiOK     = 1 // as values; anything else is a refusal, 2 the usual one
	HuaweiTLVOK  = 200
	HuaweiTLVBad = 400
)

// A HuaweiResponse answers a request (RSI; server to client). As values it has
// 24 bytes (Short) or 36 and more.
//
//	12 result   16 first sequence number   24 flags, 0x20: punch            28 session
//	14 type     20 rate, kbit/s            26 server's port, see Port       32 server
type HuaweiResponse struct {
	TLV     bool
	Short   bool // as values: up to Rate, nothing else was said
	Group   netip.Addr
	Result  uint16
	Type    uint16        // HuaweiJoin, HuaweiBurst, HuaweiRedirect
	First   uint16        // sequence number that the burst begins with
	Rate    uint16        // of the burst, kbit/s
	NAT     bool          // a HuaweiPunch is wanted
	Port    uint16        // burst: port that it comes from; redirect: signalling port; 0: unchanged
	Session uint32        // for the punch
	Server  netip.Addr    // burst: where it comes from; redirect: the new server; zero value: unchanged
	Valid   time.Duration // TLV: how long a redirect may be kept
}

// OK reports whether the request was granted, or may have been: in TLVs only
// code 400 is known to be a refusal.
func (m *HuaweiResponse) OK() bool {
	if m.TLV {
		return m.Result != HuaweiTLVBad
	}
	return m.Result == HuaweiOK
}

// Append appends the message. Valid goes out in whole seconds.
func (m *HuaweiResponse) Append(dst []byte) []byte {
	at, size := len(dst), huaweiLongResponse
	if m.Short {
		size = huaweiShortResponse
	}
	dst, b := huaweiHeader(dst, m.TLV, huaweiResponse, tlvResponse, m.Result, m.Group, size)
	if !m.TLV {
		b[12] = byte(m.Result)
		binary.BigEndian.PutUint16(b[14:], m.Type)
		binary.BigEndian.PutUint16(b[16:], m.First)
		binary.BigEndian.PutUint16(b[20:], m.Rate)
		if m.Short {
			return dst
		}
		if m.NAT {
			b[24] = 0x20
		}
		binary.BigEndian.PutUint16(b[26:], m.Port)
		binary.BigEndian.PutUint32(b[28:], m.Session)
		binary.BigEndian.PutUint32(b[32:], uint4(m.Server))
		return dst
	}
	dst = appendTLVAddr(dst, tlvGroup, m.Group)
	dst = appendTLV16(dst, tlvType, m.Type)
	dst = appendTLV16(dst, tlvFirst, m.First)
	dst = appendTLV16(dst, tlvRate, m.Rate)
	dst = appendTLVAddr(dst, tlvServer, m.Server)
	dst = appendTLV16(dst, tlvServerPort, m.Port)
	if m.NAT {
		dst = appendTLV16(dst, tlvNAT, 1)
		dst = appendTLV32(dst, tlvSession, m.Session)
	}
	if m.Valid > 0 {
		dst = appendTLV32(dst, tlvValid, seconds(m.Valid))
	}
	return resize(dst, at)
}

// ParseHuaweiResponse parses the answer in either encoding. As values it must
// be long enough for its type: 16 bytes to be told that there is no burst, 24
// for a burst, 36 for a redirect. A length between 24 and 35 is Short.
func ParseHuaweiResponse(p Packet) (HuaweiResponse, error) {
	t, err := huaweiParse(p, "Huawei response", huaweiResponse, tlvResponse, huaweiLeastResponse)
	if err != nil {
		return HuaweiResponse{}, err
	}
	if t != nil {
		return huaweiTLVResponse(p, t), nil
	}
	m := HuaweiResponse{Group: p.group(), Result: uint16(p.Bytes[12]), Type: p.uint16(14)}
	least := huaweiLeastResponse
	switch {
	case !m.OK():
	case m.Type == HuaweiBurst:
		least = huaweiShortResponse
	case m.Type == HuaweiRedirect:
		least = huaweiLongResponse
	}
	if err := p.check("Huawei response of that type", huaweiResponse, least); err != nil {
		return HuaweiResponse{}, err
	}
	m.Short = len(p.Bytes) < huaweiLongResponse
	if len(p.Bytes) >= huaweiShortResponse {
		m.First, m.Rate = p.uint16(16), p.uint16(20)
	}
	if !m.Short {
		m.NAT = p.Bytes[24]&0x20 != 0
		m.Port, m.Session, m.Server = p.uint16(26), p.uint32(28), p.addr(32)
	}
	return m, nil
}

func huaweiTLVResponse(p Packet, t tlvs) HuaweiResponse {
	number := func(kind byte) uint64 { v, _ := t.number(kind); return v }
	return HuaweiResponse{
		TLV:     true,
		Group:   t.addr(tlvGroup),
		Result:  p.uint16(tlvCodeOffset),
		Type:    uint16(number(tlvType)),
		First:   uint16(number(tlvFirst)),
		Rate:    uint16(number(tlvRate)),
		NAT:     number(tlvNAT) > 0,
		Port:    uint16(number(tlvServerPort)),
		Session: uint32(number(tlvSession)),
		Server:  t.addr(tlvServer),
		Valid:   time.Duration(uint32(number(tlvValid))) * time.Second,
	}
}

// A HuaweiSync says that the burst has caught up (SCN; server to client). The
// header alone is enough.
type HuaweiSync struct {
	TLV   bool
	Group netip.Addr // as values only
}

// Append appends the message.
func (m *HuaweiSync) Append(dst []byte) []byte {
	dst, _ = huaweiHeader(dst, m.TLV, huaweiSync, tlvSync, 0, m.Group, headerBytes)
	return dst
}

// ParseHuaweiSync parses the sync notice in either encoding. As values one of 8
// bytes, which names no group, passes too.
func ParseHuaweiSync(p Packet) (HuaweiSync, error) {
	t, err := huaweiParse(p, "Huawei sync notice", huaweiSync, tlvSync, leastPacket)
	if err != nil {
		return HuaweiSync{}, err
	}
	if t != nil {
		return HuaweiSync{TLV: true}, nil
	}
	return HuaweiSync{Group: p.group()}, nil
}

// A HuaweiTermination ends a burst (SCR; client to server, 16 bytes as values).
//
//	12 status: 1 joined, 2 cannot join   14 first multicast sequence number
type HuaweiTermination struct {
	TLV    bool
	Group  netip.Addr
	Source netip.Addr // TLV: as in the request
	Forced bool       // stop at once; First means nothing
	First  uint16     // the burst is needed up to here
}

const (
	huaweiJoined     = 1
	huaweiCannotJoin = 2
)

// Append appends the message.
func (m *HuaweiTermination) Append(dst []byte) []byte {
	at, first, status := len(dst), m.First, byte(huaweiJoined)
	if m.Forced {
		first, status = 0, huaweiCannotJoin
	}
	dst, b := huaweiHeader(dst, m.TLV, huaweiTermination, tlvTermination, 0, m.Group, huaweiTerminationBytes)
	if !m.TLV {
		b[12] = status
		binary.BigEndian.PutUint16(b[14:], first)
		return dst
	}
	dst = appendTLVAddr(dst, tlvGroup, m.Group)
	dst = appendTLVAddr(dst, tlvSource, m.Source)
	dst = appendTLV32(dst, tlvJoined, uint32(first))
	dst = appendTLV(dst, tlvStatus, status)
	return resize(dst, at)
}

// ParseHuaweiTermination parses the termination in either encoding.
func ParseHuaweiTermination(p Packet) (HuaweiTermination, error) {
	t, err := huaweiParse(p, "Huawei termination", huaweiTermination, tlvTermination, huaweiTerminationBytes)
	if err != nil {
		return HuaweiTermination{}, err
	}
	m := HuaweiTermination{TLV: t != nil, Group: p.group()}
	if m.TLV {
		status, _ := t.number(tlvStatus)
		first, _ := t.number(tlvJoined)
		m.Group, m.Source = t.addr(tlvGroup), t.addr(tlvSource)
		m.Forced, m.First = status != huaweiJoined, uint16(first)
	} else {
		m.Forced, m.First = p.Bytes[12] != huaweiJoined, p.uint16(14)
	}
	if m.Forced {
		m.First = 0
	}
	return m, nil
}

// A HuaweiPunch opens the way for the burst through a translating router
// (client to the server's media port, from the media socket). As values it is
// no RTCP but 8 bytes: 00 03 00 00 and the session.
type HuaweiPunch struct {
	TLV     bool
	Session uint32
}

// Append appends the message.
func (m *HuaweiPunch) Append(dst []byte) []byte {
	at := len(dst)
	if !m.TLV {
		return binary.BigEndian.AppendUint32(append(dst, 0, 3, 0, 0), m.Session)
	}
	dst, _ = huaweiHeader(dst, true, 0, tlvPunch, 0, netip.Addr{}, 0)
	dst = appendTLV(dst, tlvPunchType, punchByServer)
	dst = appendTLV32(dst, tlvSession, m.Session)
	return resize(dst, at)
}

// ParseHuaweiPunch parses a datagram that is a punch in either encoding.
func ParseHuaweiPunch(b []byte) (HuaweiPunch, error) {
	if len(b) == huaweiPunchBytes && b[0] == 0 && b[1] == 3 && b[2] == 0 && b[3] == 0 {
		return HuaweiPunch{Session: binary.BigEndian.Uint32(b[4:])}, nil
	}
	p, _, err := Next(b)
	if err != nil || p.Format != huaweiTLV {
		return HuaweiPunch{}, fmt.Errorf("%w: expected a Huawei punch", ErrMessage)
	}
	t, err := huaweiParse(p, "Huawei punch", huaweiTLV, tlvPunch, tlvBytes)
	if err != nil {
		return HuaweiPunch{}, err
	}
	session, _ := t.number(tlvSession)
	return HuaweiPunch{TLV: true, Session: uint32(session)}, nil
}
