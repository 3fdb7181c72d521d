//go:build !linux

package ingest

func newReceiver(cfg ReceiverConfig) Receiver { return newPlainReceiver(cfg) }
