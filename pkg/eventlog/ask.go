package eventlog

import (
	"context"
	"time"
)

// firstAttempt is how long a server may take for a question before it is asked again. The
// time doubles with each attempt: in a long log it takes seconds to make a consumer.
const firstAttempt = time.Second

// askTime is for all attempts, where the context does not say.
const askTime = 8 * time.Second

// ask asks a server, again and again until ctx ends. A question that was on its way to a
// server that died is never answered, and the others of its cluster are there. It must
// be one that may be asked twice.
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
