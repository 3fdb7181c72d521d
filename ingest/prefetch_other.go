//go:build !amd64 && !arm64

package ingest

import "unsafe"

func prefetch(unsafe.Pointer, uintptr, uintptr) {}
