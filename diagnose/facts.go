package diagnose

import (
	"net/netip"
	"slices"
	"time"

	"zapcast/ingest"
)

// Facts are what is known of a channel that somebody tries to watch, and of the
// machine around it. Zero values are unknown.
type Facts struct {
	Refused string // why the channel could not be opened at all
	Opened  bool   // its source was there
	Started bool   // a viewer could have started
	Took    time.Duration

	Source        string // as in ingest.Status
	Group         netip.AddrPort
	Sender        netip.Addr // the one asked for, of a source-specific join
	Before, After ingest.Status
	Seen          string // the source's own words
	Codec         string
	BitRate       int64         // bits a second
	RandomAccess  time.Duration // age of the newest random-access point; negative: none
	Blocked       int           // viewers whose connection is full

	Others    int    // other channels that are live on the same interface
	Elsewhere string // another interface on which channels are live

	Link    Link
	Member  Answer // whether the kernel lists the group as joined there
	Queries Query
	Wire    Wire
	Path    int64 // packets that the reverse-path filter dropped meanwhile
}

// An Answer is yes, no, or not known.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// answer returns yes or no.
func answer(is bool) Answer {
	if is {
		return Yes
	}
	return No
}

// Link is the state of a network interface.
type Link struct {
	Name      string
	Exists    Answer
	Up        bool
	Carrier   Answer
	Addresses []netip.Addr
	Filter    int // strictness of the reverse-path filter (ip-sysctl: rp_filter); 1 is strict
	Version   int // of IGMP that the kernel speaks there; 0: unknown
}

// Query is the last membership query that was heard on an interface.
type Query struct {
	Listening bool          // since Since
	Since     time.Duration // how long ago that began
	Heard     int64
	Ago       time.Duration // of the last one
	From      netip.Addr
	Version   int // IGMP 1 to 3, MLD 1 or 2
}

// Wire is what came in by the interface for the group, whatever the kernel did
// with it then.
type Wire struct {
	Looked  bool
	Time    time.Duration
	Packets int
	OnPort  int          // of them for the port that is asked for
	Ports   []uint16     // the others' ports, the first few
	Senders []netip.Addr // the first few
}

// has reports whether a sender was among those on the wire.
func (w Wire) has(sender netip.Addr) bool {
	return slices.Contains(w.Senders, sender)
}
