package main

import (
	"fmt"
	"net"
	"os"
)

// States that a service manager is told (sd_notify(3)).
const (
	stateReady     = "READY=1"
	stateReloading = "RELOADING=1"
	stateStopping  = "STOPPING=1"
)

// notify tells the service manager a state. Without one it does nothing.
func notify(state string) error {
	path := os.Getenv("NOTIFY_SOCKET") // a leading @ is an abstract socket here and in package net
	if path == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	return nil
}
