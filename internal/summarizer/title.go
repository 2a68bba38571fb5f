package summarizer

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/summary"
)

// kindUpdated is the kind of the events that give titles.
var kindUpdated = events.Kind(events.TypeConversationUpdated)

// eventTitle is the id of the event that gives a conversation its title.
const eventTitle = "title"

// maxAsked is how many of the user's first messages are looked at for one that asks for something.
const maxAsked = 10

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
	var asked, title string
	err = r.graph(ctx, func(g graph.Reader) error {
		list, err := g.Messages(ctx, c.ID, graph.MessageQuery{From: c.FirstUser, Role: "user", OldestFirst: true, Limit: maxAsked})
		for i := range list {
			if m := &list[i]; harness.Asks(m.Role, m.Via, m.Content.Text) && title == "" {
				asked = harness.Said(m.Content.Text)
				title = summary.Title(asked)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if title == "" {
		return nil // no message has words
	}
	e, err := r.made(c.ID, eventTitle, func() (events.Event, error) {
		if model, ok := profile.Model.(Titler); ok {
			better, usage, err := model.Title(ctx, asked)
			r.count(func(f *Figures) { f.pay(usage) })
			if err == nil { // otherwise keep the first sentence
				title = better
			}
		}
		return events.New(c.ID.ID, summary.Source, eventTitle, &events.ConversationUpdated{Title: &title})
	})
	if err != nil {
		return err
	}
	if _, err := r.publish(ctx, c.ID, e, kindUpdated, newest); err != nil {
		return ignoreConflict(err)
	}
	r.count(func(f *Figures) { f.Titles++ })
	return nil
}
