package ingest

import "time"

// A Sink takes what a Source yields.
type Sink interface {
	// Append takes whole TS packets in stream order. Every slice is a multiple
	// of 188 bytes long and begins with a sync byte; the slices and what they
	// point to are the source's again once Append has returned.
	Append(ts [][]byte)
}

// A Source is one upstream: it turns what a network sends into TS packets in
// order. It is driven by one loop: every method but Close is called from that
// loop's goroutine only, and none of them blocks.
type Source interface {
	// Drain hands what has arrived to sink: about max datagrams at most. It
	// reports whether more is waiting. It also gives up on holes whose time is
	// over, so it is called each tick, whether or not anything has arrived.
	Drain(now time.Time, max int, sink Sink) (more bool)

	// Interval is the longest time that may pass until the next Drain without
	// the risk of an overflow, judged by the buffer that the kernel granted and
	// the rate seen so far. Zero means that the source does not mind.
	Interval() time.Duration

	// Status returns what the source knows of itself.
	Status() Status

	// Seen says in a few words what has arrived so far ("joined on eth0
	// (192.0.2.7), nothing received"), for the viewer who waits in vain.
	Seen() string

	// Rejoin asks the network for the stream again, without losing what is
	// still coming in. It is called when a stream has fallen silent.
	Rejoin()

	// Close leaves the network. It is called once, after the last Drain.
	Close() error
}

// A Session is a Source that has a beginning and an end of its own: what a server
// sends to one client. Its methods are called as those of Source are.
type Session interface {
	Source

	// Ended is nil as long as something may still come. Then it is io.EOF where
	// the stream has come to its end, or says what broke it off. All that came
	// before has been handed on by then.
	Ended() error

	// Private reports whether the stream is one viewer's own, because it begins
	// where he wants it to. Nobody needs it once he has gone.
	Private() bool

	// Waits reports whether what is not drained waits, and the server with it,
	// so that nothing is lost: TCP.
	Waits() bool
}

// Status is a snapshot of a source. Counters start at zero when it is opened.
type Status struct {
	Source    string // the resolved resource, e.g. "rtp://198.51.100.1@239.1.1.1:5000"
	Interface string // network interface in use, e.g. "eth0"
	Local     string // address joined on, where there is one
	Sender    string // address that data was last seen to come from
	Payload   string // "mp2t-rtp" or "mp2t-direct" once known
	Receive   string // "ring", "socket" or "plain", and after a colon why not by the ring

	Datagrams  int64 // everything received
	Bytes      int64 // TS bytes handed on
	Packets    int64 // RTP packets, or bare TS datagrams, handed on
	Lost       int64 // sequence numbers given up on
	Reordered  int64 // packets that came late and were put in their place
	Duplicates int64 // packets whose sequence number had been seen
	Resyncs    int64 // sender restarts and jumps that the window followed
	Foreign    int64 // datagrams that are neither RTP nor TS
	RTCP       int64 // datagrams of RTCP, which carry no stream
	FEC        int64 // datagrams of parity
	Malformed  int64 // RTP whose lengths contradict each other, cut datagrams
	BadTS      int64 // RTP payloads that are not whole TS packets
	Overflow   int64 // datagrams that the kernel dropped, receive buffer full

	Losses LossMap       // what was missed, and what brought it back
	Repair *RepairStatus // what repairs the stream; nil: nothing does

	ReceiveBuffer int       // bytes granted by the kernel
	LastData      time.Time // zero before the first TS packet
	Warnings      []string  // what an operator should know, in plain words

	Session *SessionStatus // nil: no server is asked
	FCC     *FCCStatus     // nil: fast channel change was not asked for
}

// What a stream began with.
const (
	StartBurst     = "burst"     // of fast channel change
	StartMulticast = "multicast" // the group alone
)

// SessionStatus is what a server says of the session that it serves.
type SessionStatus struct {
	Transport string        // how the media comes: "tcp-interleaved", "udp" or "multicast"
	Scale     string        // of the playback, as the server writes it; empty: not told
	Range     string        // the same of the part that is played
	Duration  time.Duration // of a recording; 0: open-ended or not told
}

// FCCStatus is a snapshot of one fast channel change. Times count from the
// source's opening and are zero until then.
type FCCStatus struct {
	Kind      string // StartBurst or StartMulticast, empty while not decided
	Reason    string // why there was no burst, or why it was given up; empty: it led into the multicast
	Server    string // that was named, "192.0.2.1:8027"
	Asked     string // that was asked last, after redirects
	Dialect   string // that it answered in; empty: none
	State     string // of the conversation; empty: it is over
	Open      bool   // the server may be sending
	ReplyTime time.Duration

	FirstByte    time.Duration // something was handed on
	RandomAccess time.Duration // a point at which a decoder can start was
	HandOver     time.Duration // the multicast goes its own way

	BurstPackets, BurstBytes int64
	HeldBytes, HeldPeak      int // multicast that waits for the burst, now and at most
}

// A Flow is one multicast membership and the datagrams that come with it.
type Flow interface {
	// Read returns the datagrams that wait, about max of them at most, and
	// whether there are more. They stay valid until the next Read on any flow
	// of the same receiver, or its End. A truncated datagram is left out and
	// counted.
	Read(max int) (datagrams [][]byte, more bool)

	// Status fills in what the flow knows: Interface, Local, Sender,
	// Receive, Datagrams, Malformed, Overflow, ReceiveBuffer, Warnings.
	Status(*Status)

	// Interval is as in Source.
	Interval() time.Duration

	// Rejoin is as in Source.
	Rejoin()

	// Close leaves the group.
	Close() error
}

// A Receiver takes datagrams from the kernel for all flows of one loop. What
// is above it cannot tell by which means.
type Receiver interface {
	// Open joins a group. It may be called from any goroutine; the flow that
	// it returns belongs to the receiver's loop.
	Open(FlowSpec) (Flow, error)

	// Begin and End enclose the reading of one tick, in the loop's goroutine.
	Begin(now time.Time)
	End()

	// Report returns what the receiver knows of itself. It is called in the
	// loop's goroutine.
	Report() ReceiverStatus

	// Close releases what the receiver itself holds.
	Close() error
}

// ReceiverStatus says how a receiver receives, and why so.
type ReceiverStatus struct {
	Receive string // "ring", "sockets" or "plain"
	Reason  string
	Rings   []RingStatus
	Faults  []string // interfaces that have no ring, and why
}

// RingStatus is a snapshot of one packet ring. Counters start at zero when it
// is opened, which is when the first flow on its interface is.
type RingStatus struct {
	Interface string
	Family    string // "IPv4" or "IPv6"
	Bytes     int    // of memory
	Frames    int    // packets that it holds
	Flows     int
	Filter    string // how exactly the kernel filters: "groups and ports", "groups" or "all multicast"

	Packets      int64 // put in the ring by the kernel
	Drops        int64 // for which there was no room
	Unclaimed    int64 // that no flow wanted
	Malformed    int64 // whose lengths contradict each other
	BadChecksums int64
	Reassembled  int64 // datagrams put together from fragments
}
