package main

import (
	"context"
	"errors"
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
	book, log := newLogger(stderr, cfg.slogLevel())

	number, commit := buildVersion()
	log.Info("zapcast starts", "version", number, "commit", commit)
	asked := make(chan chan error) // to read the file again, by a request
	s := &server{log: log, journal: book, reload: func() error {
		answer := make(chan error, 1)
		select {
		case asked <- answer:
			return <-answer
		case <-ctx.Done():
			return errors.New("the server ends")
		}
	}}
	if err := s.open(cfg); err != nil {
		return err
	}
	var tidying sync.WaitGroup
	tidying.Go(func() { tidy(ctx, log) })
	defer tidying.Wait()
	tell(log, stateReady)
	for {
		select {
		case <-hangup:
			_ = opts.reload(s)
		case answer := <-asked:
			answer <- opts.reload(s)
		case <-ctx.Done():
			tell(log, stateStopping)
			log.Info("zapcast stops")
			return s.close()
		}
	}
}

// reload reads the file again and applies it. Whatever is wrong with it leaves
// the server as it was; the log says why, and so does the error.
func (o options) reload(s *server) (err error) {
	tell(s.log, stateReloading)
	defer tell(s.log, stateReady)
	if o.file == "" {
		s.log.Warn("nothing to reload: started without --config")
		return errors.New("started without --config")
	}
	next, err := o.load()
	if err == nil {
		err = s.reconfigure(next)
	}
	if err != nil {
		s.log.Error("configuration not reloaded; the old one stays", "err", err)
		return err
	}
	if s.journal != nil {
		s.journal.SetLevel(s.cfg.slogLevel())
	}
	s.log.Info("configuration reloaded", "file", o.file)
	return nil
}

func tell(log *slog.Logger, state string) {
	if err := notify(state); err != nil {
		log.Warn("service manager not told", "state", state, "err", err)
	}
}
