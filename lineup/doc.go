// Package lineup knows the channels that have names: those of the configuration
// and those of playlists, and the paths under which viewers find them.
//
//	configuration ──────────────┐
//	playlist: file ─► Parse ────┼─► Table: channels in order, by path ─► Find
//	          http ─► Parse ─┐  │       │                                AppendM3U
//	             last good copy on disk ┘
//
// A Table never changes; a Lineup replaces it as a whole when a playlist brings
// something new. A playlist that cannot be had, or is no playlist, leaves what it
// brought before, from this run or, through its copy on disk, from an earlier
// one, and says why in Playlists.
//
// A channel keeps its Switch as long as it keeps its path. docs/channels.md says
// how paths are made.
package lineup
