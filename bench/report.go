//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// runReport is "bench report": it prints the tables of a results.json again,
// against any baseline.
func runReport(args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New("usage: bench report RESULTS.JSON [BASELINE]")
	}
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	res := &results{}
	if err := json.Unmarshal(b, res); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if len(args) == 2 {
		if !slices.Contains(res.Programs, args[1]) {
			return fmt.Errorf("%s has no program %q, only %s", args[0], args[1], strings.Join(res.Programs, ", "))
		}
		res.Baseline = args[1]
	}
	writeReport(os.Stdout, res)
	return nil
}

// writeReport prints what was measured where, and a table for each case.
func writeReport(out io.Writer, res *results) {
	fmt.Fprintf(out, "Started %s\n\n", res.Started)
	for _, m := range []map[string]string{res.Machine, res.Settings, res.Notes} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if m[k] != "" {
				fmt.Fprintf(out, "- %s: %s\n", k, m[k])
			}
		}
	}
	var load, join bool
	for _, c := range res.Cases {
		fmt.Fprintf(out, "\n%s\n\n", c.title())
		if c.Join {
			join = true
			writeRows(out, res.joinRows(c.Name))
		} else {
			load = true
			writeRows(out, res.loadRows(c.Name))
		}
	}
	fmt.Fprintln(out)
	if load {
		fmt.Fprint(out, loadLegend)
		if res.Baseline != "" {
			fmt.Fprintf(out, "\"x\" columns are ratios to %s: less is better.\n", res.Baseline)
		}
	}
	if join {
		fmt.Fprint(out, joinLegend)
	}
}

const (
	loadLegend = "Means (min-max) over rounds. user: share of the CPU in user mode, sampled in a window of its own, ± one standard error. " +
		"lost, doubled, reordered: TS packets, warm-up included. slowest: the slowest client's rate as a share of its source's.\n"
	joinLegend = "Times are ms after the request. decodable: a random-access packet with PAT and PMT before it; " +
		"\"- next RAP\": less the time to the first random-access point that the sender sent after the request.\n"
)

// loadRows is the table of one load case.
func (res *results) loadRows(name string) [][]string {
	rows := [][]string{{
		"program", "CPU %", "user %", "server CPU busy %", "PSS MiB", "USS MiB", "lost", "doubled", "reordered",
		"slowest", "load CPU % (gen)", "CPU x", "PSS x", "USS x", "notes",
	}}
	base := cellOf(res.Trials, res.Baseline, name)
	for _, p := range res.Programs {
		c := cellOf(res.Trials, p, name)
		if c.Runs == 0 {
			continue
		}
		row := make([]string, len(rows[0]))
		row[0], row[1], row[len(row)-1] = p, "failed", strings.Join(c.notes(), "; ")
		if c.Runs > len(c.Errors) {
			busy, user := "-", "-"
			if c.Busy.Max > 0 {
				busy = c.Busy.text(1)
			}
			if share, margin, ok := c.User.percent(); ok {
				user = fmt.Sprintf("%.1f ±%.1f", share, margin)
			}
			row = []string{
				p, c.CPU.text(2), user, busy, c.PSS.text(2), c.USS.text(2),
				c.share(c.Lost), fmt.Sprint(c.Dup), fmt.Sprint(c.Reordered),
				fmt.Sprintf("%.3f", c.MinRate), fmt.Sprintf("%.0f (%.0f-%.0f)", c.LoadBusy.Max, c.Gen.Min, c.Gen.Max),
				ratio(c.CPU, base.CPU), ratio(c.PSS, base.PSS), ratio(c.USS, base.USS), strings.Join(c.notes(), "; "),
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// joinRows is the table of one join case: a row for each kind of waiting time.
func (res *results) joinRows(name string) [][]string {
	rows := [][]string{{"program", "request", "until", "n", "mean", "median", "p95", "max", "notes"}}
	for _, p := range res.Programs {
		c := cellOf(res.Trials, p, name)
		if c.Runs == 0 {
			continue
		}
		notes := strings.Join(append((&trial{Lost: c.Lost, Dup: c.Dup, Reordered: c.Reordered}).faults(), c.notes()...), "; ")
		if c.Runs == len(c.Errors) {
			rows = append(rows, []string{p, "failed", "", "", "", "", "", "", notes})
			continue
		}
		for _, r := range []struct {
			request, until string
			times          []float64
		}{
			{"cold", "first byte", c.Cold.Byte},
			{"cold", "random access", c.Cold.RAP},
			{"cold", "decodable", c.Cold.Decodable},
			{"cold", "decodable - next RAP", c.Cold.AfterRAP},
			{"warm", "first byte", c.Warm.Byte},
			{"warm", "random access", c.Warm.RAP},
			{"warm", "decodable", c.Warm.Decodable},
		} {
			if len(r.times) == 0 {
				continue
			}
			row := []string{p, r.request, r.until, fmt.Sprint(len(r.times))}
			for _, v := range []float64{mean(r.times), median(r.times), quantile(r.times, 0.95), slices.Max(r.times)} {
				row = append(row, fmt.Sprintf("%.1f", v))
			}
			rows = append(rows, append(row, notes))
			notes = ""
		}
	}
	return rows
}

// text is the mean and the extremes.
func (s spread) text(digits int) string {
	return fmt.Sprintf("%.*f (%.*f-%.*f)", digits, s.Mean, digits, s.Min, digits, s.Max)
}

// share is a number of packets, with its share of all where that is not nothing.
func (c *cell) share(n int64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.3g%%)", n, 100*float64(n)/float64(c.Packets+c.Lost))
}

// notes are the marks of the runs, one of each kind, and what failed.
func (c *cell) notes() (out []string) {
	if c.Corrupt > 0 {
		out = append(out, fmt.Sprintf("%d damaged", c.Corrupt))
	}
	seen := map[string]bool{}
	for _, m := range c.Marks {
		kind := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, m)
		if !seen[kind] {
			out = append(out, m)
		}
		seen[kind] = true
	}
	if n := len(c.Errors); n > 0 {
		out = append(out, fmt.Sprintf("%d of %d runs failed: %s", n, c.Runs, c.Errors[0]))
	}
	return out
}

func ratio(v, base spread) string {
	if base.Mean == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v.Mean/base.Mean)
}

// writeRows prints a Markdown table with aligned columns.
func writeRows(out io.Writer, rows [][]string) {
	width := make([]int, len(rows[0]))
	clean := strings.NewReplacer("\n", " ", "|", "/") // of what servers say
	for _, r := range rows {
		for i, s := range r {
			r[i] = clean.Replace(s)
			width[i] = max(width[i], utf8.RuneCountInString(r[i]))
		}
	}
	line := func(r []string) {
		for i, s := range r {
			fmt.Fprintf(out, "| %-*s ", width[i], s)
		}
		fmt.Fprintln(out, "|")
	}
	line(rows[0])
	rule := make([]string, len(width))
	for i, w := range width {
		rule[i] = strings.Repeat("-", w)
	}
	line(rule)
	for _, r := range rows[1:] {
		line(r)
	}
}
