package wire

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// Formats of the telecom dialect. docs/fcc.md has the tables.
const (
	telecomRequest     = 2
	telecomResponse    = 3
	telecomSync        = 4
	telecomTermination = 5
	telecomPunch       = 31

	telecomRequestBytes     = 40
	telecomResponseBytes    = 36
	telecomTerminationBytes = 16
	telecomPunchBytes       = 32
)

// A TelecomRequest asks for a burst (client to server, 40 bytes).
//
//	 0 header, group as media SSRC   16 client's media port   20 group
//	12 version 0, 3 bytes reserved   18 port of the group     24 box id, 16 bytes
type TelecomRequest struct {
	Client    netip.Addr     // FiberHome: the client, as sender SSRC; elsewhere zero
	Group     netip.AddrPort // IPv4
	MediaPort uint16         // where the burst is to go, at the sender's address
	Reserved  byte           // the three bytes after the version: boxes send 0x00 or 0xFF
	ID        [16]byte       // of the box, mostly zeros
}

// Append appends the message.
func (m *TelecomRequest) Append(dst []byte) []byte {
	dst, b := feedback(dst, telecomRequest, uint4(m.Client), uint4(m.Group.Addr()), telecomRequestBytes)
	b[13], b[14], b[15] = m.Reserved, m.Reserved, m.Reserved
	binary.BigEndian.PutUint16(b[16:], m.MediaPort)
	binary.BigEndian.PutUint16(b[18:], m.Group.Port())
	binary.BigEndian.PutUint32(b[20:], uint4(m.Group.Addr()))
	copy(b[24:], m.ID[:])
	return dst
}

// ParseTelecomRequest parses the request. The group counts where it stands in
// the body, else in the header.
func ParseTelecomRequest(p Packet) (TelecomRequest, error) {
	if err := p.check("telecom request", telecomRequest, telecomRequestBytes); err != nil {
		return TelecomRequest{}, err
	}
	group := p.addr(20)
	if !group.IsValid() {
		group = p.group()
	}
	return TelecomRequest{
		Client:    addr4(p.Sender),
		Group:     netip.AddrPortFrom(group, p.uint16(18)),
		MediaPort: p.uint16(16),
		Reserved:  p.Bytes[13],
		ID:        [16]byte(p.Bytes[24:]),
	}, nil
}

// Actions of a TelecomResponse.
const (
	TelecomJoin     = 1 // no burst: join now; 0 is taken for it as well
	TelecomBurst    = 2 // the burst follows
	TelecomRedirect = 3 // ask another server
)

// A TelecomResponse answers a request (server to client, 36 bytes or more).
//
//	12 result   14 new signalling port   18 flags                  24 valid time, s
//	13 action   16 media port            20 new server, 0: stays   28 rate, bit/s   32 rate after sync
type TelecomResponse struct {
	Group          netip.Addr
	Result         byte       // 0: well; 2 is common where a channel has no FCC
	Action         byte       // TelecomJoin, TelecomBurst, TelecomRedirect
	SignallingPort uint16     // 0: unchanged
	MediaPort      uint16     // port that the burst comes from; 0: not stated
	Punch          bool       // FiberHome: the server takes a TelecomPunch
	Server         netip.Addr // zero value: unchanged
	Valid          time.Duration
	Rate           uint32 // of the burst, bit/s
	RateAfter      uint32 // after the sync notice, bit/s
}

// Append appends the message. Valid goes out in whole seconds.
func (m *TelecomResponse) Append(dst []byte) []byte {
	dst, b := feedback(dst, telecomResponse, 0, uint4(m.Group), telecomResponseBytes)
	b[12], b[13] = m.Result, m.Action
	binary.BigEndian.PutUint16(b[14:], m.SignallingPort)
	binary.BigEndian.PutUint16(b[16:], m.MediaPort)
	if m.Punch {
		b[18] = 0x80
	}
	binary.BigEndian.PutUint32(b[20:], uint4(m.Server))
	binary.BigEndian.PutUint32(b[24:], seconds(m.Valid))
	binary.BigEndian.PutUint32(b[28:], m.Rate)
	binary.BigEndian.PutUint32(b[32:], m.RateAfter)
	return dst
}

