package bench

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// projectChars is the budget that a new session gets by default.
const projectChars = 8000

// askedOf is a query about a project.
type askedOf struct{ project, query string }

// readProjects measures the contexts of projects.
func (out *Context) readProjects(ctx context.Context, a *api, o ContextOptions, say Say) error {
	all, err := a.projects(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	some := spread(all, o.Most)
	var asked []askedOf
	for _, name := range some {
		queries, err := a.askedFirst(ctx, name)
		if err != nil {
			return err
		}
		asked = append(asked, queries...)
	}
	asked = spread(asked, o.Most)
	if len(asked) == 0 {
		return nil
	}
	p := &ProjectContexts{MaxChars: projectChars, Projects: len(some), Of: len(all), Queries: len(asked)}
	var took []time.Duration
	var kb []float64
	for round := range o.WarmUp + o.Rounds {
		say("reading contexts of projects, round %d of %d", round+1, o.WarmUp+o.Rounds)
		for _, q := range asked {
			began := time.Now()
			raw, err := a.get(ctx, "/v1/projects/"+url.PathEscape(q.project)+"/context", url.Values{
				"query": {q.query}, "max_chars": {strconv.Itoa(projectChars)},
			})
			if err != nil {
				return err
			}
			if round >= o.WarmUp {
				took, kb = append(took, time.Since(began)), append(kb, float64(len(raw))/1e3)
			}
		}
	}
	p.Took, p.KB = latencies(took), median(kb)
	out.Projects = p
	return nil
}

// projects lists the names of all projects of the tenant.
func (a *api) projects(ctx context.Context) (names []string, err error) {
	list, err := pages[struct{ Name string }](ctx, a, "/v1/projects", "projects")
	for _, p := range list {
		names = append(names, p.Name)
	}
	return names, err
}

// askedFirst lists what the newest conversations of a project asked first.
func (a *api) askedFirst(ctx context.Context, name string) (asked []askedOf, err error) {
	var p struct {
		Conversations []struct {
			Asked string `json:"asked"`
		} `json:"conversations"`
	}
	if err := a.read(ctx, "/v1/projects/"+url.PathEscape(name), url.Values{}, &p); err != nil {
		return nil, err
	}
	for _, c := range p.Conversations {
		if c.Asked != "" {
			asked = append(asked, askedOf{name, c.Asked})
		}
	}
	return asked, nil
}
