package httpout

import "testing"

func TestSlots(t *testing.T) {
	a, b, c := clientKey{agent: "a"}, clientKey{agent: "b"}, clientKey{agent: "c"}
	var s slots
	take := func(k clientKey, limit int, want bool) {
		t.Helper()
		if got := s.take(k, limit); got != want {
			t.Errorf("take(%q, %d) = %t, want %t", k.agent, limit, got, want)
		}
	}
	take(a, 2, true)
	take(b, 2, true)
	take(c, 2, false)
	take(a, 2, true) // zaps
	take(a, 2, false)
	take(b, 2, true)
	s.give(a)
	take(a, 2, true) // zaps again
	take(a, 2, false)
	for range 2 {
		s.give(a)
		s.give(b)
	}
	if s.taken != 0 || len(s.clients) != 0 {
		t.Errorf("after all have left: %d taken, clients %v, want none", s.taken, s.clients)
	}
	for range 100 {
		take(c, 0, true) // no limit
	}
}
