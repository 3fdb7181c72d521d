package fcc

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"zapcast/fcc/wire"
)

var (
	testGroup  = netip.MustParseAddrPort("239.11.0.65:5140")
	testServer = netip.MustParseAddrPort("192.0.2.65:8027")
	sibling    = netip.MustParseAddrPort("192.0.2.217:8027")
	stranger   = netip.MustParseAddrPort("203.0.113.1:9")
	zero       = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// A talk is a machine and a clock.
type talk struct {
	t *testing.T
	*machine
	now time.Time
}

func newTalk(t *testing.T, join string, names ...string) *talk {
	a := advice{server: testServer, plan: dialects}
	if len(names) > 0 {
		a.plan = nil
	}
	for _, name := range names {
		a.plan = append(a.plan, dialectOf(name))
	}
	about := subject{group: testGroup, client: netip.MustParseAddr("198.51.100.9"), mediaPort: 40032, signalPort: 40033, ssrc: 5}
	return &talk{t, newMachine(about, testServer, a, join), zero}
}

// wait lets time go by, a millisecond at a time.
func (k *talk) wait(d time.Duration) *talk {
	for end := k.now.Add(d); k.now.Before(end); {
		k.now = k.now.Add(time.Millisecond)
		if k.first != nil {
			k.heard(k.now)
		}
		k.tick(k.now)
	}
	return k
}

// silence is a wait in which the line brings nothing at all.
func (k *talk) silence(d time.Duration) *talk {
	k.now = k.now.Add(d)
	k.tick(k.now)
	return k
}

func (k *talk) hears(from netip.AddrPort, m wire.Message) *talk {
	for p := range wire.Packets(m.Append(nil)) {
		k.received(k.now, from, p)
	}
	return k
}

func (k *talk) burst(from netip.AddrPort) bool { return k.media(k.now, from) }

// is checks the state and what was done since the last check.
func (k *talk) is(want state, does ...string) *talk {
	k.t.Helper()
	var got []string
	for _, a := range k.take() {
		switch a.kind {
		case actJoin:
			got = append(got, "join")
		case actSplice:
			got = append(got, "splice")
		case actSend:
			got = append(got, describe(k.t, a))
		}
	}
	if k.state != want || fmt.Sprint(got) != fmt.Sprint(does) {
		k.t.Errorf("after %v: got %v and %q, want %v and %q", k.now.Sub(zero), k.state, got, want, does)
	}
	return k
}

// describe spells a message: "request", "stop", "until N", "empty", "punch",
// and where it goes if that is not the configured server.
func describe(t *testing.T, a action) string {
	t.Helper()
	var what string
	switch {
	case len(a.bytes) == 0:
		what = "empty"
	case len(a.bytes) == 8:
		what = "punch"
	}
	until := func(forced bool, first uint32) string {
		if forced {
			return "stop"
		}
		return fmt.Sprint("until ", first)
	}
	for p := range wire.Packets(a.bytes) {
		if p.Type != wire.TypeFeedback {
			what = "report"
			continue
		}
		m, err := wire.ParseClient(p)
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *wire.TelecomRequest, *wire.RAMSRequest:
			what = "request"
		case *wire.HuaweiRequest:
			what = "request"
			if m.TLV {
				what = "TLV request"
			}
		case *wire.TelecomTermination:
			what = until(m.Forced, uint32(m.First))
		case *wire.HuaweiTermination:
			what = until(m.Forced, uint32(m.First))
		case *wire.RAMSTermination:
			if what = "stop"; m.First != nil {
				what = until(false, *m.First)
			}
		default:
			what = "punch"
		}
	}
	if a.to != testServer {
		what += " to " + a.to.String()
	}
	return what
}

func (k *talk) because(reason string) *talk {
	k.t.Helper()
	if k.reason != reason {
		k.t.Errorf("got reason %q, want %q", k.reason, reason)
	}
	return k
}

func grant() *wire.TelecomResponse {
	return &wire.TelecomResponse{Group: testGroup.Addr(), Action: wire.TelecomBurst}
}

