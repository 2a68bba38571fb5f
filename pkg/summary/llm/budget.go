package llm

import (
	"fmt"
	"strconv"
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
	calls  int     // per hour; 0 for no cap
	cost   float64 // per hour; 0 for no cap
	tokens int64   // per hour; 0 for no cap
	tenant string  // the tenant whose quota it is; "" for the cap of a writer, or of a piece of work
	once   bool    // it caps everything, not just an hour

	mu     sync.Mutex
	called []time.Time // in the last hour, oldest first
	paid   []payment
	spent  []payment // tokens
}

type payment struct {
	at     time.Time
	amount float64
}

// Check reports whether a call would be allowed now: it returns nil, or an [Error] that is
// [ErrCapped] and says when calls are allowed again. It takes nothing from the budget.
func (b *Budget) Check() error {
	if err := b.allows(); err != nil {
		return err
	}
	return nil
}

// allows is Check with the error's own type.
func (b *Budget) allows() *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.check(time.Now())
}

// take is Check, but also counts the call if it is allowed.
func (b *Budget) take() *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if err := b.check(now); err != nil {
		return err
	}
	if b.calls > 0 || b.tenant != "" {
		b.called = append(b.called, now)
	}
	return nil
}

// pay counts the cost of a call, and its tokens.
func (b *Budget) pay(amount float64, tokens int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (b.cost > 0 || b.tenant != "") && amount > 0 {
		b.paid = append(b.paid, payment{time.Now(), amount})
	}
	if (b.tenant != "" || b.once) && tokens > 0 {
		b.spent = append(b.spent, payment{time.Now(), float64(tokens)})
	}
}

// forget drops calls that are more than an hour old.
func (b *Budget) forget(now time.Time) {
	if b.once {
		return
	}
	since := now.Add(-time.Hour)
	for len(b.called) > 0 && !b.called[0].After(since) {
		b.called = b.called[1:]
	}
	b.paid, b.spent = after(b.paid, since), after(b.spent, since)
}

func after(list []payment, since time.Time) []payment {
	for len(list) > 0 && !list[0].at.After(since) {
		list = list[1:]
	}
	return list
}

func (b *Budget) check(now time.Time) *Error {
	b.forget(now)
	if b.calls > 0 && len(b.called) >= b.calls {
		return b.capped(strconv.Itoa(b.calls), "calls", b.called[len(b.called)-b.calls])
	}
	if at, over := exceeds(b.paid, b.cost); over {
		return b.capped("a", "cost of "+strconv.FormatFloat(b.cost, 'g', -1, 64), at)
	}
	if at, over := exceeds(b.spent, float64(b.tokens)); over {
		return b.capped(strconv.FormatInt(b.tokens, 10), "tokens", at)
	}
	return nil
}

// exceeds reports whether payments reach a cap. If so, it also returns the time of the payment that must be an hour old
// before they no longer do: going back from the newest, the first one that reaches the cap.
func exceeds(list []payment, most float64) (at time.Time, over bool) {
	if most == 0 {
		return at, false
	}
	total := 0.0
	for i := len(list) - 1; i >= 0; i-- {
		if total += list[i].amount; total >= most {
			return list[i].at, true
		}
	}
	return at, false
}

func (b *Budget) capped(many, what string, oldest time.Time) *Error {
	if b.tenant != "" {
		return &Error{Class: ClassQuota, Reason: fmt.Sprintf("the tenant %q is over its quota of %s model %s an hour", b.tenant, many, what), NotBefore: oldest.Add(time.Hour)}
	}
	if b.once {
		return &Error{Class: ClassCapped, Reason: "the cap of " + many + " " + what + " is reached"}
	}
	return &Error{Class: ClassCapped, Reason: "the cap of " + many + " " + what + " an hour is reached", NotBefore: oldest.Add(time.Hour)}
}

// unpricedFor is how long to wait before asking again for an unknown price: the quota may have changed.
const unpricedFor = time.Minute

// unpriced returns an error if the cost of a tenant's calls is bounded and the model's price is unknown, because its
// calls could exceed every bound.
func (b *Budget) unpriced(model string) *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tenant == "" || b.cost == 0 {
		return nil
	}
	return &Error{Class: ClassQuota, Reason: fmt.Sprintf("the tenant %q has a quota of model cost, and the price of the model %q is not known", b.tenant, model), NotBefore: time.Now().Add(unpricedFor)}
}