// ParseTelecomResponse parses the answer.
func ParseTelecomResponse(p Packet) (TelecomResponse, error) {
	if err := p.check("telecom response", telecomResponse, telecomResponseBytes); err != nil {
		return TelecomResponse{}, err
	}
	return TelecomResponse{
		Group:          p.group(),
		Result:         p.Bytes[12],
		Action:         p.Bytes[13],
		SignallingPort: p.uint16(14),
		MediaPort:      p.uint16(16),
		Punch:          p.Bytes[18]&0x80 != 0,
		Server:         p.addr(20),
		Valid:          time.Duration(p.uint32(24)) * time.Second,
		Rate:           p.uint32(28),
		RateAfter:      p.uint32(32),
	}, nil
}

func seconds(d time.Duration) uint32 { return uint32(min(max(d/time.Second, 0), 1<<32-1)) }

// A TelecomSync says that the burst has caught up: join now (server to client,
// the header alone).
type TelecomSync struct {
	Group netip.Addr
}

// Append appends the message.
func (m *TelecomSync) Append(dst []byte) []byte {
	dst, _ = feedback(dst, telecomSync, 0, uint4(m.Group), headerBytes)
	return dst
}

// ParseTelecomSync parses the sync notice. Any RTCP packet type passes, and one
// of 8 bytes, which names no group: servers have been seen to be free with both.
func ParseTelecomSync(p Packet) (TelecomSync, error) {
	p.Type = TypeFeedback
	if err := p.check("telecom sync notice", telecomSync, leastPacket); err != nil {
		return TelecomSync{}, err
	}
	return TelecomSync{Group: p.group()}, nil
}

// A TelecomTermination ends a burst (client to server, 16 bytes).
//
//	12 stop flag, 0   14 first multicast sequence number
type TelecomTermination struct {
	Group  netip.Addr
	Forced bool   // stop at once; First means nothing
	First  uint16 // the burst is needed up to here
}

// Append appends the message.
func (m *TelecomTermination) Append(dst []byte) []byte {
	dst, b := feedback(dst, telecomTermination, 0, uint4(m.Group), telecomTerminationBytes)
	if m.Forced {
		b[12] = 1
	} else {
		binary.BigEndian.PutUint16(b[14:], m.First)
	}
	return dst
}

// ParseTelecomTermination parses the termination.
func ParseTelecomTermination(p Packet) (TelecomTermination, error) {
	if err := p.check("telecom termination", telecomTermination, telecomTerminationBytes); err != nil {
		return TelecomTermination{}, err
	}
	m := TelecomTermination{Group: p.group(), Forced: p.Bytes[12] != 0}
	if !m.Forced {
		m.First = p.uint16(14)
	}
	return m, nil
}

// A TelecomPunch opens the way for the burst through a translating router
// (FiberHome; client to the server's media port, 32 bytes). Its length field
// says 20, which is not its length.
//
//	4 client   8 group   12 box id, 16 bytes   28 zero
type TelecomPunch struct {
	Client, Group netip.Addr
	ID            [16]byte
}

// Append appends the message.
func (m *TelecomPunch) Append(dst []byte) []byte {
	dst, b := feedback(dst, telecomPunch, uint4(m.Client), uint4(m.Group), telecomPunchBytes)
	binary.BigEndian.PutUint16(b[2:], 20)
	copy(b[12:], m.ID[:])
	return dst
}

// ParseTelecomPunch parses the punch.
func ParseTelecomPunch(p Packet) (TelecomPunch, error) {
	if err := p.check("telecom punch", telecomPunch, telecomPunchBytes); err != nil {
		return TelecomPunch{}, err
	}
	return TelecomPunch{Client: addr4(p.Sender), Group: p.group(), ID: [16]byte(p.Bytes[12:])}, nil
}