func redirectTo(a string, port uint16) *wire.TelecomResponse {
	return &wire.TelecomResponse{Group: testGroup.Addr(), Action: wire.TelecomRedirect, Server: netip.MustParseAddr(a), SignallingPort: port, Valid: time.Minute}
}

var notice = &wire.TelecomSync{Group: testGroup.Addr()}

// asked is a talk in which the request is out.
func asked(t *testing.T, join string, names ...string) *talk {
	k := newTalk(t, join, names...)
	k.start(k.now)
	k.take()
	return k
}

// flowing is a talk in which a burst comes.
func flowing(t *testing.T, join string) *talk {
	k := asked(t, join, Telecom)
	k.wait(5*time.Millisecond).hears(testServer, grant())
	if !k.burst(testServer) || k.state != bursting {
		t.Fatalf("got %v, want the burst to flow", k.state)
	}
	k.take()
	return k
}

// The rows that operators' dialects share; the numbers are those of the table in
// docs/fcc.md.
func TestMachine_rows(t *testing.T) {
	rows := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"2 hedged", func(t *testing.T) {
			k := newTalk(t, Hedged, Telecom)
			k.start(k.now)
			k.is(asking, "join", "request")
		}},
		{"2 on sync", func(t *testing.T) {
			k := newTalk(t, OnSync, Telecom)
			k.start(k.now)
			k.is(asking, "request")
			k.wait(79 * time.Millisecond).is(asking)
			k.wait(2*time.Millisecond).is(asking, "join") // no answer in time
		}},
		{"4 refused", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			m := grant()
			m.Result = 2
			k.hears(testServer, m).is(ending, "join", "splice", "stop").because("refused: result 2")
			k.wait(time.Second).is(ended)
		}},
		{"5 no unicast", func(t *testing.T) {
			for _, action := range []byte{0, wire.TelecomJoin} {
				k := asked(t, OnSync, Telecom)
				m := grant()
				m.Action = action
				k.hears(testServer, m).is(ending, "join", "splice", "stop").because(reasonJoin)
			}
		}},
		{"6 granted", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			m := grant()
			m.MediaPort, m.SignallingPort = 60926, 60927
			k.hears(testServer, m).is(granted, "empty to 192.0.2.65:60926", "empty to 192.0.2.65:60927")
			k.hears(testServer, m).is(granted) // a copy
		}},
		{"6 FiberHome's punch", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			m := grant()
			m.MediaPort, m.Punch = 60926, true
			k.hears(testServer, m).is(granted, "punch to 192.0.2.65:60926")
		}},
		{"6 by a sibling that names itself", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			m := grant()
			m.Server = sibling.Addr()
			k.hears(sibling, m).is(granted, "empty to 192.0.2.217:8027")
			if k.burst(stranger) || !k.burst(sibling) {
				t.Error("want the burst of the one that was named, and of nobody else")
			}
			k.is(bursting).hears(stranger, notice).is(bursting)
			k.hears(sibling, notice).is(bursting, "join")
			k.joined(k.now, 10)
			k.is(joining, "until 12 to 192.0.2.217:8027")
		}},
		{"6 by a sibling that names nobody", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			k.hears(sibling, grant()).is(granted)
			if !k.burst(sibling) || k.burst(testServer) {
				t.Error("want the burst pinned to the one that came first")
			}
		}},
		{"7 redirected", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			m := redirectTo("192.0.2.9", 5974)
			for range 3 { // copies count once
				k.hears(testServer, m)
			}
			k.is(asking, "request to 192.0.2.9:5974")
			k.hears(testServer, grant()).is(asking) // it has sent us away
			k.hears(netip.MustParseAddrPort("192.0.2.9:5974"), grant()).is(granted)
			if k.redirect != time.Minute {
				t.Errorf("got a redirect for %v, want 1m", k.redirect)
			}
		}},
		{"7 to another port of the same host", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			k.hears(testServer, redirectTo("192.0.2.65", 5974)).is(asking, "request to 192.0.2.65:5974")
			k.hears(netip.MustParseAddrPort("192.0.2.65:5974"), grant()).is(granted)
		}},
		{"8 too many redirects", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			for i := range 5 {
				next := fmt.Sprintf("192.0.2.%d", 100+i)
				k.hears(k.server, redirectTo(next, 1)).is(asking, "request to "+next+":1")
			}
			k.hears(k.server, redirectTo("192.0.2.200", 1)).is(ending, "join", "splice", "stop to 192.0.2.104:1").because(reasonRedirects)
		}},
		{"8 redirected to a group", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			k.hears(testServer, redirectTo("239.0.0.1", 1)).is(ending, "join", "splice", "stop").because(reasonRedirects)
		}},
		{"8 unknown action", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			m := grant()
			m.Action = 9
			k.hears(testServer, m).is(ending, "join", "splice", "stop").because("refused: unknown action 9")
		}},
		{"9 no answer", func(t *testing.T) {
			k := asked(t, Hedged, Telecom)
			k.wait(599*time.Millisecond).is(asking, "request", "request", "request", "request") // retries
			k.wait(time.Millisecond).is(ending, "join", "splice", "stop").because(reasonNoAnswer)
			k.wait(time.Second).is(ended)
		}},
		{"9 a late grant", func(t *testing.T) {
			k := asked(t, Hedged, Telecom)
			k.wait(50 * time.Millisecond)
			k.fallBack(k.now, reasonMulticast)
			k.is(ending, "join", "splice", "stop").wait(250 * time.Millisecond).is(ending)
			for range 3 {
				k.hears(sibling, grant())
			}
			k.is(ending, "stop")
			k.wait(time.Second).is(ended)
		}},
		{"10 media before any response", func(t *testing.T) {
			k := asked(t, Hedged, Telecom)
			if k.burst(stranger) || !k.burst(testServer) {
				t.Error("want the burst of whom was asked, and of nobody else")
			}
			k.is(bursting)
			m := grant()
			m.SignallingPort = 60927
			k.hears(testServer, m).is(bursting, "empty to 192.0.2.65:60927")
		}},
		{"12 granted, nothing came", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			k.hears(testServer, grant()).is(granted)
			k.wait(499 * time.Millisecond).is(granted) // answered in time: the line is the burst's
			k.wait(time.Millisecond).is(ending, "join", "splice", "stop").because(reasonNoMedia)
		}},
		{"13 sync before the first packet", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			k.hears(testServer, grant()).hears(testServer, notice).is(granted, "join")
			k.hears(testServer, notice).is(granted) // its copy
			k.joined(k.now, 65535)
			k.is(joining, "until 1")
		}},
		{"13 sync before acceptance", func(t *testing.T) {
			asked(t, OnSync, Telecom).hears(testServer, notice).is(asking)
		}},
		{"15 burst stops", func(t *testing.T) {
			k := flowing(t, OnSync)
			k.wait(999 * time.Millisecond)
			k.take()
			k.wait(time.Millisecond).is(ending, "join", "splice", "stop").because(reasonStopped)
		}},
		{"15 burst stops while the multicast waits", func(t *testing.T) {
			k := flowing(t, Hedged)
			k.joined(k.now, 100)
			k.is(bursting).wait(heldPause - time.Millisecond).is(bursting)
			k.wait(time.Millisecond).is(ending, "join", "splice", "stop").because(reasonStopped)
		}},
		{"15 the whole line stops", func(t *testing.T) {
			k := flowing(t, Hedged)
			k.joined(k.now, 100)
			k.wait(100 * time.Millisecond).silence(800 * time.Millisecond).is(bursting)
			k.wait(heldPause - 102*time.Millisecond).is(bursting) // 800 ms do not count
			k.wait(10*time.Millisecond).is(ending, "join", "splice", "stop").because(reasonStopped)
		}},
		{"15 the whole line stops for long", func(t *testing.T) {
			k := flowing(t, Hedged)
			k.joined(k.now, 100)
			k.silence(mediaPause - time.Millisecond).is(bursting)
			k.silence(time.Millisecond).is(ending, "join", "splice", "stop").because(reasonStopped)
		}},
		{"16 no sync notice", func(t *testing.T) {
			k := flowing(t, OnSync)
			for range 150 {
				k.wait(100 * time.Millisecond)
				k.burst(testServer)
			}
			k.is(bursting, "join")
			k.joined(k.now, 7)
			k.is(joining, "until 9")
		}},
		{"17 to 21 hedged", func(t *testing.T) {
			k := flowing(t, Hedged)
			k.joined(k.now, 100)
			k.is(bursting)
			k.burst(testServer)
			k.reached(k.now)
			k.is(ending, "until 102")
			k.wait(time.Second).is(ended).because("")
		}},
		{"17 to 21 on sync", func(t *testing.T) {
			k := flowing(t, OnSync)
			k.hears(testServer, notice).is(bursting, "join")
			k.joined(k.now, 100)
			k.is(joining, "until 102")
			k.burst(testServer)
			k.reached(k.now)
			k.is(ending).wait(time.Second).is(ended).because("")
		}},
		{"20 silence before the multicast is reached", func(t *testing.T) {
			k := flowing(t, OnSync)
			k.hears(testServer, notice)
			k.joined(k.now, 100)
			k.take()
			k.wait(heldPause).is(ending, "join", "splice").because(reasonStopped)
		}},
		{"22 server goes on", func(t *testing.T) {
			k := flowing(t, Hedged)
			k.joined(k.now, 100)
			k.reached(k.now)
			k.is(ending, "until 102")
			for range 300 {
				k.wait(5 * time.Millisecond)
				k.burst(testServer)
			}
			k.is(ended, "until 102", "until 102", "until 102", "until 102", "until 102")
		}},
		{"23 viewer leaves", func(t *testing.T) {
			k := flowing(t, OnSync)
			k.leave(k.now)
			k.is(ending, "stop").because(reasonLeft)
			k.wait(time.Second).is(ended)
			k = flowing(t, OnSync)
			k.hears(testServer, notice)
			k.joined(k.now, 100)
			k.take()
			k.leave(k.now)
			k.is(ending).wait(time.Second).is(ended) // was told before
		}},
		{"23 viewer leaves before an answer", func(t *testing.T) {
			k := asked(t, OnSync, Telecom)
			k.leave(k.now)
			k.is(ending, "stop").hears(sibling, grant()).is(ending, "stop")
			k.wait(time.Second).is(ended)
		}},
	}
	for _, row := range rows {
		t.Run(row.name, row.run)
	}
}

