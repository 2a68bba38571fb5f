package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window/projects"
)

// maxNamed is how many of a tenant's newest conversations are searched for the one that a short name means.
const maxNamed = 5 * graph.MaxExamined

// AmbiguousError means that several conversations have the same short name.
type AmbiguousError struct {
	Name string
	IDs  []string // at least two, newest first
}

func (e *AmbiguousError) Error() string {
	const room = 400
	return fmt.Sprintf("%s: %s; give the whole id", e.Summary(), plain.Clip(strings.Join(e.IDs, ", "), room))
}

// Summary says what is wrong without the ids.
func (e *AmbiguousError) Summary() string { return "several conversations are called " + e.Name }

// Named returns the id of the conversation that a short name means, see [projects.Names]: with such names contexts and agents
// point to conversations. With a project, only its conversations have names. A name that means none is returned as it is, and one that
// is itself an id means that id; if it means several, the error is an [*AmbiguousError].
func (p *Pins) Named(ctx context.Context, tenant, name string, of *project.Project) (string, error) {
	ids, err := p.called(ctx, tenant, name, of)
	if err != nil || len(ids) == 0 || slices.Contains(ids, name) {
		return name, err
	}
	if len(ids) > 1 {
		return "", &AmbiguousError{name, ids}
	}
	return ids[0], nil
}

// called returns the ids that a name means, newest first.
func (p *Pins) called(ctx context.Context, tenant, name string, of *project.Project) (ids []string, err error) {
	if of != nil {
		r, _, err := p.Projects(ctx)
		if err != nil {
			return nil, err
		}
		if ids, err = project.Entered(ctx, r, *of); err != nil {
			return nil, err
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return !projects.Names(name, id) })
		return project.Keep(ctx, r, *of, ids, func(id *string) events.ConversationID { return events.ConversationID{Tenant: tenant, ID: *id} })
	}
	g, _, err := p.Graph(ctx)
	if err != nil {
		return nil, err
	}
	for examined, before := 0, uint64(0); examined < maxNamed; {
		page, err := g.Conversations(ctx, tenant, graph.ConversationQuery{Limit: graph.MaxExamined, Before: before})
		if err != nil {
			return nil, err
		}
		for i := range page.Rows {
			if id := page.Rows[i].ID.ID; projects.Names(name, id) {
				ids = append(ids, id)
			}
		}
		examined += max(1, len(page.Rows))
		if before = page.Next; before == 0 {
			break
		}
	}
	return ids, nil
}
