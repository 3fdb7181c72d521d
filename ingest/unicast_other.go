//go:build !linux

package ingest

func openUnicast(cfg UnicastConfig) (Unicast, error) { return openPlainUnicast(cfg) }
