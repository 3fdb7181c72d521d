package main

import (
	"strings"
	"testing"

	"zapcast/internal/nettest"
)

// A lab is the network of tests of the whole program: rx and tx as
// nettest.Lab.Plug joins them, and vw.
//
//	tx: zapcast send          rx: zapcast serve            vw: viewers (others: on rx's loopback)
//	  peer7 ─────────────────── eth7
//	  peer8 ─────────────────── eth8
//	                            eth9  203.0.113.1/24 ─────── view9  203.0.113.2/24
//
// The test itself stays outside.
type lab struct {
	*nettest.Lab
	t *testing.T
}

func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	l := &lab{nettest.New(t, "tx", "rx", "vw"), t}
	l.Plug(7)
	l.Plug(8)
	l.Link("rx eth9 203.0.113.1/24", "vw view9 203.0.113.2/24")
	return l
}

// serve starts the server in rx.
func (l *lab) serve(config string, args ...string) *service {
	l.t.Helper()
	return serve(l.t, l.In("rx"), "", config, args...)
}

// watch watches on rx's loopback.
func (l *lab) watch(s *service, path string, mark byte) *reading {
	return s.begin(l.In("rx"), path, mark)
}

// send plays a numbered file out in tx, for ever or once.
func (l *lab) send(args string) *process {
	l.t.Helper()
	return runProgram(l.t, l.In("tx"), append([]string{"send"}, strings.Fields(args)...)...)
}
