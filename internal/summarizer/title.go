package summarizer

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
)

// kindUpdated is the kind of the events that give titles.
var kindUpdated = events.Kind(events.TypeConversationUpdated)

// title gives an untitled conversation a title. A person's title wins: this one is
// published only if no other update came first.
func (r *Reactor) title(ctx context.Context, c summary.Conversation, profile Profile) error {
	newest, err := r.newest(ctx, c.ID, kindUpdated)
	if err != nil || newest > c.LastSeq {
		return err // the update that came first touches the conversation again
	}
	if err := r.awaitGraph(ctx, r.Log.PartitionOf(c.ID.Tenant, c.ID.ID), c.FirstUser); err != nil {
		return err
	}
	var asked string
	err = r.graph(ctx, func(g graph.Reader) error {
		list, err := g.Messages(ctx, c.ID, graph.MessageQuery{From: c.FirstUser, Before: c.FirstUser + 1, Limit: 1})
		if len(list) > 0 {
			asked = list[0].Content.Text
		}
		return err
	})
	if err != nil {
		return err
	}
	title := summary.Title(asked)
	if model, ok := profile.Model.(Titler); ok && title != "" {
		better, usage, err := model.Title(ctx, asked)
		r.count(func(f *Figures) { f.pay(usage) })
		if err == nil { // otherwise keep the first sentence
			title = better
		}
	}
	if title == "" {
		return nil // the message has no words
	}
	e, err := events.New(c.ID.ID, summary.Source, "title", &events.ConversationUpdated{Title: &title})
	if err != nil {
		return err
	}
	if _, err := r.publish(ctx, c.ID, e, kindUpdated, newest); err != nil {
		return ignoreConflict(err)
	}
	r.count(func(f *Figures) { f.Titles++ })
	return nil
}
