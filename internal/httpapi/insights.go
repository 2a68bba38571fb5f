package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/errgroup"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/project"
)

type insightsInput struct {
	TenantParam
	WaitAllParams
	By           InsightsBy   `query:"by" default:"day" doc:"what the groups are"`
	Project      string       `query:"project" doc:"only conversations of this project: its name, or a folder of it"`
	Conversation string       `query:"conversation" maxLength:"512" doc:"only this conversation: its id, or the name that contexts give it"`
	Agent        string       `query:"agent" doc:"only conversations of this agent, such as claude-code, in any spelling: upper and lower case, spaces, - and _ make no difference"`
	Since        string       `query:"since" format:"date" doc:"the first UTC day, such as 2026-03-01; what happened on an unknown day is then left out"`
	Until        string       `query:"until" format:"date" doc:"the last UTC day"`
	Sort         InsightsSort `query:"sort" doc:"groups with the most of this first: tokens read and written, failed calls, repeated reads of files, or the time of calls; by default days in chronological order, other groups largest first"`
	Limit        int          `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"maximum number of groups"`
}

// InsightsBy is a grouping of insights.
type InsightsBy string

// Schema implements huma.SchemaProvider.
func (InsightsBy) Schema(huma.Registry) *huma.Schema { return oneOf(insight.By) }

// InsightsSort is an order of insights.
type InsightsSort string

// Schema implements huma.SchemaProvider.
func (InsightsSort) Schema(huma.Registry) *huma.Schema { return oneOf(insight.Sorts) }

// Insights is the answer of the operation read-insights.
type Insights struct {
	By           InsightsBy `json:"by"`
	Project      string     `json:"project,omitempty" doc:"the name under which the project is known"`
	Conversation string     `json:"conversation,omitempty" doc:"the id of the conversation"`
	Since        string     `json:"since,omitempty"`
	Until        string     `json:"until,omitempty"`
	insight.Report
}

func (a *api) registerInsights(h huma.API) {
	op := operation("read-insights", http.MethodGet, "/v1/insights", "Figures over many conversations", "insights", 404, 422, 503, 504)
	op.Description = "Counts of what conversations did: turns, steps, tokens, calls with their outcomes and durations, errors, files, by one grouping. Days are those of the events' own times, in UTC. " +
		"Costs are computed from the server's price file, and absent without one. Events that were deleted count nowhere."
	serve(a, h, op, a.insights)
}

func (a *api) insights(ctx context.Context, in *insightsInput) (*output[Insights], error) {
	if in.Since != "" && in.Until != "" && in.Until < in.Since {
		return nil, refuseQuery("until", "until is before since: there is no day between them")
	}
	r, m, err := a.pins(ctx).Insight(ctx)
	if err != nil {
		return nil, err
	}
	models := []view.Model{m}
	var projects project.Reader
	if in.Project != "" {
		var of view.Model
		if projects, of, err = a.pins(ctx).Projects(ctx); err != nil {
			return nil, err
		}
		models = append(models, of)
	}
	var conversations graph.Reader
	if in.By == "conversation" || in.Conversation != "" {
		var of view.Model
		if conversations, of, err = a.pins(ctx).Graph(ctx); err != nil {
			return nil, err
		}
		models = append(models, of)
	}
	if err := a.beginList(ctx, in.Tenant, in.WaitAllParams, models...); err != nil {
		return nil, err
	}
	out := &output[Insights]{Insights{By: in.By, Since: in.Since, Until: in.Until}}
	q := insight.Query{Tenant: in.Tenant, By: string(in.By), Agent: in.Agent, Since: in.Since, Until: in.Until, Sort: string(in.Sort), Limit: in.Limit}
	if in.Project != "" {
		p, err := project.Find(ctx, projects, in.Tenant, in.Project, graph.Latest)
		if err != nil {
			return nil, err
		}
		out.Body.Project, q.Projects = p.Name, p.Names
	}
	if in.Conversation != "" {
		if _, err := conversations.Conversation(ctx, events.ConversationID{Tenant: in.Tenant, ID: in.Conversation}, graph.Latest); err != nil {
			return nil, err
		}
		out.Body.Conversation, q.Conversation = in.Conversation, in.Conversation
	}
	report, err := a.sums.Sum(ctx, r, q, a.Prices)
	if err != nil {
		return nil, err
	}
	out.Body.Report = *report
	if in.By == "conversation" {
		if err := addTitles(ctx, conversations, in.Tenant, report.Groups); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// maxTitles is how many conversations of an answer have titles, because each costs a read.
const maxTitles = 100

// addTitles adds the titles of conversations.
func addTitles(ctx context.Context, g graph.Reader, tenant string, groups []insight.Group) error {
	var reads errgroup.Group
	reads.SetLimit(8)
	for i := range groups[:min(len(groups), maxTitles)] {
		reads.Go(func() error {
			c, err := g.Conversation(ctx, events.ConversationID{Tenant: tenant, ID: groups[i].Name}, graph.Latest)
			if err == nil {
				groups[i].Title = c.Title
			} else if !errors.Is(err, graph.ErrNotFound) { // the graph may not have applied it yet
				return err
			}
			return nil
		})
	}
	return reads.Wait()
}
