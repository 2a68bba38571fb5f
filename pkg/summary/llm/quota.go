package llm

import (
	"context"
	"slices"
	"time"
)

// NewQuota returns a budget for all calls for a tenant, whichever writer makes them; see [Spending]. It allows
// everything until [Budget.Allow] is called.
func NewQuota(tenant string) *Budget { return &Budget{tenant: tenant} }

// Allow changes what a quota allows in any hour: calls, tokens in and out, and cost; 0 for no cap. What was used in the
// last hour counts. While the cost has a cap, writers of models whose price is unknown make no calls for the tenant,
// see [Profile].
func (b *Budget) Allow(calls int, tokens int64, cost float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls, b.tokens, b.cost = calls, tokens, cost
}

// Used returns how much of a quota was used in the last hour.
func (b *Budget) Used() (calls int, tokens int64, cost float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(time.Now())
	for _, p := range b.spent {
		tokens += int64(p.amount)
	}
	for _, p := range b.paid {
		cost += p.amount
	}
	return len(b.called), tokens, cost
}

// NewCap returns a budget of calls and of tokens in and out for one piece of work, however long that takes; 0 for no
// cap.
func NewCap(calls int, tokens int64) *Budget {
	return &Budget{once: true, calls: calls, tokens: tokens}
}

type spendingKey struct{}

// Spending returns a context in which every call also counts against a budget, a quota or a cap, besides the budgets of
// ctx. If one of them is used up, a writer makes no call and returns an [Error] that is [ErrOverQuota] or [ErrCapped].
func Spending(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, spendingKey{}, append(slices.Clip(spending(ctx)), b))
}

// spending returns the budgets that calls count against.
func spending(ctx context.Context) []*Budget {
	list, _ := ctx.Value(spendingKey{}).([]*Budget)
	return list
}