func TestMachine_huawei(t *testing.T) {
	response := func(kind uint16, change func(*wire.HuaweiResponse)) *wire.HuaweiResponse {
		m := &wire.HuaweiResponse{Group: testGroup.Addr(), Result: wire.HuaweiOK, Type: kind}
		if change != nil {
			change(m)
		}
		return m
	}
	k := asked(t, OnSync, Huawei)
	k.hears(testServer, response(wire.HuaweiBurst, func(m *wire.HuaweiResponse) { m.Short = true })).is(granted)

	k = asked(t, OnSync, Huawei)
	k.hears(testServer, response(wire.HuaweiBurst, func(m *wire.HuaweiResponse) {
		m.NAT, m.Session, m.Port, m.Server = true, 9, 8130, sibling.Addr()
	})).is(granted, "punch to 192.0.2.217:8130", "empty to 192.0.2.217:8027")

	k = asked(t, OnSync, Huawei)
	k.hears(testServer, response(wire.HuaweiBurst, func(m *wire.HuaweiResponse) { m.Port, m.Server = 8130, sibling.Addr() })).is(granted)
	if !k.burst(sibling) {
		t.Error("want the burst of the one that was named")
	}
	k.hears(testServer, &wire.HuaweiSync{Group: testGroup.Addr()}).is(bursting, "join")
	k.joined(k.now, 5)
	k.is(joining, "until 7")

	k = asked(t, OnSync, Huawei)
	k.hears(testServer, response(wire.HuaweiRedirect, func(m *wire.HuaweiResponse) { m.Port, m.Server = 8030, sibling.Addr() }))
	k.is(asking, "request to 192.0.2.217:8030")

	k = asked(t, OnSync, Huawei)
	k.hears(testServer, response(wire.HuaweiJoin, func(m *wire.HuaweiResponse) { m.Result, m.Short = 2, true }))
	k.is(ending, "join", "splice", "stop").because("refused: result 2, type 1")
}

