package ingest

import (
	"net/netip"
	"testing"
	"time"
)

func TestSenders_warning(t *testing.T) {
	addr := map[rune]netip.AddrPort{
		'a': netip.MustParseAddrPort("192.0.2.1:5000"),
		'b': netip.MustParseAddrPort("192.0.2.2:5000"),
		'c': netip.MustParseAddrPort("192.0.2.3:5000"),
	}
	f := func(samples string, quiet time.Duration, want bool) {
		t.Helper()
		var s senders
		now := time.Unix(1, 0)
		for _, from := range samples {
			if from == ' ' {
				now = now.Add(2 * alternateFor)
				continue
			}
			now = now.Add(time.Second)
			s.see(now, addr[from])
		}
		var st Status
		s.status(now.Add(quiet), &st)
		if got := len(st.Warnings) > 0; got != want {
			t.Errorf("%q and %s: got warnings %q, want any: %t", samples, quiet, st.Warnings, want)
		}
	}
	f("", 0, false)
	f("aaaa", 0, false)
	f("aaabbb", 0, false)    // one took over
	f("aaabbbaaa", 0, false) // and gave back
	f("aba b", 0, false)     // much later once more
	f("abab", 0, true)
	f("aabbabba", 0, true)
	f("abcabc", 0, false) // three in turn: not told from fail-over after fail-over
	f("abab", 2*alternateFor, false)
}
