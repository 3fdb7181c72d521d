package ingest

import (
	"reflect"
	"time"
)

var durationType = reflect.TypeFor[time.Duration]()

// AddCounters adds the counters of o, which are its fields of the type int64 and
// those of its Losses, to those of s. Everything else in s stays as it is.
func (s *Status) AddCounters(o *Status) {
	addCounters(reflect.ValueOf(s).Elem(), reflect.ValueOf(o).Elem())
	addCounters(reflect.ValueOf(&s.Losses).Elem(), reflect.ValueOf(&o.Losses).Elem())
}

func addCounters(sum, add reflect.Value) {
	for i := range sum.NumField() {
		if f := sum.Field(i); f.Kind() == reflect.Int64 && f.Type() != durationType {
			f.SetInt(f.Int() + add.Field(i).Int())
		}
	}
}

// Outcomes are the words of FCCStatus.Outcome.
var Outcomes = []string{"pending", "burst", "broken", "none"}

// Outcome says in one word what came of it: "pending" while that is not decided,
// "burst" for one that led or may lead into the multicast, "broken" for one that
// was given up, "none" where there was no burst.
func (f *FCCStatus) Outcome() string {
	switch {
	case f.Kind == "":
		return "pending"
	case f.Kind == StartMulticast:
		return "none"
	case f.Reason != "":
		return "broken"
	}
	return "burst"
}