// The rows of RFC 6285's client.
func TestMachine_rams(t *testing.T) {
	information := func(code uint16) *wire.RAMSInformation {
		return &wire.RAMSInformation{Server: 1, Media: 7, Code: code}
	}
	accepted := information(wire.RAMSAccepted)
	accepted.Join = new(300 * time.Millisecond)

	k := asked(t, OnSync, RAMS)
	k.wait(10*time.Millisecond).hears(testServer, accepted).is(granted)
	k.burst(testServer)
	k.is(bursting)
	for range 6 {
		k.wait(50 * time.Millisecond)
		k.burst(testServer)
	}
	var got []string
	for _, a := range k.take() { // a report each 50 ms; joined at the time that was told
		if a.kind == actJoin {
			got = append(got, "join")
		} else {
			got = append(got, describe(t, a))
		}
	}
	if text := fmt.Sprint(got); !strings.Contains(text, "report report report") || strings.Count(text, "join") != 1 {
		t.Errorf("got %s, want reports and a join at the time told", text)
	}
	k.joined(k.now, 65534)
	k.is(joining, "until 0")
	k.reached(k.now)
	k.wait(time.Second).is(ended)

	k = asked(t, OnSync, RAMS)
	if !k.burst(testServer) { // before the information
		t.Error("want the burst taken for an acceptance")
	}
	k.hears(testServer, accepted).is(bursting)
	update := information(wire.RAMSUpdate)
	update.MSN, update.Join = 1, new(time.Duration(0))
	k.hears(testServer, update).wait(time.Millisecond).is(bursting, "join")

	k = asked(t, OnSync, RAMS)
	k.hears(testServer, accepted)
	k.burst(testServer)
	k.take()
	k.hears(testServer, information(wire.RAMSCompleted)).is(bursting, "join")

	for _, code := range []uint16{wire.RAMSMalformed, wire.RAMSNoStart, wire.RAMSPreambleOnly, wire.RAMSDenied, 999} {
		k = asked(t, OnSync, RAMS)
		k.hears(testServer, information(code)).is(ending, "join", "splice", "stop").because(fmt.Sprint("refused: code ", code))
	}
	k = asked(t, Hedged, RAMS)
	k.wait(requestTime).is(ending, "request", "request", "request", "request", "join", "splice", "stop").because(reasonNoAnswer)
}

