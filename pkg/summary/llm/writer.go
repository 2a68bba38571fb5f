package llm

import (
	"context"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"mneme.dev/mneme/pkg/summary"
)

// Writer writes summaries, and condenses tool results, with a model. It is safe for concurrent use.
type Writer struct {
	profile  Profile
	provider provider
	endpoint *endpoint
	summary  prompt
	condense prompt
	budget   *Budget
	meter    meter
}

var _ summary.Writer = (*Writer)(nil)

// Model returns the model's name in the profile.
func (w *Writer) Model() string { return w.profile.Model }

// PromptHash identifies the prompt and the schema of summaries: 16 hexadecimal digits.
func (w *Writer) PromptHash() string { return w.summary.hash }

// CondensePromptHash identifies the prompt that condenses tool results.
func (w *Writer) CondensePromptHash() string { return w.condense.hash }

// Budget returns this writer's budget.
func (w *Writer) Budget() *Budget { return w.budget }

// Write implements [summary.Writer]. Its errors are [Error].
//
// It takes up to three time-outs plus waits of at most 20 seconds between them. An input that is
// too long for the model is sent up to twice more, each time half as long.
func (w *Writer) Write(ctx context.Context, in summary.Input) (summary.Draft, summary.Usage, error) {
	return w.write(ctx, w.summary, in)
}

func (w *Writer) write(ctx context.Context, p prompt, in summary.Input) (summary.Draft, summary.Usage, error) {
	var usage summary.Usage
	got, err := w.shorten(ctx, &usage, func(halved int) request {
		return request{system: p.text, user: record(in, halved) + "Write down the summary of this record.", form: &summaryForm}
	})
	if err != nil {
		return summary.Draft{}, usage, err
	}
	draft, unusable := readDraft(got.text, size(in))
	if unusable != nil {
		w.meter.failed(unusable.Class)
		return summary.Draft{}, usage, unusable
	}
	return draft, usage, nil
}

// ToolResult is what [Writer.Condense] shortens.
type ToolResult struct {
	Tool      string
	Arguments string // JSON
	Result    string
	Failed    bool
}

// Condense shortens a tool result to plain text of up to [summary.CondensedChars] characters. If
// the result has over 20,000 characters, the model sees its beginning and its end. It returns the
// same errors as [Writer.Write].
func (w *Writer) Condense(ctx context.Context, r ToolResult) (string, summary.Usage, error) {
	var usage summary.Usage
	got, err := w.shorten(ctx, &usage, func(halved int) request {
		return request{system: w.condense.text, user: resultRecord(r, halved)}
	})
	if err != nil {
		return "", usage, err
	}
	text, unusable := readCondensed(got.text, runes(clean(r.Result)))
	if unusable != nil {
		w.meter.failed(unusable.Class)
		return "", usage, unusable
	}
	return text, usage, nil
}

// shorten asks, and if the input is too long for the model, asks up to twice more with half of it.
func (w *Writer) shorten(ctx context.Context, usage *summary.Usage, build func(halved int) request) (answer, *Error) {
	for halved := 0; ; halved++ {
		got, err := w.ask(ctx, build(halved), usage)
		if err == nil || err.Class != ClassTooLong || halved == 2 {
			return got, err
		}
	}
}

// ask asks until it gets an answer or an error that a retry does not help, or is out of tries. If the breaker ends the tries,
// the error is that of the last one.
func (w *Writer) ask(ctx context.Context, r request, usage *summary.Usage) (answer, *Error) {
	timing := &w.endpoint.timing
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.Multiplier, waits.MaxInterval = timing.first, 2, timing.longest
	var before *Error // of the try before
	for try := 1; ; {
		got, err := w.endpoint.do(ctx, func() (answer, *Error) { return w.call(ctx, r, usage) })
		if err == nil {
			return got, nil
		}
		if err.changed {
			continue
		}
		w.meter.failed(err.Class)
		if err.Class == ClassBreaker && before != nil { // which opened it, and says more
			before.NotBefore = err.NotBefore
			return got, before
		}
		before = err
		if !err.Class.passing() || try == timing.tries {
			return got, err
		}
		try++
		wait := waits.NextBackOff()
		if !err.NotBefore.IsZero() {
			wait = max(wait, time.Until(err.NotBefore))
		}
		if deadline, ok := ctx.Deadline(); wait > timing.longest || (ok && time.Until(deadline) <= wait) {
			return got, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return got, ended(ctx)
		}
	}
}

// call is one request to the model.
func (w *Writer) call(ctx context.Context, r request, usage *summary.Usage) (answer, *Error) {
	budgets := spending(ctx)
	if err := w.budget.allows(); err != nil { // before the quota is used
		return answer{}, err
	}
	if !w.profile.Priced && (w.profile.InputPrice == 0 || w.profile.OutputPrice == 0) {
		for _, b := range budgets {
			if err := b.unpriced(w.profile.Model); err != nil {
				return answer{}, err
			}
		}
	}
	for _, b := range slices.Backward(budgets) { // the cap of the work comes before the quota
		if err := b.take(); err != nil {
			return answer{}, err
		}
	}
	if err := w.budget.take(); err != nil {
		return answer{}, err
	}
	usage.Calls++
	w.meter.called()
	limited, cancel := context.WithTimeout(ctx, w.profile.Timeout)
	defer cancel()
	got, err := w.provider.ask(limited, r)
	cost := (float64(got.input)*w.profile.InputPrice + float64(got.output)*w.profile.OutputPrice) / 1e6
	usage.InputTokens += got.input
	usage.OutputTokens += got.output
	w.meter.paid(got, cost)
	w.budget.pay(cost, got.input+got.output)
	for _, b := range budgets {
		b.pay(cost, got.input+got.output)
	}
	if err != nil && ctx.Err() != nil {
		return got, ended(ctx)
	}
	return got, err
}
