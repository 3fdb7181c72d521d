//go:build linux

package main

import (
	"math"
	"slices"
)

// spread is a mean with its extremes over the rounds.
type spread struct{ Mean, Min, Max float64 }

func spreadOf(v []float64) spread {
	if len(v) == 0 {
		return spread{}
	}
	return spread{mean(v), slices.Min(v), slices.Max(v)}
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

func median(v []float64) float64 { return quantile(v, 0.5) }

// quantile is the smallest value that at least the share q of v does not exceed.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return s[min(max(int(math.Ceil(q*float64(len(s))))-1, 0), len(s)-1)]
}

// cell is all rounds of one program in one case.
type cell struct {
	Runs          int
	Errors        []string // one for each run that failed
	CPU, Busy     spread
	User          userShare
	PSS, USS      spread
	Packets       int64
	Lost, Dup     int64
	Reordered     int64
	Corrupt       int64
	MinRate       float64
	LoadBusy, Gen spread
	Cold, Warm    joinTimes
	Marks         []string
}

func cellOf(trials []*trial, program, name string) *cell {
	c := &cell{MinRate: math.Inf(1)}
	var cpu, busy, pss, uss, load, gen []float64
	for _, t := range trials {
		if t.Program != program || t.Case != name {
			continue
		}
		c.Runs++
		if t.Error != "" {
			c.Errors = append(c.Errors, t.Error)
			continue
		}
		cpu, busy = append(cpu, t.CPU), append(busy, t.ServerCPUBusy)
		pss, uss = append(pss, t.PSS), append(uss, t.USS)
		load, gen = append(load, t.LoadCPUBusy), append(gen, t.GenCPU)
		c.User.add(t.Mode)
		c.Lost += t.Lost
		c.Dup += t.Dup
		c.Reordered += t.Reordered
		c.Corrupt += t.Corrupt
		c.Marks = append(c.Marks, t.Marks...)
		if t.Read != nil {
			c.MinRate = min(c.MinRate, t.MinRate)
			c.Packets += t.Read.Window.Packets + t.Read.Warmup.Packets
		}
		if t.Join != nil {
			c.Cold.add(t.Join.Cold)
			c.Warm.add(t.Join.Warm)
			c.Packets += t.Join.Faults.Packets
		}
	}
	c.CPU, c.Busy, c.PSS, c.USS = spreadOf(cpu), spreadOf(busy), spreadOf(pss), spreadOf(uss)
	c.LoadBusy, c.Gen = spreadOf(load), spreadOf(gen)
	return c
}
