package mcp

import (
	"context"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
)

// inSeveral searches the messages of several conversations, the tool results of a project, or both alternately.
func (c *call) inSeveral(ctx context.Context, in searchArguments, kind string, keep window.Filter, out *found, most int) (messages []hit, err error) {
	if c.Cache == nil {
		return nil, errNoSearch
	}
	asked := window.Ask(in.Query)
	keep.Contains, keep.Without = asked.Contains, asked.Without
	if kind != kindTool {
		if strings.TrimSpace(asked.Text) == "" {
			messages, err = c.listed(ctx, in, keep, out, most)
		} else {
			messages, err = c.ranked(ctx, in, asked, keep, out, most)
		}
		if err != nil {
			return nil, err
		}
	}
	if kind != kindTool && kind != kindAll {
		return messages, nil
	}
	results, err := c.inProject(ctx, in, asked, keep, out, most)
	return inTurn(messages, results), err
}

// inProject searches the tool results of a project.
func (c *call) inProject(ctx context.Context, in searchArguments, asked window.Asked, keep window.Filter, out *found, most int) ([]hit, error) {
	p, err := c.find(ctx, in.Project, graph.Latest)
	if err != nil {
		return nil, err
	}
	tools, err := c.pins.ToolsOf(ctx, p, keep)
	if err != nil {
		return nil, err
	}
	leave, err := c.Views.Enter(ctx, c.tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	hits, err := tools.Search(ctx, window.SearchQuery{Text: asked.Text, Prefixes: asked.Prefixes, Limit: most, MaxChars: hitText, Keep: keep})
	if err != nil {
		return nil, err
	}
	out.Project, out.Left, out.Partial = p.Name, tools.Left, tools.Partial
	list := make([]hit, len(hits))
	for i := range hits {
		list[i] = hitOfResult(hits[i].Conversation.ID.ID, hits[i].Conversation.Title, &hits[i].ToolHit)
	}
	return list, nil
}

// newest lists conversations, newest first, each by its newest turn.
func (c *call) newest(ctx context.Context, in searchArguments, out *found, most int) ([]hit, error) {
	var list []hit
	if in.Project == everything {
		out.Project = everything
		g, _, err := c.pins.Graph(ctx)
		if err != nil {
			return nil, err
		}
		for before := uint64(0); len(list) < most; {
			page, err := g.Conversations(ctx, c.tenant, graph.ConversationQuery{Limit: min(most-len(list), graph.MaxCandidates), Before: before})
			if err != nil {
				return nil, err
			}
			for i := range page.Rows {
				row := &page.Rows[i]
				list = append(list, hit{
					Ref: refToTurn(row.ID.ID, max(1, row.TurnCount)), Conversation: row.ID.ID, Title: plain.Clip(plain.Line(row.Title), hitTitle), Time: row.UpdatedAt, Turn: row.TurnCount,
				})
			}
			if before = page.Next; before == 0 {
				break
			}
		}
		return list, nil
	}
	p, sessions, err := c.sessions(ctx, in.Project, "")
	if err != nil {
		return nil, err
	}
	out.Project = p.Name
	for i := range sessions {
		s := &sessions[i]
		one := hit{Ref: refToTurn(s.ID.ID, max(1, s.Turns)), Conversation: s.ID.ID, Title: plain.Clip(plain.Line(s.Title), hitTitle), Time: s.Ended, Turn: s.Turns}
		if s.Request != nil { // turns after it have only what programs wrote
			one.Ref, one.Turn = refToTurn(s.ID.ID, s.Request.Turn), s.Request.Turn
			one.Role, one.Text = "user", plain.Clip(plain.Flat(s.Request.Text), hitText)
		}
		list = append(list, one)
	}
	return list, nil
}

// listed returns the newest messages that a filter keeps.
func (c *call) listed(ctx context.Context, in searchArguments, keep window.Filter, out *found, most int) (list []hit, err error) {
	g, _, err := c.pins.Graph(ctx)
	if err != nil {
		return nil, err
	}
	var of *project.Project
	if out.Project = everything; in.Project != everything {
		p, err := c.find(ctx, in.Project, graph.Latest)
		if err != nil {
			return nil, err
		}
		of, out.Project = &p, p.Name
	}
	leave, err := c.Views.Enter(ctx, c.tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	conversations, _, err := window.ListAll(ctx, g, c.pins.Newest(ctx, c.tenant, of, keep), window.TenantQuery{
		ConversationQuery: window.ConversationQuery{Limit: min(most, graph.MaxCandidates), Keep: keep}, Messages: messagesEach, MaxChars: hitText,
	})
	for i := range conversations {
		f := &conversations[i]
		for k := range f.Messages {
			list = append(list, hitOf(f.ID.ID, f.Title, &f.Messages[k]))
		}
	}
	return list, err
}

// sessions returns the project of a call and its conversations.
func (c *call) sessions(ctx context.Context, named, query string) (project.Project, []project.Session, error) {
	p, err := c.find(ctx, named, graph.Latest)
	if err != nil {
		return p, nil, err
	}
	r, _, err := c.pins.Projects(ctx)
	if err != nil {
		return p, nil, err
	}
	sessions, err := project.Sessions(ctx, r, p, project.QueryTerms(query), "")
	return p, sessions, err
}

// ranked searches the conversations of a project, or of all. The search over a tenant ranks the best conversations of
// all projects. If few of them belong to this project, a search over the project's own conversations adds more.
func (c *call) ranked(ctx context.Context, in searchArguments, asked window.Asked, keep window.Filter, out *found, most int) ([]hit, error) {
	g, _, err := c.pins.Graph(ctx)
	if err != nil {
		return nil, err
	}
	q := window.ConversationQuery{Text: asked.Text, Keep: keep, Limit: min(most, graph.MaxCandidates)}
	filtered := keep.OfMessages() != nil
	var p project.Project
	if in.Project != everything {
		if p, err = c.find(ctx, in.Project, graph.Latest); err != nil {
			return nil, err
		}
		out.Project, q.Limit = p.Name, graph.MaxCandidates
		if filtered { // otherwise better matches of other projects would hide them
			if q.Only, err = c.entered(ctx, p); err != nil {
				return nil, err
			}
		}
	} else {
		out.Project = everything
	}
	leave, err := c.Views.Enter(ctx, c.tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	conversations, _, err := window.SearchAll(ctx, window.TenantSource{Graph: g, Recall: c.Cache.OfTenants(g)}, window.TenantQuery{
		Tenant: c.tenant, ConversationQuery: q, Prefixes: asked.Prefixes, Messages: messagesEach, MaxChars: hitText,
	})
	if err != nil {
		return nil, err
	}
	if in.Project != everything {
		if conversations, err = ofProject(ctx, c, p, conversations, func(f *window.ConversationFound) events.ConversationID { return f.ID }); err != nil {
			return nil, err
		}
	}
	var list []hit
	shown := map[string]bool{}
	for i := range conversations {
		f := &conversations[i]
		for k := range f.Messages {
			h := hitOf(f.ID.ID, f.Title, &f.Messages[k])
			h.Score = rounded(f.Match.Relevance * f.Messages[k].Match.Relevance)
			shown[h.Ref] = true
			list = append(list, h)
		}
		if len(f.Messages) == 0 { // its title matches
			list = append(list, hit{Ref: refToTurn(f.ID.ID, 1), Conversation: f.ID.ID, Title: plain.Clip(plain.Line(f.Title), hitTitle), Time: f.UpdatedAt, Score: rounded(f.Match.Relevance)})
		}
	}
	if in.Project == everything || filtered || len(list) >= most {
		return list, nil
	}
	_, sessions, err := c.sessions(ctx, in.Project, asked.Text)
	if err != nil {
		return nil, err
	}
	titles := map[events.ConversationID]string{}
	for i := range sessions {
		titles[sessions[i].ID] = sessions[i].Title
	}
	said, err := c.Cache.OfProjects(g).Said(ctx, sessions, asked.Text, graph.Latest-1, most)
	if err != nil {
		return nil, err
	}
	for _, m := range said {
		if ref := refTo(m.Conversation.ID, m.Seq); !shown[ref] {
			list = append(list, hit{
				Ref: ref, Conversation: m.Conversation.ID, Title: plain.Clip(plain.Line(titles[m.Conversation]), hitTitle), Turn: m.Turn, Role: m.Role, Text: plain.Clip(plain.Flat(m.Text), hitText),
			})
		}
	}
	return list, nil
}
