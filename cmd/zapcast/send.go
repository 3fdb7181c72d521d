package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"zapcast/playout"
)

const sendUsage = `usage: zapcast send FILE.ts... --to rtp://GROUP:PORT [flags]

Plays TS files out as a live stream, one after the other, paced by their PCR.

    zapcast send news.ts --to rtp://239.1.1.1:5000 --interface eth1 --loop

  --to URL
        Where to: rtp://GROUP:PORT, or udp://GROUP:PORT for TS without RTP. May
        be given more than once: --to rtp://239.1.1.1:5000 --to udp://[ff15::1]:5000
  --interface IF
        Network interface to send multicast on: --interface eth1. Default: the
        routing table's choice
  --ttl N
        How far multicast may go: --ttl 16 crosses 15 routers, 0 stays on this
        machine. Default: 1
  --loop
        Begin again after the last file, without a seam
  --rate RATE
        Faster or slower: --rate 2x. Constant, whatever the PCR says: --rate 8M
        (bits a second). Default: 1x
  --fec CODE
        Send forward error correction: Reed-Solomon as operators do, --fec
        rs:100,5 or rs:48,3,alpha, to the port + 2; or the columns and rows of
        SMPTE 2022-1, --fec 2022-1:10,10, to the ports + 2 and + 4

A bad line, imitated. P is a share of all datagrams, as in 1% or 0.01 or 1/100:

  --drop P[,BURST]
        Lose datagrams: --drop 1%. In runs of ten on average: --drop 1%,10
  --duplicate P
        Send datagrams twice: --duplicate 0.5%
  --reorder P[,DISTANCE]
        Send datagrams too late, behind the eight that follow: --reorder 2%,8
  --jitter DURATION
        Delay each datagram at random, but keep their order: --jitter 30ms
  --seed N
        Repeat a run, datagram by datagram: --seed 7. Default: another one each
        time, named at the end
`

// runSend plays TS files out until they or ctx end.
func runSend(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, paths, err := parseSend(args, stdout)
	if err != nil {
		return err
	}
	// A name mistyped comes out now, not when its turn has come.
	files := make([]playout.File, 0, len(paths))
	for _, path := range paths {
		switch info, err := os.Stat(path); {
		case err != nil:
			return unreadable(path, err)
		case info.IsDir():
			return fmt.Errorf("%s: expected a TS file, found a directory", path)
		}
		files = append(files, playout.DiskFile(path))
	}
	line := newProgress(stderr, cfg.Seed)
	if isTerminal(stderr) {
		cfg.Report = line.update
	}
	player, err := playout.Open(cfg)
	if err != nil {
		return err
	}
	defer player.Close()

	stats, err := player.Run(ctx, files...)
	if stats.Datagrams > 0 {
		line.finish(stats)
	}
	if errors.Is(err, context.Canceled) {
		return nil // this is how a loop ends
	}
	return err
}
