package summarizer

import (
	"context"
	"errors"
	"fmt"

	"mneme/events"
	"mneme/pkg/graph"
	"mneme/pkg/summary"
	"mneme/pkg/summary/llm"
)

// Condenser is a model that writes results of tools shorter.
type Condenser interface {
	Model() string
	Condense(ctx context.Context, r llm.ToolResult) (string, summary.Usage, error)
	CondensePromptHash() string
}

// How many of the newest rows of a transcript are looked at for results: as new ones
// come, and when somebody asks.
const (
	newestResults = 100
	manualResults = 2_000
)

// kindCondensed is the kind of the events that record condensations.
var kindCondensed = events.Kind(events.TypeToolCondensed)

// condense has the large results among the newest rows condensed, one by one, unless they
// are. A result that the model can't condense is left as it is: contexts then shorten it
// without a model. Such a one is not tried again with each event that comes, only if again
// says so.
func (r *Reactor) condense(ctx context.Context, c summary.Conversation, profile Profile, rows int, again bool, a *Answer) error {
	model := profile.Condenser
	if model == nil {
		return fmt.Errorf("results can't be condensed: %w", ErrNoModel)
	}
	list, err := r.largeResults(ctx, c, rows)
	if err != nil {
		return err
	}
	for _, large := range list {
		tried := events.DigestOf(c.ID.Tenant, c.ID.ID, large.id, model.CondensePromptHash())
		if !again && r.hasRefused(tried) {
			continue
		}
		text, usage, err := model.Condense(ctx, large.ToolResult)
		r.count(func(f *Figures) { f.pay(usage) })
		if errors.Is(err, summary.ErrUnusable) {
			r.refuse(tried)
			a.Kept++
			continue
		}
		if err != nil {
			return err
		}
		payload := &events.ToolCondensed{
			ToolCallID: large.id, Content: text, Model: model.Model(), PromptHash: model.CondensePromptHash(), CharsIn: large.chars, CharsOut: len([]rune(text)),
		}
		e, err := events.New(c.ID.ID, summary.Source, "condensed/"+payload.PromptHash+"/"+events.DigestOf(large.id).String(), payload)
		if err != nil {
			return err
		}
		newest, err := r.newest(ctx, c.ID, kindCondensed)
		if err != nil {
			return err
		}
		if _, err := r.publish(ctx, c.ID, e, kindCondensed, newest); err != nil {
			return ignoreConflict(err)
		}
		r.count(func(f *Figures) { f.Condensed++ })
		a.Written = append(a.Written, large.id)
	}
	return nil
}

// refusals are results that a model could not condense. They are forgotten with the
// process, or when they are many: then the model is asked once more.
type refusals map[events.Digest]bool

const maxRefusals = 10_000

func (r *Reactor) hasRefused(result events.Digest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused[result]
}

func (r *Reactor) refuse(result events.Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.refused) >= maxRefusals {
		clear(r.refused)
	}
	r.refused[result] = true
}

// largeResult is a result to be condensed.
type largeResult struct {
	id    string
	chars int
	llm.ToolResult
}

// largeResults finds results to be condensed among the newest rows, oldest first.
func (r *Reactor) largeResults(ctx context.Context, c summary.Conversation, rows int) (list []largeResult, err error) {
	if err := r.awaitGraph(ctx, r.Log.PartitionOf(c.ID.Tenant, c.ID.ID), c.LastSeq); err != nil {
		return nil, err
	}
	err = r.Graph(func(g graph.Reader) error {
		entries, err := g.Transcript(ctx, c.ID, graph.TranscriptQuery{Limit: rows})
		if err != nil {
			return err
		}
		messages := 0
		var large []graph.ToolResult // newest first
		var refs []graph.Ref
		for _, e := range entries {
			if e.Message != nil {
				messages++
			}
			if e.Result != nil && messages >= summary.FreshMessages && e.Result.Result.Chars > summary.CondenseAbove && e.Result.Depth == 0 {
				large = append(large, *e.Result)
				refs = append(refs, e.Result.Ref())
			}
		}
		condensed, err := g.Condensations(ctx, c.ID, refs, graph.Latest)
		if err != nil {
			return err
		}
		calls, err := g.Calls(ctx, c.ID, refs, graph.Latest)
		if err != nil {
			return err
		}
		for i := len(large) - 1; i >= 0; i-- {
			result := large[i]
			if _, done := condensed[result.Ref()]; done {
				continue
			}
			call := calls[result.Ref()]
			list = append(list, largeResult{result.ToolCallID, result.Result.Chars, llm.ToolResult{
				Tool: call.ToolName, Arguments: call.Arguments.Text, Result: result.Result.Text, Failed: result.Success != nil && !*result.Success,
			}})
		}
		return nil
	})
	return list, err
}
