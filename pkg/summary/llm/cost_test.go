package llm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/pkg/summary/llm"
)

func TestAQuotaOfCostNeedsThePriceOfTheModel(t *testing.T) {
	t.Parallel()
	const draft = `{"conversation": "They warmed the caches.", "actions": "Read files.", "findings": ["It holds."], "topics": ["caches"]}`
	for name, c := range map[string]struct {
		price float64 // of a million input tokens
		known bool
		calls int // until the quota is used
		says  string
	}{
		"unknown": {says: `the tenant "team-a" has a quota of model cost, and the price of the model "canned" is not known`},
		"free":    {known: true, calls: 5},
		"priced":  {price: 0.6 * 1e6 / llmtest.InputTokens, calls: 2, says: `the tenant "team-a" is over its quota of a model cost of 1 an hour`},
	} {
		e, w := setup(t, func(p *llm.Profile) { p.InputPrice, p.OutputPrice, p.Priced = c.price, c.price/1e6, c.known })
		e.Reply(llmtest.Chat(draft))
		quota := llm.NewQuota("team-a")
		quota.Allow(0, 0, 1)
		ctx := llm.Spending(t.Context(), quota)
		for range c.calls {
			_, _, err := w.Write(ctx, input())
			require.NoError(t, err, name)
		}
		if c.says != "" {
			_, _, err := w.Write(ctx, input())
			require.ErrorIs(t, err, llm.ErrOverQuota, name)
			require.ErrorContains(t, err, c.says)
		}
		require.Equal(t, c.calls, e.Calls(), name)
		quota.Allow(0, 0, 0)
		_, _, err := w.Write(ctx, input())
		require.NoError(t, err, "%s: without a quota of cost the price does not matter", name)
	}
}
