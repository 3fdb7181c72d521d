package catchup

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		in    string
		utc   string // the instant, for a client in UTC
		zoned bool
	}{
		{"1704096000", "2024-01-01T08:00:00Z", true},
		{"0", "1970-01-01T00:00:00Z", true},
		{"20240101", "1970-08-23T06:15:01Z", true}, // eight digits are seconds
		{"20240101120000", "2024-01-01T12:00:00Z", false},
		{"20240101120000GMT", "2024-01-01T12:00:00Z", true},
		{"20240101T120000", "2024-01-01T12:00:00Z", false},
		{"20240101T120000Z", "2024-01-01T12:00:00Z", true},
		{"20240101T200000+08:00", "2024-01-01T12:00:00Z", true},
		{"20240101T023000+05:30", "2023-12-31T21:00:00Z", true},
		{"20231231T233000-09:30", "2024-01-01T09:00:00Z", true},
		{"2024-01-01T12:00:00", "2024-01-01T12:00:00Z", false},
		{"2024-01-01T12:00:00.123", "2024-01-01T12:00:00.123Z", false},
		{"2024-01-01T12:00:00.123Z", "2024-01-01T12:00:00.123Z", true},
		{"2024-01-01T12:00:00Z", "2024-01-01T12:00:00Z", true},
		{"2024-02-29T00:00:00+05:45", "2024-02-28T18:15:00Z", true},
		{"2024-12-31T23:59:59.999-12:00", "2025-01-01T11:59:59.999Z", true},
	} {
		got, ok := ParseTime(c.in)
		if !ok {
			t.Errorf("%s: got no time", c.in)
			continue
		}
		if utc := got.In(0).Format(time.RFC3339Nano); utc != c.utc || got.Zoned() != c.zoned {
			t.Errorf("%s: got %s, zoned %t, want %s, %t", c.in, utc, got.Zoned(), c.utc, c.zoned)
		}
		if got.String() != c.in {
			t.Errorf("%s: got %s when it is written again", c.in, got)
		}
	}
}

func TestParseTime_noTime(t *testing.T) {
	for _, in := range []string{
		"", "now", "12345678901", "20240101120000Z", "20240101120000+08:00", "20241301120000", "20240230120000",
		"20240101T120000GMT", "20240101T120000+0800", "20240101T120000+08:60", "20240101T120000+15:00", "2024-01-01 12:00:00",
		"2024-01-01T12:00:00.12", "2024-01-01T12:00:00,123", "2024-01-01T24:00:00", "2024-01-01T12:00:00.123456", "-1", "+5",
		"20240101120000GMT ", "{utc}",
	} {
		if got, ok := ParseTime(in); ok {
			t.Errorf("%q: got %s, want no time", in, got)
		}
	}
}

// Rule 2 and 4: what has no zone is taken from the client's to UTC, then both
// ends are moved, zone or not.
func TestSpan_shift(t *testing.T) {
	for _, c := range []struct {
		in    string
		ahead int // hours of the client
		by    string
		want  string
	}{
		{"20240101120000-20240101130000", 8, "", "20240101040000-20240101050000"},
		{"20240101030000-20240101130000", 8, "", "20231231190000-20240101050000"}, // year end
		{"20240301010000-20240301020000", 2, "", "20240229230000-20240301000000"}, // leap day
		{"20231231200000-20231231233000", -5, "", "20240101010000-20240101043000"},
		{"20240101120000GMT-20240101130000GMT", 8, "", "20240101120000GMT-20240101130000GMT"},
		{"20240101120000GMT-20240101130000GMT", 8, "-28800", "20240101040000GMT-20240101050000GMT"},
		{"1704096000-1704099600", 8, "", "1704096000-1704099600"},
		{"1704096000-1704099600", 8, "10", "1704096010-1704099610"},
		{"20240101T120000-20240101T130000", 8, "12,-12", "20240101T040012-20240101T045948"},
		{"20240101T200000+05:30-20240101T210000+05:30", 8, "3600", "20240101T210000+05:30-20240101T220000+05:30"},
		{"2024-01-01T12:00:00.123-2024-01-01T13:00:00.456", 1, "", "2024-01-01T11:00:00.123-2024-01-01T12:00:00.456"},
		{"2024-01-01T12:00:00Z-2024-01-01T13:00:00Z", 8, "1,2", "2024-01-01T12:00:01Z-2024-01-01T13:00:02Z"},
		{"2024-01-01T12:00:00-05:00-2024-01-01T13:00:00-05:00", 8, "", "2024-01-01T12:00:00-05:00-2024-01-01T13:00:00-05:00"},
		{"20240101120000-", 8, "60", "20240101040100-"},
		{"20240101120000", 8, "60", "20240101040100"},
		{"20240101120000-1704099600", 8, "", "20240101040000-1704099600"}, // forms may differ
		{"20240101120000", 14, "", "20231231220000"},
		{"20240101120000", -12, "", "20240102000000"},
	} {
		p, ok := ParseSpan(c.in)
		if !ok || p.String() != c.in {
			t.Errorf("%s: got %s, ok %t, want it as it is", c.in, p, ok)
			continue
		}
		by, _ := parseOffsets(c.by)
		if got := p.shift(time.Duration(c.ahead)*time.Hour, by).String(); got != c.want {
			t.Errorf("%s, client at UTC%+d, offset %q: got %s, want %s", c.in, c.ahead, c.by, got, c.want)
		}
	}
}