// With no dialect named each is tried until one is answered.
func TestMachine_findsTheDialect(t *testing.T) {
	k := asked(t, Hedged)
	k.wait(unknownRetry).is(asking, "request")
	k.wait(unknownRetry).is(asking, "TLV request")
	k.hears(testServer, &wire.HuaweiResponse{Group: testGroup.Addr(), Result: wire.HuaweiOK, Type: wire.HuaweiBurst}).is(granted)
	if k.spoken.name() != Huawei {
		t.Errorf("got %s, want huawei", k.spoken.name())
	}
	// The telecom half of the same server is slow: it would be a second burst.
	k.hears(testServer, grant()).is(granted, "stop")

	k = asked(t, Hedged) // refused in one dialect, each copy of it counts once
	m := grant()
	m.Result = 2
	k.hears(testServer, m).hears(testServer, m).is(asking, "request")
	k.hears(testServer, &wire.HuaweiResponse{TLV: true, Result: 200, Type: 2}).is(asking) // not asked yet
	k.wait(requestTime).because("refused: result 2")
}

// A redirect that was remembered and leads nowhere is left for the server that
// was configured.
func TestMachine_goesHome(t *testing.T) {
	for _, refused := range []bool{false, true} {
		k := newTalk(t, Hedged, Telecom)
		k.server = sibling
		k.start(k.now)
		k.is(asking, "join", "request to "+sibling.String())
		if refused {
			m := grant()
			m.Result = 2
			k.hears(sibling, m)
		} else {
			k.wait(unknownRetry)
		}
		k.is(asking, "stop to "+sibling.String(), "request")
		k.hears(testServer, grant()).is(granted)
	}
}
