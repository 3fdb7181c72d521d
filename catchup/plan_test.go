package catchup

import (
	stdcmp "cmp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The clock of a synctest bubble begins at midnight UTC, 2000-01-01.
func TestNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name, in, agent string
			want            Plan
		}{
			{"live", "/ch1?AuthInfo=a%2Fb&x", "", Plan{Target: "/ch1?AuthInfo=a%2Fb&x"}},
			{"live, no query", "/ch1", "", Plan{Target: "/ch1"}},
			{"empty query", "/ch1?", "", Plan{Target: "/ch1?"}},
			{"two marks", "/ch1?a=1?b=2&c=3", "", Plan{Target: "/ch1?a=1?b=2&c=3"}},
			{"seek", "/ch1?playseek=19991231120000-19991231130000&a=1", "", Plan{Target: "/ch1?playseek=19991231120000-19991231130000&a=1", Shifted: true}},
			{"agent", "/ch1?a=1&playseek=19991231120000-19991231130000", "x TZ/UTC+8", Plan{Target: "/ch1?a=1&playseek=19991231040000-19991231050000", Shifted: true}},
			{"spelling", "/ch1?PlaySeek=19991231120000", "TZ/UTC+1", Plan{Target: "/ch1?PlaySeek=19991231110000", Shifted: true}},
			{"tvdr", "/ch1?tvdr=19991231120000GMT-19991231130000GMT", "TZ/UTC+8", Plan{Target: "/ch1?tvdr=19991231120000GMT-19991231130000GMT", Shifted: true}},
			{"named", "/ch1?begin=19991231120000&r2h-seek-name=begin&playseek=1", "TZ/UTC+8", Plan{Target: "/ch1?begin=19991231040000&playseek=1", Shifted: true}},
			{"named, missing", "/ch1?playseek=1&r2h-seek-name=begin", "", Plan{Target: "/ch1?playseek=1"}},
			{"offset", "/ch1?playseek=946598400-946602000&r2h-seek-offset=-10,20", "", Plan{Target: "/ch1?playseek=946598390-946602020", Shifted: true}},
			{"bad offset", "/ch1?playseek=946598400&r2h-seek-offset=soon", "", Plan{Target: "/ch1?playseek=946598400", Shifted: true}},
			{"unreadable", "/ch1?playseek=yesterday&r2h-seek-offset=5", "TZ/UTC+8", Plan{Target: "/ch1?playseek=yesterday", Shifted: true}},
			{"escaped", "/ch1?playseek=1999-12-31T12%3A00%3A00", "TZ/UTC+8", Plan{Target: "/ch1?playseek=1999-12-31T04%3A00%3A00", Shifted: true}},
			{"twice", "/ch1?playseek={utc}-{utcend}&a=1?playseek=19991231120000&playseek=2", "TZ/UTC+1", Plan{Target: "/ch1?a=1?playseek=19991231110000", Shifted: true}},
			{"placeholders only", "/ch1?playseek=${(b)yyyyMMddHHmmss}-${(e)yyyyMMddHHmmss}", "", Plan{Target: "/ch1?playseek=${(b)yyyyMMddHHmmss}-${(e)yyyyMMddHHmmss}", Unfilled: "${(b)yyyyMMddHHmmss}"}},
			{"start", "/v.ts?r2h-start=30.5", "", Plan{Target: "/v.ts", Range: "npt=30.5-", Shifted: true}},
			{"bad start", "/v.ts?r2h-start=-3", "", Plan{Target: "/v.ts"}},
			{"duration", "/v.ts?r2h-duration=1&a", "", Plan{Target: "/v.ts?a", Duration: true}},
			{"ours", "/v.ts?r2h-token=x&a=1&r2h-ifname=eth1&R2H-Seek-Mode=range&r2h%2Dtoken=y&snapshot=1&r2h-ifname-fcc=e&r2h-token=z", "", Plan{Target: "/v.ts?a=1", Interface: "eth1"}},
			{"not ours over RTSP", "/v.ts?fcc=1&fec=2&fcc-type=x", "", Plan{Target: "/v.ts?fcc=1&fec=2&fcc-type=x"}},

			{"range, inside", "/ch1?playseek=19991231233000-20000101000000&a=1&r2h-seek-mode=range", "", Plan{Target: "/ch1?a=1", Range: "clock=19991231T233000Z-", Shifted: true}},
			{"range, at the edge", "/ch1?playseek=19991231230000&r2h-seek-mode=range", "", Plan{Target: "/ch1?playseek=19991231230000", Shifted: true}},
			{"range, just inside", "/ch1?playseek=19991231230001&r2h-seek-mode=range", "", Plan{Target: "/ch1", Range: "clock=19991231T230001Z-", Shifted: true}},
			{"range, now", "/ch1?playseek=20000101000000&r2h-seek-mode=range", "", Plan{Target: "/ch1", Range: "clock=20000101T000000Z-", Shifted: true}},
			{"range, ahead", "/ch1?playseek=20000101000001&r2h-seek-mode=range", "", Plan{Target: "/ch1?playseek=20000101000001", Shifted: true}},
			{"range, zone of the mode", "/ch1?playseek=20000101073000&r2h-seek-mode=range(UTC%2B8)", "TZ/UTC+1", Plan{Target: "/ch1", Range: "clock=19991231T233000Z-", Shifted: true}},
			{"range, zone of the agent", "/ch1?playseek=20000101073000&r2h-seek-mode=range", "TZ/UTC+8", Plan{Target: "/ch1", Range: "clock=19991231T233000Z-", Shifted: true}},
			{"range, zone of the mode plays no part outside", "/ch1?playseek=19991231120000&r2h-seek-mode=range(UTC+8)", "TZ/UTC+1", Plan{Target: "/ch1?playseek=19991231110000", Shifted: true}},
			{"range, half hour", "/ch1?playseek=20000101T050000+05:30&r2h-seek-mode=range", "TZ/UTC+8", Plan{Target: "/ch1", Range: "clock=19991231T233000Z-", Shifted: true}},
			{"range, epoch and offset", "/ch1?playseek=946684800&r2h-seek-offset=-600,0&r2h-seek-mode=range(/900)", "", Plan{Target: "/ch1", Range: "clock=19991231T235000Z-", Shifted: true}},
			{"range beats start", "/ch1?playseek=946684800&r2h-seek-mode=range&r2h-start=5", "", Plan{Target: "/ch1", Range: "clock=20000101T000000Z-", Shifted: true}},
			{"bad mode", "/ch1?playseek=946684800&r2h-seek-mode=range(x)", "", Plan{Target: "/ch1?playseek=946684800", Shifted: true}},
		} {
			if diff := cmp.Diff(c.want, New(c.in, c.agent, time.Now())); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", c.name, c.in, diff)
			}
		}
	})
}

