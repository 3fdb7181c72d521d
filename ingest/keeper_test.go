package ingest

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A fakeJoiner writes down where it was asked to join.
type fakeJoiner struct {
	mu      sync.Mutex // of the error: the others are read once the keeper waits
	fail    error
	joined  []int
	rejoins int
}

func (j *fakeJoiner) failWith(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fail = err
}

func (j *fakeJoiner) failure() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fail
}

func (j *fakeJoiner) join(at place) error {
	if err := j.failure(); err != nil {
		return err
	}
	j.joined = append(j.joined, at.index)
	return nil
}

func (j *fakeJoiner) rejoin() error {
	j.rejoins++
	return j.failure()
}

// newFakeKeeper runs a keeper on a host that the test changes.
func newFakeKeeper(t *testing.T, host **links) (k *keeper, changes chan []int) {
	k = &keeper{
		log:     slog.New(slog.DiscardHandler),
		look:    func() (*links, error) { return *host, nil },
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		stop:    func() {},
		members: make(map[*membership]struct{}),
	}
	changes = make(chan []int)
	k.wg.Go(func() { k.run(changes, 0) })
	t.Cleanup(func() {
		if err := k.close(); err != nil {
			t.Error(err)
		}
	})
	return k, changes
}

func (l *links) without(name string) *links {
	c := *l
	c.all = slices.DeleteFunc(slices.Clone(l.all), func(i net.Interface) bool { return i.Name == name })
	return &c
}

func (l *links) renumbered(name string, index int) *links {
	c := *l
	c.all = slices.Clone(l.all)
	for i := range c.all {
		if c.all[i].Name == name {
			c.all[i].Index = index
		}
	}
	return &c
}

func warnings(m *membership) []string {
	var s Status
	m.status(&s)
	return s.Warnings
}

func TestKeeper_interfaceComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := fakeLinks(0)
		k, changes := newFakeKeeper(t, &host)
		j := &fakeJoiner{}
		m, err := k.openMembership(FlowSpec{Group: netip.MustParseAddrPort("239.1.1.1:5000"), Interface: "eth0"}, j)
		if err != nil {
			t.Fatal(err)
		}
		step := func(what string, l *links, gone []int, want []int, fault string) {
			t.Helper()
			host = l
			changes <- gone
			synctest.Wait()
			if !slices.Equal(j.joined, want) {
				t.Errorf("%s: joined on %v, want %v", what, j.joined, want)
			}
			if got := strings.Join(warnings(m), "; "); (got != "") != (fault != "") || !strings.Contains(got, fault) {
				t.Errorf("%s: warnings %q, want %q", what, got, fault)
			}
		}
		all := fakeLinks(0)
		step("nothing changed", all, nil, []int{2}, "")
		step("another link deleted", all, []int{7}, []int{2}, "")
		step("deleted", all.without("eth0"), []int{2}, []int{2}, "interface eth0 is gone")
		step("still away", all.without("eth0"), nil, []int{2}, "interface eth0 is gone")
		step("back", all.renumbered("eth0", 9), nil, []int{2, 9}, "")
		step("deleted and back unseen", all.renumbered("eth0", 10), []int{9}, []int{2, 9, 10}, "")
		step("the same index again", all.renumbered("eth0", 10), []int{10}, []int{2, 9, 10, 10}, "")

		j.failWith(errors.New("not yet"))
		step("joining fails", all, []int{10}, []int{2, 9, 10, 10}, "not yet")
		j.failWith(nil)
		time.Sleep(retryInterval)
		synctest.Wait()
		if want := []int{2, 9, 10, 10, 2}; !slices.Equal(j.joined, want) || len(warnings(m)) > 0 {
			t.Errorf("after a retry: joined on %v, want %v; warnings %q", j.joined, want, warnings(m))
		}
		m.close()
		step("closed", all.renumbered("eth0", 11), []int{2}, []int{2, 9, 10, 10, 2}, "")
	})
}

