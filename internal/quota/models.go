package quota

import (
	"context"

	"mneme.dev/mneme/pkg/summary/llm"
)

// Spends says that this process calls models for tenants, through [Quotas.Spend]. Then reports say how much.
func (q *Quotas) Spends() {
	if q == nil {
		return
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.models == nil {
		q.models = map[string]*llm.Budget{}
	}
}

// Spend returns a context in which calls of models count against the quota of a tenant.
func (q *Quotas) Spend(ctx context.Context, name string) context.Context {
	if q == nil {
		return ctx
	}
	q.Spends()
	q.lock.Lock()
	defer q.lock.Unlock()
	budget := q.models[name]
	if budget == nil {
		if len(q.models) >= maxTenants {
			q.forgetModels()
		}
		budget = llm.NewQuota(name)
		q.models[name] = budget
	}
	limits := q.of(name)
	budget.Allow(limits.Calls, limits.Tokens, limits.Cost)
	return llm.Spending(ctx, budget)
}

// forgetModels drops tenants that have called no model for an hour.
func (q *Quotas) forgetModels() {
	for name, budget := range q.models {
		if calls, tokens, _ := budget.Used(); calls == 0 && tokens == 0 {
			delete(q.models, name)
		}
	}
}
