package catchup

import (
	"strconv"
	"strings"
	"time"
)

// A Time is a moment as it was written: moved or not, it is written the same way
// again.
type Time struct {
	wall   time.Time // the digits, as if they were UTC
	form   form
	suffix string        // "", "Z", "GMT", "+08:00", as it was written
	ahead  time.Duration // of the suffix, ahead of UTC
	zoned  bool          // the suffix, or being an epoch, says which zone the digits are in
}

type form uint8

const (
	epoch         form = iota // seconds since 1970
	digits                    // 20240101120000
	basic                     // 20240101T120000
	extended                  // 2024-01-01T12:00:00
	extendedMilli             // 2024-01-01T12:00:00.123
)

var layouts = [...]string{
	digits:        "20060102150405",
	basic:         "20060102T150405",
	extended:      "2006-01-02T15:04:05",
	extendedMilli: "2006-01-02T15:04:05.000",
}

// epochDigits bounds Unix seconds; a number with more digits is a date.
const epochDigits = 10

// ParseTime reads one of the forms. Everything must fit: a form with a date that
// does not exist, or with something behind it, is none.
func ParseTime(s string) (Time, bool) {
	if s != "" && len(s) <= epochDigits && allDigits(s) {
		seconds, err := strconv.ParseInt(s, 10, 64)
		return Time{wall: time.Unix(seconds, 0).UTC(), form: epoch, zoned: true}, err == nil
	}
	for f := extendedMilli; f >= digits; f-- {
		if len(s) < len(layouts[f]) {
			continue
		}
		head, suffix := s[:len(layouts[f])], s[len(layouts[f]):]
		if strings.ContainsAny(head, ",") { // which package time takes for a point
			continue
		}
		wall, err := time.Parse(layouts[f], head)
		if err != nil {
			continue
		}
		t := Time{wall: wall, form: f, suffix: suffix}
		return t, t.readSuffix()
	}
	return Time{}, false
}

// readSuffix reports whether the suffix fits the form.
func (t *Time) readSuffix() bool {
	s := t.suffix
	if s == "" {
		return true
	}
	t.zoned = true
	switch {
	case t.form == digits:
		return s == "GMT"
	case s == "Z":
		return true
	case len(s) != len("+08:00") || s[0] != '+' && s[0] != '-' || s[3] != ':' || !allDigits(s[1:3]) || !allDigits(s[4:]):
		return false
	}
	hours, _ := strconv.Atoi(s[1:3])
	minutes, _ := strconv.Atoi(s[4:])
	t.ahead = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if s[0] == '-' {
		t.ahead = -t.ahead
	}
	return hours <= 14 && minutes < 60
}

// String writes the moment in its form.
func (t Time) String() string {
	if t.form == epoch {
		return strconv.FormatInt(t.wall.Unix(), 10)
	}
	return t.wall.Format(layouts[t.form]) + t.suffix
}

// Zoned reports whether the moment says itself which zone it is in.
func (t Time) Zoned() bool { return t.zoned }

// Add moves the moment.
func (t Time) Add(d time.Duration) Time {
	t.wall = t.wall.Add(d)
	return t
}

// In is the instant, where a moment without a zone is meant in one that is ahead
// of UTC by so much.
func (t Time) In(ahead time.Duration) time.Time {
	if t.zoned {
		ahead = t.ahead
	}
	return t.wall.Add(-ahead)
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
