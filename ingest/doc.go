// Package ingest brings streams in.
package ingest
