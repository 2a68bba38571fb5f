package otlp

import (
	"context"
	"sync"
)

// turns lets a few requests of each tenant in at once, the others one after the other as they came. It holds only the
// tenants of present requests, because without tokens an exporter may name any. The zero value is ready.
type turns struct {
	mu sync.Mutex
	of map[string]*turn // by tenant
}

type turn struct {
	taken    chan struct{}
	requests int // that are in, or wait
}

// enter waits until fewer than limit requests of the tenant are in. leave must be called once if err is nil; otherwise
// err is the one of ctx.
func (t *turns) enter(ctx context.Context, tenant string, limit int) (leave func(), err error) {
	t.mu.Lock()
	own := t.of[tenant]
	if own == nil {
		if t.of == nil {
			t.of = map[string]*turn{}
		}
		own = &turn{taken: make(chan struct{}, limit)}
		t.of[tenant] = own
	}
	own.requests++
	t.mu.Unlock()
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; t.done(tenant, own) }, nil
	case <-ctx.Done():
		t.done(tenant, own)
		return nil, ctx.Err()
	}
}

func (t *turns) done(tenant string, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.requests--; own.requests == 0 {
		delete(t.of, tenant)
	}
}