func TestAsk(t *testing.T) {
	for _, c := range []struct{ configured, viewers, want string }{
		{"/rtsp/h/1", "/News?playseek=1-2", "/rtsp/h/1?playseek=1-2"},
		{"/rtsp/h/1?a=b", "/News?TVDR=1-&x=y&r2h-token=z", "/rtsp/h/1?a=b&TVDR=1-"},
		{"/rtsp/h/1?playseek={utc}-{utcend}", "/News?playseek=1-2", "/rtsp/h/1?playseek={utc}-{utcend}&playseek=1-2"},
		{"/rtsp/h/1?r2h-seek-name=at", "/News?at=5&playseek=6", "/rtsp/h/1?r2h-seek-name=at&at=5"},
		{"/rtsp/h/1", "/News?at=5&r2h-seek-name=at&r2h-seek-offset=1", "/rtsp/h/1?at=5&r2h-seek-name=at&r2h-seek-offset=1"},
		{"/rtsp/h/1", "/News?r2h-duration=1", "/rtsp/h/1?r2h-duration=1"},
		{"/rtsp/h/1?playseek=1", "/News?r2h-ifname=eth1&fcc=x", ""},
		{"/rtsp/h/1", "/News", ""},
	} {
		got, ok := Ask(c.configured, c.viewers)
		if want := stdcmp.Or(c.want, c.configured); got != want || ok != (c.want != "") {
			t.Errorf("%s for %s: got %s, %v, want %s", c.configured, c.viewers, got, ok, want)
		}
	}
}

func FuzzNew(f *testing.F) {
	f.Add("/ch1?r2h-seek-name=at", "/News?at=1&r2h-start=5")
	f.Add("/ch1?a=1?playseek=19991231120000-&r2h-seek-mode=range(UTC+8/60)&r2h-start=3", "TZ/UTC+8")
	f.Fuzz(func(t *testing.T, in, agent string) {
		if got, ok := Ask(in, agent); !strings.HasPrefix(got, in) || ok != (got != in) {
			t.Errorf("Ask(%q, %q): got %q, %v, want it behind the first", in, agent, got, ok)
		}
		plan := New(in, agent, time.Unix(946684800, 0))
		if len(plan.Target) > len(in)+64 {
			t.Errorf("%q: got %q", in, plan.Target)
		}
		for _, p := range split(plan.Target).params {
			if own[strings.ToLower(p.name())] {
				t.Errorf("%q: got %q, which holds a parameter of ours", in, plan.Target)
			}
		}
		if !plan.Shifted && !strings.Contains(in, "r2h") && !strings.Contains(in, "snapshot") && !strings.Contains(in, "%") && !strings.ContainsAny(in, "RS") && plan.Target != in {
			t.Errorf("%q: got %q, want it as it is", in, plan.Target)
		}
	})
}
