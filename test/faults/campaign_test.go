package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/internal/testdata"
)

// config returns a campaign for a test.
func config(t *testing.T, p Plan, events int) Config {
	t.Helper()
	dir := t.TempDir()
	where := os.Getenv(testdata.Variable)
	if where == "" {
		where = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(where); err != nil {
		where = filepath.Join("..", "..", fixtures)
	}
	return Config{
		Plan: p, Events: events, Dir: filepath.Join(dir, "run"), Sessions: where, Jars: neo4jtest.Jars(t), Recovery: 3 * mnemetest.Patience,
		Say: timed(t), Report: func(r *Report) error {
			return r.write(filepath.Join(dir, "report.json"), filepath.Join(dir, "report.md"))
		},
	}
}

// timed logs the progress with its time.
func timed(t *testing.T) func(format string, args ...any) {
	began := time.Now()
	return func(format string, args ...any) {
		t.Logf("%5.1fs %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
}

// written returns the report that was written.
func written(t *testing.T, c Config) *Report {
	t.Helper()
	r, err := readReport(filepath.Join(filepath.Dir(c.Dir), reportName))
	require.NoError(t, err)
	return r
}

// processesOf returns the processes whose command line names a directory.
func processesOf(t *testing.T, dir string) (list []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), dir) { // or it has ended
			list = append(list, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return list
}

// TestAShortCampaign has one fault of every kind; with MNEME_TEST_ALL=1 five of each. In the schedule
// of the short one Neo4j is frozen and cut off, but not restarted: a new server plans all statements
// again, which takes a minute, and test/neo4j restarts one.
// MNEME_TEST_SEED is the seed of another schedule.
func TestAShortCampaign(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute or two: run it without -short")
	}
	p, n := Plan{Seed: 6, Faults: len(targets()), Duration: 30 * time.Second}, 2000
	if mnemetest.All {
		p.Seed, p.Faults, p.Duration, n = 1, 5*len(targets()), 6*time.Minute, 40_000
	}
	if seed := os.Getenv("MNEME_TEST_SEED"); seed != "" {
		var err error
		p.Seed, err = strconv.ParseUint(seed, 10, 64)
		require.NoError(t, err)
	}
	c := config(t, p, n)
	report, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, report.Violations, "%s", report.Command)
	require.True(t, report.Complete)
	require.Len(t, report.Outcomes, p.Faults)
	require.GreaterOrEqual(t, report.Checked.Acknowledged, n)
	require.Positive(t, report.Checked.Duplicates, "no copy has reached the log")
	require.Positive(t, report.Checked.Refused)
	for _, name := range projections {
		require.NotEmpty(t, report.Checked.Hashes[name], name)
	}
	require.Positive(t, report.Checked.Titles)
	require.GreaterOrEqual(t, len(report.Checked.Summaries), 2, "no summary of level 2: %v", report.Checked.Summaries)
	require.Positive(t, report.Read["read: 200"])
	require.Equal(t, report.Checked, written(t, c).Checked)
	require.Contains(t, report.Markdown(), "0 are lost, 0 doubled, 0 out of order")
	require.Empty(t, processesOf(t, c.Dir))
}

// An interrupted campaign must leave no processes, and its data can be checked.
func TestAnInterruptedCampaignCanBeChecked(t *testing.T) {
	if !mnemetest.All {
		t.Skip("takes a minute: make test-all runs it")
	}
	c := config(t, Plan{Seed: 1, Faults: 100, Duration: time.Hour}, 1_000_000)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	say := c.Say
	c.Say = func(format string, args ...any) {
		say(format, args...)
		if strings.HasPrefix(format, "%d faults") { // it has begun
			time.AfterFunc(5*time.Second, interrupt)
		}
	}
	_, err := Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, processesOf(t, c.Dir))
	report := written(t, c)
	require.False(t, report.Complete)
	require.Positive(t, report.Acknowledged)
	require.Contains(t, report.Markdown(), "Not complete")

	// Add a line to the ledger for an event that was never published: the check must find this and
	// nothing else.
	ledger, err := os.OpenFile(filepath.Join(c.Dir, ledgerName), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = ledger.WriteString("e 1000000 0 3 " + strings.Repeat("0", 32) + " " + strings.Repeat("0", 32) + "\n")
	require.NoError(t, err)
	require.NoError(t, ledger.Close())
	violations, err := Check(t.Context(), c.Dir, c.Jars, report, t.Logf)
	require.NoError(t, err)
	require.Equal(t, 1, violations)
	require.Equal(t, 1, report.Violating)
	require.False(t, report.Complete, "not all faults were hit")
	require.Positive(t, report.Checked.Messages)
	require.Empty(t, processesOf(t, c.Dir))
}
