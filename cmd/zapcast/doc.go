// Zapcast turns an operator's IPTV network into streams for many viewers.
//
// The program's path, in the order in which it is worth reading:
//
//	main.go       the commands, and what an error becomes
//	settings.go   every setting: name, default, range, meaning
//	value.go      the kinds of values that settings have
//	config.go     defaults, then the file, then the flags
//	document.go   a TOML document, strictly, with the line of every fault
//	flags.go      the flags of serve, made from the settings
//	serve.go      start, signals, reload, stop
//	server.go     the running server: listeners, HTTP, engine
//	listen.go     opening and closing listeners
//
// check.go, version.go, send.go and demo.go are the other commands; notify.go
// and log.go talk to what started the program.
package main
