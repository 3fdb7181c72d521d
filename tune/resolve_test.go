package tune_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zapcast/tune"
	"zapcast/tune/tunetest"
)

func TestTuner_channel(t *testing.T) {
	f := func(target, configured, want string) {
		t.Helper()
		channel, err := tune.New(tune.Config{Interface: configured}, tunetest.Resolver()).Channel(t.Context(), target, "")
		if err != nil {
			var refused *tune.StatusError
			if !errors.As(err, &refused) || refused.Code != 400 || want == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("Channel(%q) with %q: error %v, want %s", target, configured, err, want)
			}
			return
		}
		if channel.Key != want {
			t.Errorf("Channel(%q) with %q = %s, want %s", target, configured, channel.Key, want)
		}
	}
	// The request's interface, then the configured one, then the routing table's.
	f("/rtp/239.1.1.1:5000", "", "239.1.1.1:5000")
	f("/rtp/239.1.1.1:5000", "eth9", "239.1.1.1:5000%eth9")
	f("/rtp/239.1.1.1:5000?r2h-ifname=lo", "eth9", "239.1.1.1:5000%lo")
	f("/rtp/239.1.1.1:5000?ifname=lo", "eth9", "239.1.1.1:5000%lo")
	f("/rtp/239.1.1.1:5000?ifindex=7", "eth9", "239.1.1.1:5000%iptv0")
	f("/rtp/239.1.1.1:5000?r2h-ifname=eth0.12", "eth9", `unknown interface "eth0.12"`)
	f("/rtp/239.1.1.1:5000?ifindex=8", "eth9", "unknown interface: none has the number 8")

	f("/rtp/news.example:5000", "", "239.1.1.1:5000")
	f("/rtp/mapped.example:5000", "", "239.1.1.1:5000")
	f("/rtp/both.example:5000", "", "[ff15::1]:5000")
	f("/rtp/198.51.100.9@both.example:5000", "", "198.51.100.9@239.1.1.1:5000")
	f("/rtp/sender.example@239.1.1.1:5000", "", "198.51.100.7@239.1.1.1:5000")
	f("/rtp/sender.example@[ff3e::1]:5000", "", "[2001:db8::7]@[ff3e::1]:5000")
	f("/rtp/sender.example@news.example:5000", "", "198.51.100.7@239.1.1.1:5000")
	f("/rtp/unicast.exampl:5000", "", "not multicast")
	f("/rtp/nowhere.example:5000", "", `cannot resolve "nowhere.example"`)
	f("/rtp/nowhere.example@239.1.1.1:5000", "", `cannot resolve "nowhere.example"`)
}

// A name server that does not answer costs a viewer three seconds, not more.
func TestTuner_nameServerThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tunetest.Resolver()
		r.Lookup = func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		start := time.Now()
		channel, err := tune.New(tune.Config{}, r).Channel(t.Context(), "/rtp/dead.example@news.example:5000", "")
		if err == nil || !strings.Contains(err.Error(), "cannot resolve") {
			t.Errorf("got %v, %v, want an error", channel.Key, err)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("took %v, want at most 3 s", took)
		}
	})
}
