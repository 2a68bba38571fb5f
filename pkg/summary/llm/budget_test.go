package llm_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
)

// prices under which a canned answer costs 0.25.
func prices(p *llm.Profile) { p.InputPrice, p.OutputPrice = 200, 1_000 }

func TestACapOnCalls(t *testing.T) {
	t.Parallel()
	e, w := setup(t, func(p *llm.Profile) { p.MaxCallsPerHour = 3 })
	e.Reply(llmtest.Failure(http.StatusInternalServerError, "", ""), good(t))
	began := time.Now()
	require.NoError(t, w.Budget().Check())
	for range 2 {
		_, _, err := w.Write(t.Context(), input())
		require.NoError(t, err)
	}
	require.Equal(t, 3, e.Calls(), "failed calls count too")

	_, usage, err := w.Write(t.Context(), input())
	capped := failed(t, err, llm.ClassCapped, summary.ErrUnavailable)
	require.ErrorIs(t, err, llm.ErrCapped)
	require.Contains(t, capped.Reason, "3 calls")
	require.WithinDuration(t, began.Add(time.Hour), capped.NotBefore, patience)
	require.Zero(t, usage.Calls)
	require.Equal(t, 3, e.Calls())
	require.Equal(t, "closed", w.Stats().Breaker)
	require.Equal(t, map[llm.Class]int64{llm.ClassServer: 1, llm.ClassCapped: 1}, w.Stats().Failures)

	asked, ok := errors.AsType[*llm.Error](w.Budget().Check())
	require.True(t, ok)
	require.Equal(t, capped.NotBefore, asked.NotBefore)
	_, _, err = w.Condense(t.Context(), llm.ToolResult{Result: "a long result"})
	require.ErrorIs(t, err, llm.ErrCapped, "the writers share one budget")
}

func TestACapOnCost(t *testing.T) {
	t.Parallel()
	e, w := setup(t, prices, func(p *llm.Profile) { p.MaxCostPerHour = 0.5 })
	e.Reply(llmtest.CutOff("this call costs too"), good(t))
	_, _, err := w.Write(t.Context(), input())
	failed(t, err, llm.ClassCutOff, summary.ErrUnusable)
	_, _, err = w.Write(t.Context(), input())
	require.NoError(t, err)

	_, usage, err := w.Write(t.Context(), input())
	capped := failed(t, err, llm.ClassCapped, summary.ErrUnavailable)
	require.ErrorIs(t, err, llm.ErrCapped)
	require.Contains(t, capped.Reason, "a cost of 0.5")
	require.WithinDuration(t, time.Now().Add(time.Hour), capped.NotBefore, patience)
	require.Zero(t, usage.Calls)
	require.Equal(t, 2, e.Calls())
}

func TestStats(t *testing.T) {
	t.Parallel()
	e, w := setup(t, prices)
	require.Equal(t, llm.Stats{Breaker: "closed"}, w.Stats())
	e.Reply(llmtest.Failure(http.StatusInternalServerError, "", ""), llmtest.Chat("no JSON"), good(t))
	for range 2 {
		_, _, _ = w.Write(t.Context(), input())
	}
	require.Equal(t, llm.Stats{
		Calls: 3, Failures: map[llm.Class]int64{llm.ClassServer: 1, llm.ClassInvalid: 1},
		InputTokens: 2 * llmtest.InputTokens, OutputTokens: 2 * llmtest.OutputTokens, Cost: 0.5, Breaker: "closed",
	}, w.Stats())
}
