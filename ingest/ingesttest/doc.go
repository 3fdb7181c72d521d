// Package ingesttest helps to test sources and what stands on them, without a
// network: a Receiver in memory, a builder for RTP datagrams, and the suite
// that every ingest.Source passes.
package ingesttest
