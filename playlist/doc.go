// Package playlist reads and writes M3U lists of channels, as IPTV players and
// operators use them.
//
//	bytes ─► Parse: text, lines ─► List: entries, each with its sources
//	                                  │ AppendEntry, with other URLs
//	                                  ▼
//	                               bytes: every other line as it was
//
// There is no standard. The header line and the entries follow what Kodi, VLC
// and the set-top boxes of operators read; docs/channels.md says it in full. A
// line that is not understood is kept, and written where it stood: nothing that
// a list says is lost by passing through here. Only the URLs are replaced.
//
// Parse keeps the text that it was given as one string, and what a List holds
// are pieces of it. A List is not changed after Parse, so that any number of
// goroutines may read it.
//
// HLS playlists, which are M3U too, are refused: they list the pieces of one
// stream.
package playlist
