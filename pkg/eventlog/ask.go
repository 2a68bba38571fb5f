package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// firstAttempt is how long the server has to answer before ask repeats the question. The time
// doubles with each attempt, because making a consumer takes seconds in a long log.
const firstAttempt = time.Second

// askTime limits all attempts together if the context has no deadline.
const askTime = 8 * time.Second

// limited returns a context that ends after askTime if ctx has no deadline.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, askTime)
}

// ask repeats a question to the server until it is answered or ctx ends. A question on its way to a
// server that dies is never answered, although the rest of its cluster could. The question must be
// safe to repeat. The error of a question that nobody answered is [ErrSilent].
func ask[T any](ctx context.Context, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	for patience := firstAttempt; ; patience *= 2 {
		attempt, cancel := context.WithTimeout(ctx, patience)
		answer, err := question(attempt)
		late := attempt.Err() != nil
		cancel()
		if err == nil || !late || ctx.Err() != nil {
			return answer, named(err)
		}
	}
}

// named says what is wrong with the server or the log, if an error shows that.
func named(err error) error {
	switch {
	case isTimeout(err):
		return fmt.Errorf("%w: %w", ErrSilent, err)
	case natsdeploy.IsLeaderless(err):
		return fmt.Errorf("%w: %w", ErrNoLeader, err)
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("%w: %w", natsdeploy.ErrNoStream, err)
	}
	return err
}

// firstHedge and firstListHedge are what firstAttempt is to ask, for hedge: for one message, and for a list that the server
// makes in many pieces.
const (
	firstHedge     = 2 * time.Second
	firstListHedge = 30 * time.Second
)

// hedge is ask for a question with a large answer. It asks with hedged requests (Dean and Barroso, "The Tail at Scale",
// 2013): it repeats the question, but still takes the answer to an earlier attempt. Otherwise, a message that takes longer
// than the last attempt to arrive is never read, however often it is sent. The attempts are fewer than those of ask,
// because each answer holds up the others on a slow connection. The second one begins after first.
func hedge[T any](ctx context.Context, first time.Duration, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := limited(ctx)
	defer cancel() // ends the attempts that are left
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer)
	attempt := func() {
		value, err := question(ctx)
		select {
		case answers <- answer{value, err}:
		case <-ctx.Done():
		}
	}
	for patience := first; ; patience *= 2 {
		go attempt()
		again := time.NewTimer(patience)
		select {
		case a := <-answers:
			again.Stop()
			return a.value, named(a.err)
		case <-ctx.Done():
			again.Stop()
			var none T
			return none, named(ctx.Err())
		case <-again.C:
		}
	}
}
