package main

import (
	"context"
	"errors"
	"time"

	"mneme/internal/service"
	"mneme/pkg/graph"
	"mneme/pkg/summary"
)

// summarizedWithin is how long the summarizers may take, when everything is healed, to
// write what is due: a conversation that had trouble waits for up to a minute.
const summarizedWithin = 5 * time.Minute

// awaitSummaries waits until summarizers have nothing more to write and that is applied:
// from then on nobody publishes.
func (c *campaign) awaitSummaries(ctx context.Context) (err error) {
	c.Say("waiting for the summaries that are due")
	models := c.system.openModels(targetNeo4j)
	defer func() { err = errors.Join(err, models.Close()) }()
	for began := time.Now(); ; pause(ctx, 200*time.Millisecond) {
		waiting, err := waiting(ctx, models)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case waiting == "":
			return c.settle(ctx, 0)
		case time.Since(began) > summarizedWithin:
			c.violated("%s after everything is healed %s still waits for a summary or a title", time.Since(began).Round(time.Second), waiting)
			return nil
		}
	}
}

// waitingPage is how many conversations are listed at once.
const waitingPage = 200

// waiting is a conversation in which a summarizer has something to write, "" if there is
// none. It asks what summarizers ask; what should be written is checked without that.
func waiting(ctx context.Context, models *service.Models) (conversation string, err error) {
	state, err := models.Summaries()
	if err != nil {
		return "", err
	}
	defer state.Release()
	g, err := models.Graph()
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
