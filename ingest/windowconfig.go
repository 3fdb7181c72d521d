package ingest

import "time"

const (
	// defaultWindowPackets lets a stream of 10 000 packets/s (100 Mbit/s, three
	// times what 4K needs) use the whole hold time; above that the window gets
	// shorter in time. Memory is taken only as far as holes really reach.
	defaultWindowPackets = 512

	// maxWindowPackets keeps every distance inside the window clear of half the
	// sequence space, where before and after change places.
	maxWindowPackets = 1 << 14

	// defaultWindowBytes holds defaultWindowPackets of the usual 1316 bytes; it
	// is there for datagrams that are far larger.
	defaultWindowBytes = 1 << 20

	// With a repair the window spans what comes within half a second of a stream
	// of 8000 packets/s (80 Mbit/s).
	repairWindowPackets = 4096
	repairWindowBytes   = 6 << 20

	// defaultHold outlasts the reordering of bonded lines, Wi-Fi and multi-queue
	// hosts, and is short enough for decoders to bridge.
	defaultHold = 50 * time.Millisecond

	// A cold stream may begin in the middle of a swapped pair. Eight packets are
	// 10 ms of an ordinary channel; the time bound is for slow ones.
	defaultCollect     = 8
	defaultCollectTime = 15 * time.Millisecond

	// farDistance is how far ahead or behind a sequence number must be to be
	// taken for a corrupt packet or a restarted sender, not for loss or delay.
	farDistance = 500
)

// WindowConfig bounds a Window. The zero value means the defaults.
type WindowConfig struct {
	// Packets is how many sequence numbers the window spans, from the one that
	// goes out next to the highest held. Default 512, at most 16384.
	Packets int

	// Bytes bounds the payload that is held, and the memory kept for reuse.
	// Default 1 MiB.
	Bytes int

	// Hold is how long a packet waits for those before it. Default 50 ms.
	Hold time.Duration

	// Collect and CollectTime bound the wait before the first delivery, in which
	// the lowest sequence number is looked for. Default 8 packets or 15 ms; with
	// Collect 1 the stream starts with its first packet.
	Collect     int
	CollectTime time.Duration
}

func (c WindowConfig) withDefaults() WindowConfig {
	if c.Packets <= 0 {
		c.Packets = defaultWindowPackets
	}
	if c.Bytes <= 0 {
		c.Bytes = defaultWindowBytes
	}
	if c.Hold <= 0 {
		c.Hold = defaultHold
	}
	if c.Collect <= 0 {
		c.Collect = defaultCollect
	}
	if c.CollectTime <= 0 {
		c.CollectTime = defaultCollectTime
	}
	c.Packets = min(c.Packets, maxWindowPackets)
	c.Collect = min(c.Collect, c.Packets)
	return c
}

// WindowStats counts what a window has done since it was made.
type WindowStats struct {
	Lost       int64 // sequence numbers given up on, and those that a jump ahead left out
	Reordered  int64 // packets that came after a higher number and were put in their place
	Duplicates int64 // packets whose sequence number had been seen
	Late       int64 // packets that came after their number had been given up on
	Resyncs    int64 // restarts and jumps of the sender that were followed
	Foreign    int64 // packets of another numbering that was not followed
	Held       int   // packets that wait now
}
