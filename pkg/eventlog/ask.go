package eventlog

import (
	"context"
	"time"
)

// firstAttempt is how long the server has to answer before ask repeats the question. The time
// doubles with each attempt, because making a consumer takes seconds in a long log.
const firstAttempt = time.Second

// askTime limits all attempts together if the context has no deadline.
const askTime = 8 * time.Second

// ask repeats a question to the server until it is answered or ctx ends. A question on its way to a
// server that dies is never answered, although the rest of its cluster could. The question must be
// safe to repeat.
func ask[T any](ctx context.Context, question func(context.Context) (T, error)) (T, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askTime)
		defer cancel()
	}
	for patience := firstAttempt; ; patience *= 2 {
		attempt, cancel := context.WithTimeout(ctx, patience)
		answer, err := question(attempt)
		late := attempt.Err() != nil
		cancel()
		if err == nil || !late || ctx.Err() != nil {
			return answer, err
		}
	}
}
