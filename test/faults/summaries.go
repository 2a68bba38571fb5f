package main

import (
	"context"
	"errors"
	"time"

	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
)

// summarizedWithin is how long the summarizers may take for the next due summary after everything
// is healed, because a conversation with an error waits up to a minute. There is no limit for all
// of them together, because they may be far behind.
const summarizedWithin = 5 * time.Minute

// awaitSummaries waits until the summarizers have nothing more to write and everything is applied.
// After that nobody publishes.
func (c *campaign) awaitSummaries(ctx context.Context) (err error) {
	c.Say("waiting for the summaries that are due")
	models := c.system.openModels(targetNeo4j)
	defer func() { err = errors.Join(err, models.Close()) }()
	began, head := time.Now(), uint64(0)
	for written := began; ; pause(ctx, 200*time.Millisecond) {
		if now := c.head(ctx); now > head {
			written, head = time.Now(), now
		}
		waiting, err := waiting(ctx, models)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case waiting == "":
			c.summarized = time.Since(began)
			return c.await(ctx, func(w *watcher, since time.Time) bool { return w.applied(since, head) && w.view().lag == 0 })
		case time.Since(written) > summarizedWithin:
			c.violated("%s waits for a summary or a title, and nothing was written for %s", waiting, time.Since(written).Round(time.Second))
			return nil
		}
	}
}

// head returns the end of the log, as the stores' APIs report it.
func (c *campaign) head(ctx context.Context) (seq uint64) {
	for _, w := range c.watchers {
		w.look(ctx)
		seq = max(seq, w.view().head)
	}
	return seq
}

// waitingPage is how many conversations are listed at once.
const waitingPage = 200

// waiting returns a conversation in which a summarizer has something to write, "" if there is none.
// It asks what summarizers ask; a separate check finds what they should have written.
func waiting(ctx context.Context, models *service.Models) (conversation string, err error) {
	state, err := models.Summaries(ctx)
	if err != nil {
		return "", err
	}
	defer state.Release()
	g, err := models.Graph(ctx)
	if err != nil {
		return "", err
	}
	defer g.Release()
	for q := (summary.WaitingQuery{Pending: leastThreshold, Untitled: true, Limit: waitingPage}); ; {
		list, err := state.Model.Waiting(ctx, q)
		if err != nil {
			return "", err
		}
		for _, c := range list {
			if waits, err := waits(ctx, state.Model, g.Model, c); waits || err != nil {
				return c.ID.ID, err
			}
			q.After = c.ID
		}
		if len(list) < q.Limit {
			return "", nil
		}
	}
}

func waits(ctx context.Context, state summary.Reader, g graph.Reader, c summary.Conversation) (bool, error) {
	limits := summary.DefaultSettings()
	if limits.MaxContextChars = contextChars; c.MaxContextChars > 0 {
		limits.MaxContextChars = c.MaxContextChars
	}
	_, _, due, err := summary.Read(ctx, state, c.ID, limits, false)
	if due || err != nil || !c.Untitled() {
		return due, err
	}
	asked, err := g.Messages(ctx, c.ID, graph.MessageQuery{From: c.FirstUser, Before: c.FirstUser + 1, Limit: 1})
	return len(asked) > 0 && summary.Title(asked[0].Content.Text) != "", err
}
