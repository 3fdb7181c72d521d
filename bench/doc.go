// Command bench measures IPTV multicast-to-HTTP servers side by side on one
// Linux machine: CPU, memory, what their clients lost, and how long those waited.
// README.md says how to use it and what its figures mean.
//
// One run of it is several processes, all of them this program:
//
//	bench            reads the command line, builds what is to be measured
//	  └ measure      the same process, after it moved to a network namespace and a CPU
//	      ├ SERVER   one program under test, on a CPU of its own
//	      ├ gen      sends the multicast channels
//	      └ read     is all HTTP clients; checks every packet
//
// The files follow that order: options, build, stage (the namespace and the
// CPUs), run (rounds), trial (one measurement), window and proc (what the kernel
// says of the server), child and server (starting and stopping them); gen and ts make the load;
// reader, httpbody and verify take it; join and watch time a request; stats and
// report turn it all into tables.
//
// Nothing here is imported from the rest of the project: a measurement must not
// share code with what it measures.
package main
