//go:build !linux

package ingest

import (
	"errors"
	"log/slog"
	"net/netip"
)

var errNoRefresh = errors.New("membership refresh is not available on this system")

// A reporter says that it cannot report.
type reporter struct{}

func newReporter(log *slog.Logger) *reporter {
	log.Warn("membership refresh cannot work", "err", errNoRefresh)
	return &reporter{}
}

func (r *reporter) fault(netip.Addr) string {
	if r == nil {
		return ""
	}
	return errNoRefresh.Error()
}

func (r *reporter) send(report) error { return nil }

func (r *reporter) close() error { return nil }
