// Package catchup reads what a URL says about time: which moment of a recording
// or of a time-shift buffer is wanted, in which of the forms that operators use,
// and in whose zone. It turns that into what the server is asked.
//
//	time.go   a moment in the form in which it was written
//	span.go   begin and end of a seek value, and the zone rules
//	query.go  a query, parameter by parameter, byte for byte
//	placeholder.go   what a player should have filled in
//	plan.go   the parameters that are ours, and what follows from them
//
// docs/rtsp.md has the tables.
package catchup
