package projects

import (
	"context"
	"fmt"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
)

// Earlier describes the project of a conversation as it was when the conversation began. So what the conversation sees
// of its project does not change while other sessions continue. It implements window.Earlier.
type Earlier struct {
	src     Source
	project project.Project
	began   uint64
	except  []string
}

// EarlierThan returns what was earlier than a conversation that began at a sequence, nil if it is known to belong to no
// project. ids are the conversation and those that it branched from, the nearest first: none of them is an earlier
// session. asOf is the sequence as of which the project is looked up.
func EarlierThan(ctx context.Context, src Source, ids []events.ConversationID, began, asOf uint64) (*Earlier, error) {
	digests, err := src.Projects.Digests(ctx, ids, asOf)
	if err != nil || began <= 1 {
		return nil, err
	}
	e := &Earlier{src: src, began: began}
	name := ""
	for i, id := range ids {
		e.except = append(e.except, id.ID)
		if d := digests[i]; name == "" && d != nil {
			name = d.Place.Name
		}
	}
	if digests[0] == nil {
		return e, nil // the read model does not have it yet
	}
	if name == "" {
		return nil, nil
	}
	p, err := project.Find(ctx, src.Projects, ids[0].Tenant, name, asOf)
	e.project = p.AsOf(began - 1)
	return e, err
}

// earlierSections are the shares of what a young conversation sees of its project. Its own files and requests already
// say what it is about, so more of the room goes to what other sessions learnt.
var earlierSections = []section{
	{SectionStands, "", 32, collectStands},
	{SectionLearnt, "", 20, collectLearnt},
	{SectionWork, "", 10, collectWork},
	{SectionFiles, "", 22, collectFiles},
	{SectionRelevant, "", 16, collectRelevant},
}

// UpTo is the sequence of the last event that can affect what Gather returns, except for deletions.
func (e *Earlier) UpTo() uint64 { return e.began - 1 }

// Version identifies what Gather returns for a query, from read models that have applied the same up to UpTo.
func (e *Earlier) Version(ctx context.Context) (string, error) {
	deletion, err := e.src.Projects.LastDeletion(ctx, e.project.Tenant)
	return fmt.Sprintf("%q %q %q %d %d", e.project.Name, e.project.Names, e.except, e.began, deletion), err
}

// Gather implements window.Earlier.
func (e *Earlier) Gather(ctx context.Context, query string) (fit func(room int) ([]window.Item, error), err error) {
	if e.project.Name == "" {
		return nil, nil
	}
	b := newBuilder(e.src, Request{Tenant: e.project.Tenant, Query: query, AsOf: e.began - 1})
	b.project = e.project
	if err := b.read(ctx, e.except...); err != nil || len(b.sessions) == 0 {
		return nil, err
	}
	return func(room int) (items []window.Item, err error) {
		clear(b.shown)
		for _, p := range b.tell(earlierSections, "", room) {
			items = append(items, p.Items...)
		}
		return items, nil
	}, nil
}
