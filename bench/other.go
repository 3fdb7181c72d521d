//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: measures on Linux only: it needs network namespaces and /proc")
	os.Exit(1)
}
