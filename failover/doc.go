// Package failover makes one source of several that carry the same channel.
//
//	first ─► data ──────────────► sink
//	           │ none for Patience, or it ends
//	           ▼
//	         second, while the first is still listened to
//	           │ first data of either
//	           ▼
//	         that one ───────────► sink; the other is closed
//
// Sources are tried in their order. One that is tried is kept until some source
// brings data, so that a slow server is no worse off than an early one; a source
// that has ended, or could not be opened, makes room for the next at once. What
// plays goes on playing: the channel goes back to an earlier source only when a
// Switch says so, and not before that source brings data.
//
// Opening happens in a goroutine of its own, since it may block; everything else
// is done in Drain, by the loop.
package failover
