package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/program"
)

// figure is one line of a report.
type figure struct{ name, value string }

// report prints what was measured: the figures, or with --json all of it.
func (t *terminal) report(g *Globals, all any, list []figure) error {
	if g.JSON {
		return t.json(all)
	}
	width := 0
	for _, f := range list {
		width = max(width, len(f.name))
	}
	for _, f := range list {
		if _, err := fmt.Fprintf(t.out, "%-*s  %s\n", width, f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}

// status shows the progress of a measurement on one line of a terminal.
func (t *terminal) status(format string, args ...any) {
	if isTerminal(t.err) {
		fmt.Fprintf(t.err, "\r\x1b[K"+format, args...)
	}
}

// measured ends the status line and returns the error of a measurement, if any.
func (t *terminal) measured(ctx context.Context, err error) error {
	t.status("")
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; temporary data was removed")
	case errors.Is(err, bench.ErrNoEvents), errors.Is(err, bench.ErrInUse), errors.Is(err, bench.ErrOneSession):
		return &program.UsageError{Err: err}
	}
	return err
}

func atLeast[T int | time.Duration](flag string, value, least T) error {
	if value < least {
		return &program.UsageError{Err: fmt.Errorf("%s %v: must be at least %v", flag, value, least)}
	}
	return nil
}

func machine(m bench.Machine) string {
	load := "n/a"
	if m.Load != nil {
		load = fmt.Sprintf("%.2f", *m.Load)
	}
	return fmt.Sprintf("%s, %d cores, %s/%s, %s, load average %s before", cmp.Or(m.CPU, "CPU n/a"), m.Cores, m.OS, m.Arch, m.Go, load)
}

func perSecond(rate float64) string { return number(int(rate)) + " events/s" }

func ratios(median float64, all []float64) string {
	return fmt.Sprintf("%.2f (median of %.2f)", median, all)
}

func quantiles(l bench.Latencies) string {
	return fmt.Sprintf("p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, at most %.1f ms (%s times)", l.P50, l.P90, l.P99, l.Max, number(l.Count))
}

func mb(v *float64) string {
	if v == nil {
		return "n/a"
	}
	return fmt.Sprintf("%.0f MB", *v)
}
