package ingest

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ErrInterface is in the error of Open when the interface that the FlowSpec
// names does not exist.
var ErrInterface = errors.New("no such interface")

var errNoRoute = errors.New("no route to the group: name an interface with --interface")

// defaultReadBuffer is asked for each socket: at 40 Mbit/s it holds, as the
// kernel counts memory, about three quarters of a second.
const defaultReadBuffer = 4 << 20

// defaultRing is 1280 frames: at 8 streams of 40 Mbit/s, 42 ms.
const defaultRing = 2 << 20

// ReceiverConfig says how datagrams are received. The zero value works.
type ReceiverConfig struct {
	// ReadBuffer is how many bytes are asked of the kernel for each socket;
	// 0 stands for 4 MiB. Status.ReceiveBuffer tells what was granted.
	ReadBuffer int

	// Refresh is the interval at which membership reports are sent although
	// nobody has asked for them, for networks without a working querier, where
	// the state of a switch expires; 30 s to 120 s are usual. 0: off. It needs
	// CAP_NET_RAW; without it there is one Warn in the log of each receiver and
	// a warning in the Status of each flow.
	Refresh time.Duration

	// Plain chooses the portable receiver where there is a faster one.
	Plain bool

	// Receive is ReceiveAuto, ReceiveSockets or ReceiveRing; empty: the first.
	// Systems other than Linux have sockets only.
	Receive string

	// RingBytes is how much memory each packet ring takes, of which there is one
	// for each interface and family with flows; 0 stands for 2 MiB.
	RingBytes int

	atOnce bool // tests: flows begin on the ring

	// Logger takes what an operator should know; nil: nobody.
	Logger *slog.Logger
}

// How datagrams are received.
const (
	ReceiveAuto    = "auto"    // by packet rings where CAP_NET_RAW is there, else by sockets
	ReceiveSockets = "sockets" // by one socket for each flow
	ReceiveRing    = "ring"    // by packet rings; where they cannot be had a Warn says so

	// receivePlain is in a Status only, like the way of one flow that is not
	// on a ring.
	receivePlain  = "plain"
	receiveSocket = "socket"
)

func (c ReceiverConfig) withDefaults() ReceiverConfig {
	if c.ReadBuffer <= 0 {
		c.ReadBuffer = defaultReadBuffer
	}
	if c.RingBytes <= 0 {
		c.RingBytes = defaultRing
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// NewReceiver returns a receiver for one loop. On Linux it reads packet rings,
// without a system call, or one non-blocking socket per flow, many datagrams per
// system call (see ReceiverConfig.Receive); elsewhere, and where cfg.Plain asks
// for it, a goroutine per flow.
//
// The receiver watches the interfaces of the host until it is closed: a flow
// whose interface comes back under another index is joined again, and so is one
// without a named interface when the routing table changes its mind. The
// receiver's Close may be called once its flows are closed, from any goroutine.
//
// Open fails as FlowSpec.Validate does, with ErrInterface (wrapped) when the
// named interface does not exist, and with an error that says in a sentence
// what is wrong when there is no route to the group or the kernel refuses the
// join. An interface that is down or has no address is no error: the flow's
// Status warns of it.
func NewReceiver(cfg ReceiverConfig) (Receiver, error) {
	cfg = cfg.withDefaults()
	if cfg.Plain {
		return newPlainReceiver(cfg), nil
	}
	return newReceiver(cfg), nil
}

// joinError names the group and, where it is known, the interface.
func joinError(spec FlowSpec, name string, err error) error {
	if name == "" {
		return fmt.Errorf("ingest: join %s: %w", spec.Group, err)
	}
	return fmt.Errorf("ingest: join %s on %s: %w", spec.Group, name, err)
}