func TestParseSpan_notOne(t *testing.T) {
	for _, in := range []string{"", "-", "-20240101120000", "20240101120000-later", "{start}-{end}", "20240101120000-20240101130000-20240101140000"} {
		if got, ok := ParseSpan(in); ok {
			t.Errorf("%q: got %s, want none", in, got)
		}
	}
}

func TestAgentZone(t *testing.T) {
	for agent, want := range map[string]string{
		"VLC/3.0 TZ/UTC+8":     "8h0m0s",
		"TZ/UTC-3 x":           "-3h0m0s",
		"a TZ/UTC":             "0s",
		"okhttp tz/utc+14)":    "14h0m0s",
		"TZ/UTC-12":            "-12h0m0s",
		"TZ/UTC+15":            "none",
		"TZ/UTC-13":            "none",
		"TZ/UTC+":              "none",
		"TZ/UTC8":              "none",
		"TZ/CET":               "none",
		"Mozilla/5.0":          "none",
		"TZ/UTC+5:30 half":     "5h0m0s", // only whole hours can be said
		"TZ/UTC+99999999999 x": "none",
	} {
		got := "none"
		if ahead, ok := AgentZone(agent); ok {
			got = ahead.String()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", agent, got, want)
		}
	}
}

func TestParseMode(t *testing.T) {
	for in, want := range map[string]mode{
		"":                    {},
		"passthrough":         {},
		"range":               {ranged: true, window: time.Hour},
		"range()":             {ranged: true, window: time.Hour},
		"range(UTC+8)":        {ranged: true, window: time.Hour, zone: 8 * time.Hour, zoned: true},
		"range(UTC)":          {ranged: true, window: time.Hour, zoned: true},
		"range(600)":          {ranged: true, window: 10 * time.Minute},
		"range(UTC-3/86400)":  {ranged: true, window: 24 * time.Hour, zone: -3 * time.Hour, zoned: true},
		"range(/60)":          {ranged: true, window: time.Minute},
		"range(86401)":        {},
		"range(0)":            {},
		"range(CET)":          {},
		"range(UTC+8/)":       {},
		"range(UTC+8/60":      {},
		"range(UTC+8/60)more": {},
		"range(UTC+15)":       {},
		"ranged":              {},
		"range(/-5)":          {},
	} {
		if got := parseMode(in); got != want {
			t.Errorf("%q: got %+v, want %+v", in, got, want)
		}
	}
}

func FuzzParseSpan(f *testing.F) {
	f.Add("20240101120000-20240101130000")
	f.Add("2024-01-01T12:00:00.123-05:00-1704096000")
	f.Fuzz(func(t *testing.T, in string) {
		p, ok := ParseSpan(in)
		if !ok {
			return
		}
		again, ok := ParseSpan(p.String())
		if !ok || again != p {
			t.Errorf("%q: got %s, which does not read the same again", in, p)
		}
		p.shift(8*time.Hour, offsets{time.Second, -time.Second})
	})
}
