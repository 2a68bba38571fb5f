package llm

import (
	"fmt"
	"sync"
	"time"
)

// Budget caps the calls and the cost of a writer in any hour, that is, in the last 60 minutes at
// any moment, not in an hour of the clock. It counts from the start of the process. It is safe for
// concurrent use.
//
// A call's cost is known only when it ends, so calls that run at the same time can together exceed
// the cap, by one call each.
type Budget struct {
	calls int     // per hour; 0 for no cap
	cost  float64 // per hour; 0 for no cap

	mu     sync.Mutex
	called []time.Time // in the last hour, oldest first
	paid   []payment
}

type payment struct {
	at     time.Time
	amount float64
}

// Check reports whether a call would be allowed now: it returns nil, or an [Error] that is
// [ErrCapped] and says when calls are allowed again. It takes nothing from the budget.
func (b *Budget) Check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.check(time.Now()); err != nil {
		return err
	}
	return nil
}

// take is Check, but also counts the call if it is allowed.
func (b *Budget) take() *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if err := b.check(now); err != nil {
		return err
	}
	if b.calls > 0 {
		b.called = append(b.called, now)
	}
	return nil
}

// pay counts the cost of a call.
func (b *Budget) pay(amount float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cost > 0 && amount > 0 {
		b.paid = append(b.paid, payment{time.Now(), amount})
	}
}

func (b *Budget) check(now time.Time) *Error {
	since := now.Add(-time.Hour)
	for len(b.called) > 0 && !b.called[0].After(since) {
		b.called = b.called[1:]
	}
	for len(b.paid) > 0 && !b.paid[0].at.After(since) {
		b.paid = b.paid[1:]
	}
	if b.calls > 0 && len(b.called) >= b.calls {
		return capped(fmt.Sprintf("%d calls", b.calls), b.called[len(b.called)-b.calls])
	}
	if b.cost == 0 {
		return nil
	}
	// Going back from the newest, the first entry that exceeds the cap must be an hour old.
	total := 0.0
	for i := len(b.paid) - 1; i >= 0; i-- {
		if total += b.paid[i].amount; total >= b.cost {
			return capped(fmt.Sprintf("a cost of %g", b.cost), b.paid[i].at)
		}
	}
	return nil
}

func capped(what string, oldest time.Time) *Error {
	return &Error{Class: ClassCapped, Reason: "the cap of " + what + " an hour is reached", NotBefore: oldest.Add(time.Hour)}
}
