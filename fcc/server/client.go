package server

import (
	"net/netip"
	"time"
)

const (
	// mostClients bounds the table of addresses. Each takes some 200 bytes.
	mostClients = 1 << 14

	// A client may ask so often: a zap is a request in up to four dialects,
	// three copies each, and a termination.
	requestRate, requestBurst = 40, 120

	// retransmitShare is the part of a client's rate that retransmissions may
	// take, and so many bytes may be asked for at once.
	retransmitShare = 10
	retransmitBurst = 256 << 10

	idleClient = time.Minute
)

// A client is an address that has asked for something.
type client struct {
	requests   bucket
	again      bucket // bytes of retransmissions
	sessions   int
	reserved   int64 // bit/s of its bursts
	trusted    time.Time
	seen       time.Time
	channel    *channel // that it asked for last
	retransmit uint16   // sequence number of its next retransmission
}

// A bucket is filled at a rate and never overflows.
type bucket struct {
	level, size, rate float64 // rate a second
	at                time.Time
}

func newBucket(rate, size float64, now time.Time) bucket { return bucket{size, size, rate, now} }

func (b *bucket) fill(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.size, b.level+d.Seconds()*b.rate)
		b.at = now
	}
}

// take takes n out, or nothing.
func (b *bucket) take(n float64, now time.Time) bool {
	b.fill(now)
	if b.level < n {
		return false
	}
	b.level -= n
	return true
}

// clients are the addresses that the machine remembers.
type clients struct {
	all   map[netip.Addr]*client
	swept time.Time
}

// get returns what is known of an address; nil where there is no room for it.
func (c *clients) get(a netip.Addr, now time.Time, clientRate int64) *client {
	if known := c.all[a]; known != nil {
		known.seen = now
		return known
	}
	if len(c.all) >= mostClients {
		c.sweep(now)
	}
	if len(c.all) >= mostClients {
		return nil
	}
	fresh := &client{
		requests: newBucket(requestRate, requestBurst, now),
		again:    newBucket(float64(clientRate)/8/retransmitShare, retransmitBurst, now),
		seen:     now,
	}
	c.all[a] = fresh
	return fresh
}

// sweep forgets addresses that nothing is owed to.
func (c *clients) sweep(now time.Time) {
	if now.Sub(c.swept) < time.Second {
		return
	}
	c.swept = now
	for a, known := range c.all {
		if known.sessions == 0 && now.After(known.trusted) && now.Sub(known.seen) > idleClient {
			delete(c.all, a)
		}
	}
}
