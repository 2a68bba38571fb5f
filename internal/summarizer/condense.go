package summarizer

import (
	"context"
	"errors"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
)

// Condenser is a model that shortens tool results.
type Condenser interface {
	Model() string
	Condense(ctx context.Context, r llm.ToolResult) (string, summary.Usage, error)
	CondensePromptHash() string
}

// kindCondensed is the kind of the events that record condensations.
var kindCondensed = events.Kind(events.TypeToolCondensed)

// condense has the model condense results one by one, and calls done for each result that
// needs no further work. A result that the model can't condense stays as it is: contexts
// shorten it without a model.
func (r *Reactor) condense(ctx context.Context, c summary.Conversation, model Condenser, results []graph.Ref, done func(graph.Ref), a *Answer) error {
	list, err := r.uncondensed(ctx, c, results, done)
	if err != nil {
		return err
	}
	for _, large := range list {
		eventID := "condensed/" + model.CondensePromptHash() + "/" + events.DigestOf(large.ref.ID).String()
		e, err := r.made(c.ID, eventID, func() (e events.Event, err error) {
			text, usage, err := model.Condense(ctx, large.ToolResult)
			r.count(func(f *Figures) { f.pay(usage) })
			if err != nil {
				return e, err
			}
			return events.New(c.ID.ID, summary.Source, eventID, &events.ToolCondensed{
				ToolCallID: large.ref.ID, Content: text, Model: model.Model(), PromptHash: model.CondensePromptHash(), CharsIn: large.chars, CharsOut: len([]rune(text)),
			})
		})
		if errors.Is(err, summary.ErrUnusable) {
			done(large.ref)
			a.Kept++
			continue
		}
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
		done(large.ref)
		r.count(func(f *Figures) { f.Condensed++ })
		a.Written = append(a.Written, large.ref.ID)
	}
	return nil
}

// largeResult is a result to be condensed.
type largeResult struct {
	ref   graph.Ref
	chars int
	llm.ToolResult
}

// uncondensed reads the results that are not condensed yet.
func (r *Reactor) uncondensed(ctx context.Context, c summary.Conversation, refs []graph.Ref, done func(graph.Ref)) (list []largeResult, err error) {
	if len(refs) == 0 {
		return nil, nil
	}
	err = r.graph(ctx, func(g graph.Reader) error {
		condensed, err := g.Condensations(ctx, c.ID, refs, graph.Latest)
		if err != nil {
			return err
		}
		var left []graph.Ref
		for _, ref := range refs {
			if _, is := condensed[ref]; is {
				done(ref)
				continue
			}
			left = append(left, ref)
		}
		if len(left) == 0 {
			return nil
		}
		results, err := g.Results(ctx, c.ID, left, graph.Latest)
		if err != nil {
			return err
		}
		calls, err := g.Calls(ctx, c.ID, left, graph.Latest)
		if err != nil {
			return err
		}
		for _, ref := range left {
			result, call := results[ref], calls[ref]
			list = append(list, largeResult{ref, result.Result.Chars, llm.ToolResult{
				Tool: call.ToolName, Arguments: call.Arguments.Text, Result: result.Result.Text, Failed: result.Success != nil && !*result.Success,
			}})
		}
		return nil
	})
	return list, err
}
