package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// runServe serves until ctx ends. SIGHUP reads the configuration again.
func runServe(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	hangup := make(chan os.Signal, 1) // before anything else: an early SIGHUP must not end the process
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)

	opts, err := parseOptions(args, stdout)
	if err != nil {
		return err
	}
	cfg, err := opts.load()
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(cfg.slogLevel())
	log := newLogger(stderr, level)

	number, commit := buildVersion()
	log.Info("zapcast starts", "version", number, "commit", commit)
	s, err := openServer(cfg, log)
	if err != nil {
		return err
	}
	var tidying sync.WaitGroup
	tidying.Go(func() { tidy(ctx, log) })
	defer tidying.Wait()
	tell(log, stateReady)
	for {
		select {
		case <-hangup:
			tell(log, stateReloading)
			if opts.reload(s, log) {
				level.Set(s.cfg.slogLevel())
			}
			tell(log, stateReady)
		case <-ctx.Done():
			tell(log, stateStopping)
			log.Info("zapcast stops")
			return s.close()
		}
	}
}

// reload reads the file again and applies it. Whatever is wrong with it leaves
// the server as it was; the log says why.
func (o options) reload(s *server, log *slog.Logger) bool {
	if o.file == "" {
		log.Warn("nothing to reload: started without --config")
		return false
	}
	next, err := o.load()
	if err == nil {
		err = s.reconfigure(next)
	}
	if err != nil {
		log.Error("configuration not reloaded; the old one stays", "err", err)
		return false
	}
	log.Info("configuration reloaded", "file", o.file)
	return true
}

func tell(log *slog.Logger, state string) {
	if err := notify(state); err != nil {
		log.Warn("service manager not told", "state", state, "err", err)
	}
}