func TestKeeper_routeChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := fakeLinks(2)
		k, changes := newFakeKeeper(t, &host)
		j := &fakeJoiner{}
		m, err := k.openMembership(FlowSpec{Group: netip.MustParseAddrPort("239.1.1.1:5000")}, j)
		if err != nil {
			t.Fatal(err)
		}
		step := func(what string, l *links, gone []int, want []int, fault string) {
			t.Helper()
			host = l
			changes <- gone
			synctest.Wait()
			if !slices.Equal(j.joined, want) {
				t.Errorf("%s: joined on %v, want %v", what, j.joined, want)
			}
			if got := strings.Join(warnings(m), "; "); (got != "") != (fault != "") || !strings.Contains(got, fault) {
				t.Errorf("%s: warnings %q, want %q", what, got, fault)
			}
		}
		step("no route: stays", fakeLinks(0), nil, []int{2}, "no route")
		step("as before", fakeLinks(2), nil, []int{2}, "")
		step("another interface", fakeLinks(4), nil, []int{2, 4}, "interface eth1 is down")
		step("deleted, no route", fakeLinks(0).without("eth1"), []int{4}, []int{2, 4}, "no route")
		step("back", fakeLinks(4), nil, []int{2, 4, 4}, "interface eth1 is down")
		var s Status
		m.status(&s)
		if s.Interface != "eth1" || s.Local != "198.51.100.4" {
			t.Errorf("status: got %s (%s), want eth1 (198.51.100.4)", s.Interface, s.Local)
		}
	})
}

func TestKeeper_rejoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := fakeLinks(0)
		k, _ := newFakeKeeper(t, &host)
		j, other := &fakeJoiner{}, &fakeJoiner{}
		spec := FlowSpec{Group: netip.MustParseAddrPort("239.1.1.1:5000"), Interface: "eth0"}
		m, err := k.openMembership(spec, j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.openMembership(spec, other); err != nil {
			t.Fatal(err)
		}
		m.askRejoin()
		synctest.Wait()
		if j.rejoins != 1 || other.rejoins != 0 {
			t.Errorf("rejoined %d times, the other flow %d; want 1, 0", j.rejoins, other.rejoins)
		}
		j.failWith(errors.New("left, and not joined"))
		m.askRejoin()
		synctest.Wait()
		if got := warnings(m); len(got) != 1 || !strings.Contains(got[0], "left, and not joined") {
			t.Errorf("after a rejoin that failed: warnings %q", got)
		}
		j.failWith(nil)
		time.Sleep(retryInterval)
		synctest.Wait()
		if want := []int{2, 2}; !slices.Equal(j.joined, want) || len(warnings(m)) > 0 {
			t.Errorf("after a retry: joined on %v, want %v; warnings %q", j.joined, want, warnings(m))
		}
	})
}

func TestKeeper_openThatFailsLeavesNoMember(t *testing.T) {
	host := fakeLinks(0)
	k, _ := newFakeKeeper(t, &host)
	spec := FlowSpec{Group: netip.MustParseAddrPort("239.1.1.1:5000")}
	_, err := k.openMembership(spec, &fakeJoiner{})
	if want := "ingest: join 239.1.1.1:5000: no route to the group: name an interface with --interface"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	spec.Interface = "eth0"
	_, err = k.openMembership(spec, &fakeJoiner{fail: errors.New("not here")})
	if want := "ingest: join 239.1.1.1:5000 on eth0: not here"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	if got := len(k.list()); got != 0 {
		t.Errorf("members: got %d, want 0", got)
	}
}

func TestPollLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes, done := make(chan []int), make(chan struct{})
		ended := make(chan struct{})
		go func() { pollLinks(changes, done); close(ended) }()
		start := time.Now()
		<-changes
		<-changes
		if got := time.Since(start); got != 2*pollInterval {
			t.Errorf("two looks: after %s, want %s", got, 2*pollInterval)
		}
		close(done)
		<-ended
	})
}
