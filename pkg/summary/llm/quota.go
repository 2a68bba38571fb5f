package llm

import (
	"context"
	"time"
)

// NewQuota returns a budget for the calls that are made for a tenant, whichever writer makes them; see
// [Spending]. It allows everything until [Budget.Allow].
func NewQuota(tenant string) *Budget { return &Budget{tenant: tenant} }

// Allow changes what a quota allows in any hour: calls, and tokens in and out; 0 for no cap. What was taken
// in the last hour counts.
func (b *Budget) Allow(calls int, tokens int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls, b.tokens = calls, tokens
}

// Used returns what was taken of a quota in the last hour.
func (b *Budget) Used() (calls int, tokens int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(time.Now())
	for _, p := range b.spent {
		tokens += int64(p.amount)
	}
	return len(b.called), tokens
}

type quotaKey struct{}

// Spending returns a context in which every call counts against a quota too. Over it, a writer makes no call
// and returns an [Error] that is [ErrOverQuota].
func Spending(ctx context.Context, quota *Budget) context.Context {
	return context.WithValue(ctx, quotaKey{}, quota)
}

// quotaOf returns the quota that calls count against; one that allows everything if there is none.
func quotaOf(ctx context.Context) *Budget {
	if quota, ok := ctx.Value(quotaKey{}).(*Budget); ok {
		return quota
	}
	return new(Budget)
}
